#include "tests/emulator/calls.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/emulator/control.h"
#include "tests/emulator/cublas.h"
#include "tests/emulator/graphs.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/settings.h"
#include "tests/emulator/streams.h"

Card emulator_cards[MOST_CARDS];
static _Thread_local Card *current;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool started;
static uint64_t calls, calls_of_fault; // of the function that the setting `fail` names
static char message[sizeof((EmulatorState *)0)->message];

void emulator_started(void) {
    started = true;
}
Card *emulator_current_card(void) {
    return current;
}
void emulator_set_current_card(Card *card) {
    current = card;
}

// ---- calls --------------------------------------------------------------------------------------

// Errors after which a card is of no use any more.
static bool is_lasting(CUresult result) {
    switch ((int)result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_ILLEGAL_ADDRESS:
    case CUDA_ERROR_LAUNCH_TIMEOUT:
    case CUDA_ERROR_ASSERT:
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case CUDA_ERROR_MISALIGNED_ADDRESS:
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case CUDA_ERROR_INVALID_PC:
    case CUDA_ERROR_LAUNCH_FAILED: return true;
    default: return false;
    }
}

static CUresult planned_failure(const char *function) {
    const EmulatorFault *fault = &emulator_settings.fail;
    if (!fault->when || (fault->function[0] && strcmp(fault->function, function) != 0))
        return CUDA_SUCCESS;
    if (++calls_of_fault != fault->when)
        return CUDA_SUCCESS;
    CUresult result = (CUresult)fault->code;
    fprintf(stderr, "emulator: %s fails with %d as MPBENCH_EMULATOR wants it\n", function,
            fault->code);
    if (current && is_lasting(result))
        current->failure = result;
    return result;
}

EmulatorCall emulator_call_begin(const char *function, EmulatorNeeds needs) {
    pthread_mutex_lock(&lock);
    calls++;
    EmulatorCall call = {planned_failure(function)};
    if (call.result != CUDA_SUCCESS)
        return call;
    if (needs >= NEEDS_START && !started)
        call.result = CUDA_ERROR_NOT_INITIALIZED;
    else if (needs >= NEEDS_CARD && (!current || !current->references))
        call.result = CUDA_ERROR_INVALID_CONTEXT;
    else if (needs >= NEEDS_CARD)
        call.result = current->failure;
    return call;
}

void emulator_call_end(EmulatorCall *call) {
    (void)call;
    pthread_mutex_unlock(&lock);
}

// ---- what went wrong ----------------------------------------------------------------------------

static void say(const char *format, va_list arguments) {
    vsnprintf(message, sizeof message, format, arguments);
    fprintf(stderr, "emulator: %s\n", message);
}

void emulator_break_card(Card *card, CUresult result, const char *format, ...) {
    if (card->failure != CUDA_SUCCESS)
        return;
    card->failure = result;
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
}

CUresult emulator_refuse(CUresult result, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    say(format, arguments);
    va_end(arguments);
    return result;
}

// ---- the table for tests ------------------------------------------------------------------------

static void control_set(const char *settings) {
    pthread_mutex_lock(&lock);
    emulator_settings_read(settings);
    calls_of_fault = 0;
    pthread_mutex_unlock(&lock);
}

static void read_state(EmulatorState *state) {
    *state = (EmulatorState){.calls = calls};
    emulator_streams_count(state);
    emulator_cublas_count(state);
    emulator_graphs_count(state);
    state->taken = emulator_memory_taken();
    emulator_memory_count(&state->device_blocks, &state->device_bytes, &state->pinned_blocks);
    for (int i = 0; i < MOST_CARDS; i++) {
        const Card *card = &emulator_cards[i];
        state->streams += card->streams;
        state->events += card->events;
        state->modules += card->modules;
        state->graphs_left += card->graphs;
        state->contexts += card->references != 0;
    }
    memcpy(state->message, message, sizeof message);
}

static void control_state(EmulatorState *state) {
    pthread_mutex_lock(&lock);
    read_state(state);
    pthread_mutex_unlock(&lock);
}

static void control_heal(void) {
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST_CARDS; i++)
        emulator_cards[i].failure = CUDA_SUCCESS;
    message[0] = 0;
    pthread_mutex_unlock(&lock);
}

const EmulatorControl emulator_control = {control_set, control_state, control_heal};

// At the end of the program, or when the plugin is closed.
__attribute__((destructor)) static void report(void) {
    if (!emulator_settings.report)
        return;
    EmulatorState state;
    read_state(&state);
    fprintf(
        stderr,
        "emulator: %llu calls, %llu launches, %llu kernels, %llu waits, %llu blocks taken, %llu "
        "graphs, %llu products; "
        "left: %llu blocks of %llu bytes, %llu pinned, %llu streams, %llu events, %llu modules, "
        "%llu contexts, %llu graphs, %llu descriptors\n",
        (unsigned long long)state.calls, (unsigned long long)state.launches,
        (unsigned long long)state.kernels, (unsigned long long)state.waits,
        (unsigned long long)state.taken, (unsigned long long)state.graphs,
        (unsigned long long)state.products, (unsigned long long)state.device_blocks,
        (unsigned long long)state.device_bytes, (unsigned long long)state.pinned_blocks,
        (unsigned long long)state.streams, (unsigned long long)state.events,
        (unsigned long long)state.modules, (unsigned long long)state.contexts,
        (unsigned long long)state.graphs_left, (unsigned long long)state.descriptors);
}
