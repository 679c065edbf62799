// precision/scaler_private.h: the inside of a scaler, which scaler.c, scaler_windows.c and
// scaler_state.c share. A
// window is the time from the first scale() whose gradients an optimizer gathers to their
// unscaling; the scale may not change within one. Private to the room.
#pragma once

#include "precision/gradients.h"

typedef enum Stage { STAGE_READY, STAGE_UNSCALED, STAGE_STEPPED } Stage;

// When the gradients that are being gathered began to be: the version of the scale that they carry.
typedef struct Window {
    bool open;
    uint64_t version;
    bool saved; // the scale of that version was kept when it changed
} Window;

typedef struct Served { // one optimizer's gradients
    Gradients *gradients;
    Stage stage;
    bool stepped;       // ever
    uint64_t called_at; // the iteration of the last unscale or step
    Window window;
    Tensor *window_scale; // of no dimension; where the scale is kept
    // What those of this scale were, for update: the flags of all, or where there were those of
    // other scalers beside them, in memory of its own.
    const StepFlags *flags;
    Tensor *own_flags; // NULL: never needed
} Served;

struct Scaler {
    Scaler *next; // of the same engine
    Scalers *scalers;
    ScaleRule rule;
    uint64_t number;      // as gradients carry it
    Tensor *memory;       // holds the ScaleState
    float written;        // the scale that the host wrote last; rules that stand leave it there
    Tensor *scale;        // of no dimension, over its scale
    uint64_t iteration;   // from 1
    uint64_t version;     // of the scale: how often it may have moved
    uint64_t scaled_at;   // the iteration of the last scale(), 0: none
    Window window;        // of optimizers that are not known yet
    Tensor *window_scale; // as in Served
    Served *served;
    const StepFlags **flags; // for scale_update
    int served_count, served_size;
};

ScaleState *scaler_state_memory(const Scaler *scaler); // the device's
void scaler_write_state(Scaler *scaler, const ScaleState *state);

// What this scaler knows of gradients; NULL: nothing. _get makes them known; NULL: no memory.
Served *scaler_served_find(const Scaler *scaler, const Gradients *gradients);
Served *scaler_served_get(Scaler *scaler, Gradients *gradients, Error *error) MUST_CHECK;
void scaler_served_clear(Served *served); // what it owns, not the gradients
// Every scaler drops what it knows of gradients whose optimizer is gone.
void scalers_forget(const Gradients *gradients);
// By whomever it was called, a step has applied what all scalers unscaled.
void scalers_note_step(const Gradients *gradients);
// As scalers_allow_clip, of a step that no scaler makes.
bool scalers_allow_step(const Gradients *gradients, Error *error) MUST_CHECK;

// scale() was called: a window opens for all gradients that begin here.
void scaler_windows_open(Scaler *scaler);
// The scale is about to move: windows with gradients in them keep what it was. Windows without
// have nothing to keep it for; nothing of this happens in an ordinary loop. `ends`: so does the
// iteration, and with it what optimizers that are not known yet can step by.
bool scaler_windows_save(Scaler *scaler, bool ends, Error *error) MUST_CHECK;
// Whether all of these gradients carry the scale in force. Waits only where the scale may
// have moved since the first of them.
bool scaler_window_check(Scaler *scaler, const Served *served, const char *called,
                         Error *error) MUST_CHECK;
