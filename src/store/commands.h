// store/commands.h: orders to a worker: rows that it claims once, and answers.
#pragma once

#include "store/store.h"

enum { COMMAND_VERB_SIZE = 24, COMMAND_ARGUMENT_SIZE = 256, COMMAND_ANSWER_SIZE = 256 };

// The orders there are; what each does is the worker's (run/run_orders.c).
typedef enum CommandVerb {
    VERB_PAUSE,
    VERB_RESUME,
    VERB_STOP,
    VERB_CHECKPOINT,
    VERB_SET,
    COMMAND_VERBS
} CommandVerb;

bool command_verb_parse(const char *text, CommandVerb *verb);
// When an order of this name is answered, in words: "at the next step". "": no such verb.
const char *command_verb_when(const char *text);

typedef enum CommandState {
    COMMAND_QUEUED,
    COMMAND_CLAIMED,
    COMMAND_DONE,
    COMMAND_REFUSED
} CommandState;

typedef struct RunCommand {
    int64_t id, run;
    CommandState state;
    char verb[COMMAND_VERB_SIZE];         // as command_verb_parse takes it
    char argument[COMMAND_ARGUMENT_SIZE]; // "layer.head=fp32"
    int64_t step; // at which it took effect, or was refused; -1: the run has ended
    char answer[COMMAND_ANSWER_SIZE];
} RunCommand;

bool command_is(const RunCommand *command, CommandVerb verb);

// Queues an order. Refused at once: unknown verbs, texts too long, and an argument where the verb
// takes none (ERROR_USAGE), runs that are over or whose worker is gone, and more than 1,000 orders
// that wait.
bool store_send_command(Store *store, int64_t run, const char *verb, const char *argument,
                        int64_t *id, Error *error) MUST_CHECK;
bool store_read_command(Store *store, int64_t id, RunCommand *command, Error *error) MUST_CHECK;

// What was set while the run went on, after its step `from` or later, in the order that it took
// effect; *orders is the caller's to free.
bool store_list_settings(Store *store, int64_t run, int64_t from, RunCommand **orders, int *count,
                         Error *error) MUST_CHECK;

// The worker's half. Claims up to `most` queued orders, oldest first, each for this worker only and
// only once; *count 0: none; *count == most: call again. What cannot be read as an order is refused
// in the same pass.
bool store_claim_commands(Store *store, int64_t run, const char *token, RunCommand *commands,
                          int most, int *count, Error *error) MUST_CHECK;
bool store_answer_command(Store *store, const RunCommand *command, Error *error) MUST_CHECK;
// Refuses all that still wait, with this answer: at the end of a run.
bool store_refuse_commands(Store *store, int64_t run, const char *answer, Error *error) MUST_CHECK;
// Cheap, for polling: a number that rises when an order is queued for the run.
bool store_last_command(Store *store, int64_t run, int64_t *id, Error *error) MUST_CHECK;
