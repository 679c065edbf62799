// tests/golden/cases.h: reads the files that make_torch_traces.py writes.
#pragma once

#include <stdint.h>

#include "tests/test.h"

enum { CASE_NAME = 64, CASE_ITEMS = 24 };

typedef struct CaseTensor {
    char name[CASE_NAME];
    int count, ndim;
    int64_t shape[8]; // a lone number has one dimension of 1
    float *values;
    bool asked; // by case_tensor
} CaseTensor;

typedef struct CaseAttr {
    char name[CASE_NAME];
    double value;
    bool asked; // by case_attr
} CaseAttr;

typedef struct GoldenCase {
    char kind[CASE_NAME], name[CASE_NAME];
    CaseAttr attrs[CASE_ITEMS];
    CaseTensor tensors[CASE_ITEMS];
    int attr_count, tensor_count;
} GoldenCase;

static inline void case_clear(GoldenCase *golden) {
    for (int i = 0; i < golden->tensor_count; i++)
        free(golden->tensors[i].values);
    memset(golden, 0, sizeof *golden);
}

static inline void case_add_tensor(GoldenCase *golden, char *line) {
    CaseTensor *tensor = &golden->tensors[golden->tensor_count++];
    char *colon = strchr(line, ':'), *at = colon + 1, *end;
    int used = 0;
    sscanf(line, "tensor %63s%n", tensor->name, &used);
    for (char *c = line + used; c < colon && tensor->ndim < 8; c++)
        tensor->shape[tensor->ndim++] = strtoll(c, &c, 10);
    int size = 1;
    for (const char *c = colon; *c; c++)
        size += *c == ' ';
    tensor->values = calloc((size_t)size, sizeof(float));
    for (float value = strtof(at, &end); end != at; value = strtof(at, &end)) {
        tensor->values[tensor->count++] = value;
        at = end;
    }
}

// The next case of a file; false at its end. case_clear what it gave.
static inline bool case_next(FILE *file, GoldenCase *golden) {
    char *line = NULL;
    size_t size = 0;
    bool found = false;
    memset(golden, 0, sizeof *golden);
    while (getline(&line, &size, file) > 0) {
        if (line[0] == '#' || line[0] == '\n')
            continue;
        if (strncmp(line, "end", 3) == 0) {
            found = true;
            break;
        }
        if (strncmp(line, "attr ", 5) == 0) {
            CaseAttr *attr = &golden->attrs[golden->attr_count++];
            sscanf(line, "attr %63s %lf", attr->name, &attr->value);
        } else if (strncmp(line, "tensor ", 7) == 0) {
            case_add_tensor(golden, line);
        } else {
            sscanf(line, "%63s %63s", golden->kind, golden->name);
        }
    }
    free(line);
    return found;
}

static inline double case_attr(GoldenCase *golden, const char *name, double without) {
    for (int i = 0; i < golden->attr_count; i++)
        if (strcmp(golden->attrs[i].name, name) == 0) {
            golden->attrs[i].asked = true;
            return golden->attrs[i].value;
        }
    return without;
}

static inline const CaseTensor *case_tensor(GoldenCase *golden, const char *name) {
    for (int i = 0; i < golden->tensor_count; i++)
        if (strcmp(golden->tensors[i].name, name) == 0) {
            golden->tensors[i].asked = true;
            return &golden->tensors[i];
        }
    return NULL;
}

// A name in the case that nothing asked for, so that nothing was tested by it; NULL: there is none.
static inline const char *case_unasked(const GoldenCase *golden) {
    for (int i = 0; i < golden->attr_count; i++)
        if (!golden->attrs[i].asked)
            return golden->attrs[i].name;
    for (int i = 0; i < golden->tensor_count; i++)
        if (!golden->tensors[i].asked)
            return golden->tensors[i].name;
    return NULL;
}
