// store/schema.h: the text of the schema and how older files become like it. Seen by store.c only.
#pragma once

#include "store/store.h"

enum {
    SCHEMA_APPLICATION_ID = 0x6d706268, // "mpbh"
};

// Makes everything in an empty database, inside a transaction.
extern const char *const schema_statements[]; // ended by NULL

// Makes a table of ours that a file of this version may lack, since it came to be later and holds
// what need not be there: who reads takes its absence for an empty one, and programs of before
// leave it alone. No version is spent on it, which would close the file to them. Inside a
// transaction.
bool store_make_table(Store *store, const char *name, Error *error) MUST_CHECK;
bool store_has_table(Store *store, const char *name, bool *has, Error *error) MUST_CHECK;
