// cli/topics.h: what `mpbench help` explains beside commands and experiments, from the engine's
// tables. The main thread calls; a topic prints to standard output and nothing else.
#pragma once

typedef struct Topic {
    const char *name;
    const char *summary; // one line
    void (*print)(void);
} Topic;

extern const Topic topic_table[]; // ended by a NULL name

const Topic *topic_named(const char *name); // NULL: there is none
