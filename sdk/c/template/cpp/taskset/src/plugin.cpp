// A dataset of sums of two numbers.

#include "gavel.h"
#include <string>
#include <utility>

namespace {

// Each number is below it.
uint64_t limit;
// How many rows there are.
uint64_t length;

// Two numbers that follow from the index and the seed (SplitMix64).
std::pair<uint64_t, uint64_t> two_numbers(uint64_t index, uint64_t seed) {
    uint64_t bits = seed + (index + 1) * 0x9e3779b97f4a7c15;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    bits ^= bits >> 31;
    return {(bits >> 32) % limit, (bits & 0xffffffff) % limit};
}

}  // namespace

// Once, before any row; refusing stops a run before it starts.
bool plugin_init(gavel_params *params, gavel_info *info) {
    const double digits = gavel_param_number(params, "digits", 2);
    const double rows = gavel_param_number(params, "length", 1000);
    if (!(digits >= 1 && digits <= 9)) return gavel_refuse(params, "`digits` must be from 1 to 9");
    if (!(rows >= 0 && rows <= 1e15)) return gavel_refuse(params, "`length` must be 0 or more");
    limit = 1;
    for (int i = 0; i < static_cast<int>(digits); i++) limit *= 10;
    length = static_cast<uint64_t>(rows);
    *info = {.name = "{{name}}", .version = "0.1.0", .pure = true, .min = 0, .max = 0};
    return true;
}

// How many rows there are; false if they never end.
bool plugin_len(uint64_t *rows) {
    *rows = length;
    return true;
}

// Once a row: the same index and seed give the same row.
void plugin_get(uint64_t index, uint64_t seed, gavel_row *row) {
    using std::to_string;
    if (index >= length) {
        const std::string what = "there is no row " + to_string(index) + ": there are " + to_string(length);
        return gavel_no_row(row, what.c_str());
    }
    const auto [a, b] = two_numbers(index, seed);
    const std::string prompt = "What is " + to_string(a) + " + " + to_string(b) + "? End with \"Answer:\" and the sum.";
    gavel_row_text(row, "prompt", prompt.c_str());
    gavel_row_text(row, "ground_truth", to_string(a + b).c_str());
}
