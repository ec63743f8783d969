/* Scores 1 if the number after `Answer:` is the ground truth. */

#include "gavel.h"
#include <math.h>

/* The text before the answer. */
static gavel_text prefix;
/* How far the answer may be from the ground truth. */
static double tolerance;

/* Once, before any sample; refusing stops a run before it starts. */
bool plugin_init(gavel_params *params, gavel_info *info) {
    prefix = gavel_param_text(params, "prefix", "Answer:");
    tolerance = gavel_param_number(params, "tolerance", 1e-6);
    if (!prefix.len) {
        return gavel_refuse(params, "`prefix` is empty: set it to the text before the answer");
    }
    *info = (gavel_info){.name = "{{name}}", .version = "0.1.0", .pure = true, .min = 0, .max = 1};
    return true;
}

/* Once a sample. */
void plugin_score(gavel_sample sample, gavel_reference reference, gavel_verdict *verdict) {
    gavel_text truth_text, line = {0};
    double truth, found;
    if (!gavel_ground_truth(reference, &truth_text)) {
        gavel_abstain(verdict, "the row has no ground truth");
        return;
    }
    if (!gavel_number(truth_text, &truth)) {
        gavel_invalid_input(verdict, gavel_concat("the ground truth `", truth_text.ptr, "` is not a number", NULL));
        return;
    }
    bool answered = gavel_after_last(gavel_response(sample), prefix.ptr, &line) && gavel_last_number(line, &found);
    gavel_score(verdict, answered && fabs(found - truth) <= tolerance);
    gavel_metric(verdict, "answered", answered);
    gavel_note(verdict, answered ? gavel_concat("the answer is ", gavel_c_str(line), NULL) : "no answer");
}
