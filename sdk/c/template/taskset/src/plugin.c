/* A dataset of sums of two numbers. */

#include "gavel.h"

/* Each number is below it. */
static uint64_t limit;
/* How many rows there are. */
static uint64_t length;

/* Once, before any row; refusing stops a run before it starts. */
bool plugin_init(gavel_params *params, gavel_info *info) {
    double digits = gavel_param_number(params, "digits", 2);
    double rows = gavel_param_number(params, "length", 1000);
    if (!(digits >= 1 && digits <= 9)) return gavel_refuse(params, "`digits` must be from 1 to 9");
    if (!(rows >= 0 && rows <= 1e15)) return gavel_refuse(params, "`length` must be 0 or more");
    limit = 1;
    for (int i = 0; i < (int)digits; i++) limit *= 10;
    length = (uint64_t)rows;
    *info = (gavel_info){.name = "{{name}}", .version = "0.1.0", .pure = true};
    return true;
}

/* How many rows there are; false if they never end. */
bool plugin_len(uint64_t *rows) {
    *rows = length;
    return true;
}

/* Once a row: the same index and seed give the same row. */
void plugin_get(uint64_t index, uint64_t seed, gavel_row *row) {
    if (index >= length) {
        const char *there = gavel_concat(": there are ", gavel_integer((int64_t)length), NULL);
        gavel_no_row(row, gavel_concat("there is no row ", gavel_integer((int64_t)index), there, NULL));
        return;
    }
    /* Two numbers that follow from the index and the seed (SplitMix64). */
    uint64_t bits = seed + (index + 1) * 0x9e3779b97f4a7c15;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    bits ^= bits >> 31;
    int64_t a = (int64_t)((bits >> 32) % limit), b = (int64_t)((bits & 0xffffffff) % limit);
    gavel_row_text(row, "prompt", gavel_concat("What is ", gavel_integer(a), " + ", gavel_integer(b),
                                               "? End with \"Answer:\" and the sum.", NULL));
    gavel_row_text(row, "ground_truth", gavel_integer(a + b));
}
