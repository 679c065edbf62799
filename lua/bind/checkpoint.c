// Checkpoints as the binding takes them, and the replay of a script that resumes from one.
//
// A checkpoint of a step is taken just before the first engine work after it, so that what a script
// logs right after a step belongs to the step, or before an evaluation or a loop over data begins:
// a run that is made longer comes by the step too, and does something else then. Or just before the
// first work after a waypoint that follows: the data's end may have been looked at by then, and
// averages moved. A replay ends at the same place. Until then nothing is told, and what the script
// reads of the device comes from the journal.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "checkpoint/replay.h"
#include "kernel/allocator.h"
#include "lua/bind/step.h"
#include "run/recorder.h"

static bool keeps(const Session *session) {
    return session->keeping.folder || session->run->recorder;
}

bool bind_is_replaying(const Session *session) {
    return session->resume != NULL;
}

// ---- the journal --------------------------------------------------------------------------------

bool bind_recall(lua_State *L, JournalKind kind, void *values, size_t size) {
    Error error = {0};
    Session *session = session_of(L);
    capture_refuse(session->engine, "it reads a value");
    if (!session->resume)
        return false;
    if (!journal_take(&session->inventory.journal, kind, values, size, &error))
        bind_raise(L, &error);
    return true;
}

void bind_remember(lua_State *L, JournalKind kind, const void *values, size_t size) {
    Session *session = session_of(L);
    capture_refuse(session->engine, "it reads a value");
    if (keeps(session))
        journal_add(&session->inventory.journal, kind, values, size);
}

// ---- taking one ---------------------------------------------------------------------------------

static CheckpointExtra extra_of(const Session *session, bool at_end) {
    size_t count;
    const Script *scripts = lua_vm_scripts(session->vm, &count);
    CheckpointExtra extra = {.script_hash = count > 0 ? scripts[0].hash : "",
                             .at_end = at_end,
                             .leader_ends = session->step_end.leader_ends,
                             .waypoint = session->waypoints};
    lua_vm_random_state(session->vm, extra.lua_random);
    return extra;
}

static bool is_final(const char *why) {
    return strcmp(why, "final") == 0;
}

static bool save(Session *session, const char *why, bool at_end, Error *error) {
    Run *run = session->run;
    char folder[1024], path[1100];
    CheckpointFile file = {.why = why};
    Inventory *inventory = &session->inventory;
    snprintf(folder, sizeof folder, "%s", session->keeping.folder ? session->keeping.folder : "");
    if ((!session->keeping.folder && !run_checkpoint_folder(run, folder, sizeof folder, error)) ||
        !checkpoint_path(folder, run->step, is_final(why), path, sizeof path, error) ||
        (!at_end && // a script that is over needs nothing that it held
         !bind_list_live(session, &inventory->live, &inventory->live_count, error)))
        return false;
    CheckpointExtra extra = extra_of(session, at_end);
    bool done = run_save(run, inventory, &extra, path, &file, error);
    free(inventory->live);
    inventory->live = NULL;
    inventory->live_count = 0;
    if (done && !session->keeping.folder)
        done = run_record_checkpoint(run, &file, error);
    if (done)
        snprintf(session->kept_path, sizeof session->kept_path, "%s", path);
    if (done && session->keeping.kept)
        session->keeping.kept(session->keeping.context, run, &file);
    return done;
}

// A checkpoint that cannot be kept is told of; training goes on.
static void take(Session *session, const char *why, bool at_end) {
    Error error = {0};
    session->checkpoint_why = NULL;
    session->kept_at = clock_seconds();
    if (session->kept_step == session->run->step && !is_final(why)) // it is there already
        return;
    bool clock_ran = run_pause_clock(session->run); // writing is no training
    lua_vm_begin_patience(session->vm);
    bool kept = save(session, why, at_end, &error);
    lua_vm_end_patience(session->vm);
    if (clock_ran)
        run_resume_clock(session->run);
    if (kept) {
        session->kept_step = session->run->step;
        return;
    }
    char text[ERROR_TEXT_SIZE + 64];
    snprintf(text, sizeof text, "the checkpoint of step %lld was not kept: %s",
             (long long)session->run->step, error.text);
    run_event(session->run, text);
    if (session->keeping.lost)
        session->keeping.lost(session->keeping.context, &error);
}

// An order, or run:checkpoint(): due before the next engine work.
bool bind_want_checkpoint(void *context, Run *run, const char *why, char *answer, size_t size,
                          Error *error) {
    Session *session = context;
    if (!keeps(session))
        return error_fail(error, ERROR_FAILED, "this run keeps no checkpoints");
    session->checkpoint_why = why;
    session->at_boundary = true;
    snprintf(answer, size, "the checkpoint of step %lld is kept before the next one begins",
             (long long)run->step);
    return true;
}

// Whether a replay that has come to its step ends here; before there were waypoints files did not
// say, and the places are tried one after the other.
static bool ends_at_waypoint(const Session *session) {
    int waypoint = checkpoint_waypoint(session->resume);
    return session->run->step == checkpoint_step(session->resume) &&
           !checkpoint_is_at_end(session->resume) &&
           (waypoint < 0 || waypoint == session->waypoints);
}

void bind_pass_waypoint(Session *session) {
    session->waypoints++;
    if (session->resume && ends_at_waypoint(session))
        session->at_boundary = true;
}

void bind_keep_before_evaluation(Session *session) {
    const double old = session->kept_step > 0 ? 30 : 5;
    if (!keeps(session) || session->resume || session->keeping.every != 0 ||
        session->checkpoint_why || clock_seconds() - session->kept_at < old)
        return;
    session->checkpoint_why = "periodic";
    session->at_boundary = true;
}

// ---- the end of a replay ------------------------------------------------------------------------

static bool is_here(Session *session) {
    const CheckpointExtra extra = extra_of(session, false);
    const CheckpointTraining training = {
        .engine = session->engine, .inventory = &session->inventory, .extra = &extra};
    return checkpoint_is_here(session->resume, &training);
}

// What the replay gathered and took is none of the run's. When garbage is due is told by what steps
// were seen to keep; a replay shows nothing of that, and an evaluation that comes before the first
// step would pile up more than it did in the run that it is of.
static void forget_replayed_memory(lua_State *L, Session *session) {
    session->kept_bytes = bind_collect_all(L, session);
    session->most_bytes = session->step_bytes = 0;
    allocator_forget_peaks(session->engine->device->allocator);
    run_raise_memory(session->run);
}

static bool restore(lua_State *L, Session *session, bool at_end, Error *error) {
    Checkpoint *resume = session->resume;
    Inventory *inventory = &session->inventory;
    device_end_replay(session->engine->device);
    if (!bind_list_live(session, &inventory->live, &inventory->live_count, error))
        return false;
    CheckpointExtra extra = extra_of(session, at_end);
    bool done = run_restore(session->run, resume, inventory, &extra, error);
    free(inventory->live);
    inventory->live = NULL;
    inventory->live_count = 0;
    forget_replayed_memory(L, session);
    // Else what is left out of the steps' time since then goes back to a moment of the replay's own
    // clock, and takes what the run had trained with it.
    session->step_clock = session->learnt_at = run_clock(session->run);
    session->resume = NULL;
    session->run->is_silent = false;
    const Run *run = session->run;
    // A fork keeps its own beginning: what lies before it is another run's, with other options.
    const bool begins = run->options->parent && keeps(session) && !at_end;
    session->kept_step = begins ? 0 : run->step;
    if (done && begins)
        session->checkpoint_why = "fork";
    session->stops = run->step_limit > 0 && run->step >= run->step_limit;
    done = done && (!run->recorder || recorder_go_on(run->recorder, session->run, error));
    if (done)
        run_obey_again(session->run);
    return done;
}

// ---- between two steps --------------------------------------------------------------------------

void bind_boundary(lua_State *L) {
    Error error = {0};
    Session *session = session_of(L);
    session->at_boundary = false;
    if (session->resume && checkpoint_waypoint(session->resume) < 0 && !is_here(session))
        return; // at the next waypoint
    // What nobody can reach any more is not written, and not asked for when it is read.
    if (session->resume || session->checkpoint_why)
        lua_gc(L, LUA_GCCOLLECT);
    if (session->resume) {
        lua_vm_begin_patience(session->vm);
        bool restored = restore(L, session, false, &error);
        lua_vm_end_patience(session->vm);
        if (!restored && error.code != ERROR_FAILED) // what was typed, or the history, is to blame
            session->refusal = error;
        if (!restored)
            bind_raise(L, &error);
    }
    if (session->checkpoint_why)
        take(session, session->checkpoint_why, false);
    if (session->stops && run_is_to_stop(session->run))
        lua_vm_interrupt(session->vm, "the run is to end here");
    lua_vm_check(L);
}

// A file of before this was written with the loop begun: then its replay ends there.
void bind_leave_boundary(lua_State *L) {
    Session *session = session_of(L);
    if (session->at_boundary && (!session->resume || is_here(session)))
        bind_boundary(L);
}

void bind_attend(void *context) {
    Session *session = context;
    const double patience = 0.5;
    double seconds = atomic_load_explicit(&session->step_seconds, memory_order_relaxed);
    if (session->resume || !run_wants_attention(session->run) ||
        clock_seconds() - session->step_at < patience + 2 * seconds)
        return; // else at the end of the step, where all orders are heeded
    lua_vm_begin_patience(session->vm);
    run_attend_within(session->run);
    lua_vm_end_patience(session->vm);
}

double bind_step_seconds(void *context) {
    const Session *session = context;
    return atomic_load(&session->step_seconds);
}

void bind_train(lua_State *L) {
    Session *session = session_of(L);
    if (session->stops)
        lua_vm_interrupt(session->vm, "the run is to end here");
    lua_vm_check(L);
}

bool bind_reached_limit(Session *session) {
    return session->stops && !run_is_to_stop(session->run);
}

static int replay_step(lua_State *L, Session *session) {
    Error error = {0};
    Run *run = session->run;
    Device *device = session->engine->device;
    int64_t target = checkpoint_step(session->resume);
    bool at_end = checkpoint_is_at_end(session->resume);
    device_note_step(device);
    if (run->step == target)
        return bind_error(L, at_end ? "resume: the last checkpoint was taken when the script had "
                                      "ended, and now it goes on; fork from an earlier one, or "
                                      "resume with --weights-only"
                                    : "resume: the script does not come by the place between two "
                                      "steps where the checkpoint was taken: it, its data or its "
                                      "options have changed; put them back, or resume with "
                                      "--weights-only");
    run->step++;
    session->waypoints = 0;
    if (run->observer.replay)
        run->observer.replay(run->observer.context, run, target);
    if (run_is_to_stop(run))
        lua_vm_interrupt(session->vm, "the run is to end here");
    else if (run->step == target && checkpoint_waypoint(session->resume) <= 0 && !at_end)
        session->at_boundary = true;
    else if (!device_is_idle(device) && !device_begin_replay(device, &error))
        return bind_raise(L, &error);
    lua_vm_check(L);
    return 0;
}

// What a step that ended asks to be kept.
static const char *reason_to_keep(const Session *session, bool stop) {
    const Run *run = session->run;
    bool last = run->total_steps > 0 && run->step == run->total_steps;
    if (stop && run_is_to_stop(run))
        return "stop";
    if (stop || last)
        return "end";
    if (session->keeping.every > 0 && run->step % session->keeping.every == 0)
        return "periodic";
    // So that a run that dies loses minutes.
    const double seconds_between = 300;
    if (session->keeping.every == 0 && clock_seconds() - session->kept_at >= seconds_between)
        return "periodic";
    return NULL;
}

int bind_end_step(lua_State *L) {
    Error error = {0};
    Session *session = session_of(L);
    bool stop = false;
    if (session->resume)
        return replay_step(L, session);
    if (session->stops) // the script did not come by the engine since the step that was the last
        lua_vm_interrupt(session->vm, "the run is to end here");
    lua_vm_check(L);
    if (session->kept_at == 0)
        session->kept_at = clock_seconds();
    // What the step left goes with it: each finds the memory that the one before it found, so that
    // no more is asked of the system, and a device that captures steps finds them alike. Where
    // steps are small this is faster too, since what is used again is still in the processor's
    // cache.
    bind_collect_step(L, session);
    step_count(session);
    bind_learn(session);
    lua_vm_begin_patience(session->vm); // the run may be paused here
    bool done = run_step_ended(session->run, &stop, &error);
    lua_vm_end_patience(session->vm);
    double clock = run_clock(session->run);
    atomic_store(&session->step_seconds, clock - session->step_clock);
    session->step_clock = session->learnt_at = clock;
    session->step_at = clock_seconds();
    session->has_worked = false;
    session->waypoints = 0;
    device_note_step(session->engine->device);
    if (!done) {
        if (error.code == ERROR_USAGE) // what was typed is wrong, not the script
            session->refusal = error;
        return bind_raise(L, &error);
    }
    const char *why = keeps(session) ? reason_to_keep(session, stop) : NULL;
    if (why)
        session->checkpoint_why = why;
    if (why && strcmp(why, "end") == 0) // the script may end before the next engine work:
        lua_gc(L, LUA_GCCOLLECT);       // what it leaves is then taken as it lies there
    session->stops = stop;
    session->at_boundary = session->checkpoint_why || stop;
    return 0;
}

// What the last step's checkpoint lacks, which was taken before the first work that followed: the
// last move of an average, or of an optimizer that ends no step.
static bool is_left_otherwise(Session *session) {
    Error error = {0};
    bool differs = false;
    const CheckpointTraining training = {.engine = session->engine,
                                         .inventory = &session->inventory};
    bool done = session->kept_path[0] &&
                checkpoint_differs(&training, session->kept_path, &differs, &error);
    return done && differs;
}

// The script is over.
bool bind_end_script(Session *session, bool done, Error *error) {
    Run *run = session->run;
    if (session->resume) {
        bool there =
            done && error->code == ERROR_NONE && run->step == checkpoint_step(session->resume);
        if (there)
            return restore(lua_vm_state(session->vm), session, true, error);
        device_end_replay(session->engine->device);
        // A fork that is refused what it was asked for comes to nothing; else the counts go on.
        bool is_refused = !done && error->code == ERROR_USAGE;
        if (is_refused && run->options->parent)
            run->step = 0;
        else
            run_restore_counters(run, session->resume);
        session->resume = NULL;
        run->is_silent = false;
        session->kept_step = run->step;
        return done &&
               (run_is_to_stop(run) ||
                error_fail(error, ERROR_FAILED,
                           "resume: the script ended before the step of the checkpoint: it, "
                           "its data or its options have changed; put them back, or resume "
                           "with --weights-only"));
    }
    bool was_interrupted = lua_vm_interrupted(session->vm) && session->kept_step != run->step;
    if (session->checkpoint_why)
        take(session, session->checkpoint_why, false);
    else if (done && keeps(session) && run->step > session->kept_step)
        take(session, was_interrupted ? session->has_worked ? "weights" : "stop" : "end",
             !was_interrupted || session->has_worked);
    else if (done && keeps(session) && session->has_worked && !lua_vm_interrupted(session->vm) &&
             is_left_otherwise(session))
        take(session, "final", true);
    return done;
}
