// Scores 1 if the number after `Answer:` is the ground truth.

#include "gavel.h"
#include <cmath>

namespace {

// The text before the answer.
gavel_text prefix;
// How far the answer may be from the ground truth.
double tolerance;

// The text after the last `prefix`, and the last number in it.
struct Answer {
    gavel_text line{};
    double number = NAN;

    explicit Answer(gavel_text response) {
        if (!gavel_after_last(response, prefix.ptr, &line) || !gavel_last_number(line, &number)) number = NAN;
    }

    bool is_there() const { return !std::isnan(number); }
};

}  // namespace

// Once, before any sample; refusing stops a run before it starts.
bool plugin_init(gavel_params *params, gavel_info *info) {
    prefix = gavel_param_text(params, "prefix", "Answer:");
    tolerance = gavel_param_number(params, "tolerance", 1e-6);
    if (!prefix.len) {
        return gavel_refuse(params, "`prefix` is empty: set it to the text before the answer");
    }
    *info = {.name = "{{name}}", .version = "0.1.0", .pure = true, .min = 0, .max = 1};
    return true;
}

// Once a sample.
void plugin_score(gavel_sample sample, gavel_reference reference, gavel_verdict *verdict) {
    gavel_text truth_text;
    double truth;
    if (!gavel_ground_truth(reference, &truth_text)) return gavel_abstain(verdict, "the row has no ground truth");
    if (!gavel_number(truth_text, &truth)) {
        const char *what = gavel_concat("the ground truth `", truth_text.ptr, "` is not a number", nullptr);
        return gavel_invalid_input(verdict, what);
    }
    const Answer answer(gavel_response(sample));
    gavel_score(verdict, answer.is_there() && std::abs(answer.number - truth) <= tolerance);
    gavel_metric(verdict, "answered", answer.is_there());
    const char *line = gavel_c_str(answer.line);
    gavel_note(verdict, answer.is_there() ? gavel_concat("the answer is ", line, nullptr) : "no answer");
}
