// Of the right answers of a group, the shortest scores 1 and the longest a
// little less; a wrong answer scores 0.

#include "gavel.h"
#include <algorithm>
#include <vector>

namespace {

// The text before the answer.
gavel_text prefix;
// How much the longest right answer loses.
double penalty;

struct Attempt {
    bool correct;
    std::size_t bytes;

    Attempt(gavel_sample sample, double truth) {
        const gavel_text response = gavel_response(sample);
        gavel_text line;
        double found;
        bytes = response.len;
        correct = gavel_after_last(response, prefix.ptr, &line) && gavel_last_number(line, &found) && found == truth;
    }
};

}  // namespace

// Once, before any group; refusing stops a run before it starts.
bool plugin_init(gavel_params *params, gavel_info *info) {
    prefix = gavel_param_text(params, "prefix", "Answer:");
    penalty = gavel_param_number(params, "penalty", 0.2);
    if (!prefix.len) {
        return gavel_refuse(params, "`prefix` is empty: set it to the text before the answer");
    }
    if (penalty < 0 || penalty > 1) return gavel_refuse(params, "`penalty` must be between 0 and 1");
    *info = {.name = "{{name}}", .version = "0.1.0", .pure = true, .min = 0, .max = 1};
    return true;
}

// Once a group: one verdict for each sample, in order.
void plugin_judge(const gavel_sample *samples, size_t count, gavel_reference reference, gavel_verdict **verdicts) {
    gavel_text truth_text;
    double truth;
    if (!gavel_ground_truth(reference, &truth_text)) {
        std::for_each_n(verdicts, count, [](auto verdict) { gavel_abstain(verdict, "the row has no ground truth"); });
        return;
    }
    if (!gavel_number(truth_text, &truth)) {
        const char *what = gavel_concat("the ground truth `", truth_text.ptr, "` is not a number", nullptr);
        std::for_each_n(verdicts, count, [what](auto verdict) { gavel_invalid_input(verdict, what); });
        return;
    }
    std::vector<Attempt> attempts;
    for (size_t i = 0; i < count; i++) attempts.emplace_back(samples[i], truth);
    size_t shortest = SIZE_MAX, longest = 0;
    for (const Attempt &attempt : attempts) {
        if (!attempt.correct) continue;
        shortest = std::min(shortest, attempt.bytes);
        longest = std::max(longest, attempt.bytes);
    }
    const double range = longest > shortest ? static_cast<double>(longest - shortest) : 1;
    for (size_t i = 0; i < count; i++) {
        const auto &[correct, bytes] = attempts[i];
        gavel_score(verdicts[i], correct ? 1 - penalty * static_cast<double>(bytes - shortest) / range : 0);
        gavel_metric(verdicts[i], "correct", correct);
    }
}
