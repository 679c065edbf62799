// store/schema.h: the text of the schema and how older files become like it. Seen by store.c only.
#pragma once

enum {
    SCHEMA_APPLICATION_ID = 0x6d706268, // "mpbh"
};

// Makes everything in an empty database, inside a transaction.
extern const char *const schema_statements[]; // ended by NULL
