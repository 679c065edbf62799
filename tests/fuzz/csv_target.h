// tests/fuzz/csv_target.h: what the fuzz programs promise about the reader of tables.
//
// For any input: a good result has numbers that are finite and classes below their count, a bad one
// has a message.
#pragma once

#include <math.h>

#include "data/csv.h"
#include "tests/fuzz/driver.h"

static size_t fuzz_csv_seed(int index, uint8_t *out) {
    static const char *const texts[] = {"1,2.5,0\n-3,4e2,1\n",
                                        "a,b,kind\r\n1,2,x\r\n\r\n3,4,\"y\"\"\"", "1;2;3\n",
                                        "\xEF\xBB\xBF 1 ,\"2\",0\n5,6,1"};
    if (index >= 4)
        return 0;
    memcpy(out, texts[index], strlen(texts[index]));
    return strlen(texts[index]);
}

static int fuzz_csv_one(const uint8_t *bytes, size_t size) {
    int broken = 0;
    for (int kind = 0; kind < 3; kind++) {
        const CsvOptions options = {.header = (CsvHeader)kind,
                                    .class_column = kind == 1 ? 1 : -1,
                                    .separator = kind == 2 ? ';' : 0};
        char *text = malloc(size + 1);
        Error error = {0};
        if (!text)
            return 1;
        memcpy(text, bytes, size);
        Dataset *dataset = csv_parse(text, size, "input", &options, &error);
        if (!dataset)
            broken |= error.code == ERROR_NONE || error.text[0] == 0;
        for (int64_t i = 0; dataset && i < dataset->count; i++) {
            const int32_t class = ((const int32_t *)dataset->y.data)[i];
            broken |= class < 0 || class >= dataset->classes;
            for (int64_t k = 0; k < dataset->x.size; k++)
                broken |= !isfinite(((const float *)dataset->x.data)[i * dataset->x.size + k]);
        }
        dataset_release(dataset);
        free(text);
    }
    return broken;
}
