// cli/train/matrix.h: the cells of a matrix: which combinations there are, how each is asked for,
// and which of them the history has. matrix.c runs them.
#pragma once

#include <stdio.h>
#include <sys/types.h>

#include "base/hash.h"
#include "cli/cli.h"
#include "store/record.h"
#include "store/store.h"

enum { MATRIX_MOST_CELLS = 256, MATRIX_MOST_KEYS = 320, MATRIX_NAME_SIZE = 256 };

typedef enum CellState {
    CELL_MISSING,   // to be trained, or to go on
    CELL_RUNNING,   // by us
    CELL_ELSEWHERE, // in another process
    CELL_DONE,
    CELL_FAILED,
} CellState;

typedef struct MatrixCell {
    int precision; // indexes of values
    int values[MATRIX_MOST_KEYS];
    int64_t seed;
    CellState state;
    pid_t process;
    double began;
    int64_t run;          // the one that finished; 0: none
    int64_t stopped;      // goes on instead of another; 0: none
    int64_t stopped_step; // from here
} MatrixCell;

// What is varied: the precisions, --set KEY=V1,V2, --layer PATTERN=P1,P2, --loss-scale S1,S2,
// --keep-fp32 SET1,SET2.
typedef struct MatrixKey {
    const char *option; // "set"
    const char *name;   // KEY or PATTERN; NULL: the option has nothing but its value
    char **values;
    int count;
} MatrixKey;

typedef struct Matrix {
    int64_t id; // of the history; 0: it has none of it
    const char *experiment;
    char path[512];       // of its script, as runs keep it
    char *specification;  // what is the same in all cells
    MatrixKey precisions; // no value: the experiment's own
    MatrixKey keys[MATRIX_MOST_KEYS];
    int key_count;
    MatrixCell cells[MATRIX_MOST_CELLS];
    int cell_count;
    int workers, threads; // threads of each
    bool is_refused;      // its first run, as usage, for what all of them are asked
} Matrix;

Matrix *matrix_new(const Cli *cli, Error *error);
void matrix_free(Matrix *matrix);
int matrix_count(const Matrix *matrix, CellState state);
// "fp16, lr=0.1, seed 2"
void matrix_cell_name(const Matrix *matrix, const MatrixCell *cell, char name[MATRIX_NAME_SIZE]);
// To each cell that a run is of: whether it finished or is in progress, or that it can go on from
// this step; 0: it cannot.
void matrix_note_run(Matrix *matrix, const RunRecord *run, int64_t goes_on_from);

// matrix_history.c. Gives the matrix its id, if the history has one, and every cell what that knows
// of it; writes nothing. A matrix is known by the code of its experiment and of what that requires:
// a comment that was edited makes no other.
bool matrix_find_runs(Store *store, Matrix *matrix, Error *error) MUST_CHECK;

// matrix_code.c. What a specification begins with: the hash of the experiment's code, by
// lua_code_hash, and a line for each file that it requires by a name that stands there, or that
// these require.
#define MATRIX_OF_CODE "code "
bool matrix_write_code(FILE *out, const char *path, Error *error) MUST_CHECK;

enum { MATRIX_MOST_ARGUMENTS = 2048 };

typedef struct MatrixArguments { // of the child, ended by NULL; all of them owned
    char *list[MATRIX_MOST_ARGUMENTS];
    int count;
} MatrixArguments;

// Of a run of the cell, or to go on with the one that was stopped.
bool matrix_arguments(const Cli *cli, const Matrix *matrix, const MatrixCell *cell,
                      MatrixArguments *arguments, Error *error) MUST_CHECK;
void matrix_clear_arguments(MatrixArguments *arguments);
