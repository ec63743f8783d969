/* Of the right answers of a group, the shortest scores 1 and the longest a
 * little less; a wrong answer scores 0. */

#include "gavel.h"

/* The text before the answer. */
static gavel_text prefix;
/* How much the longest right answer loses. */
static double penalty;

typedef struct {
    bool correct;
    size_t bytes;
} attempt;

/* Once, before any group; refusing stops a run before it starts. */
bool plugin_init(gavel_params *params, gavel_info *info) {
    prefix = gavel_param_text(params, "prefix", "Answer:");
    penalty = gavel_param_number(params, "penalty", 0.2);
    if (!prefix.len) {
        return gavel_refuse(params, "`prefix` is empty: set it to the text before the answer");
    }
    if (penalty < 0 || penalty > 1) return gavel_refuse(params, "`penalty` must be between 0 and 1");
    *info = (gavel_info){.name = "{{name}}", .version = "0.1.0", .pure = true, .min = 0, .max = 1};
    return true;
}

static attempt read(gavel_sample sample, double truth) {
    gavel_text response = gavel_response(sample), line;
    double found;
    bool answered = gavel_after_last(response, prefix.ptr, &line) && gavel_last_number(line, &found);
    return (attempt){answered && found == truth, response.len};
}

/* Once a group: one verdict for each sample, in order. */
void plugin_judge(const gavel_sample *samples, size_t count, gavel_reference reference, gavel_verdict **verdicts) {
    gavel_text truth_text;
    double truth = 0;
    bool known = gavel_ground_truth(reference, &truth_text);
    bool number = known && gavel_number(truth_text, &truth);
    attempt *attempts = gavel_alloc(count * sizeof *attempts);
    size_t shortest = SIZE_MAX, longest = 0;
    for (size_t i = 0; i < count; i++) {
        attempts[i] = read(samples[i], truth);
        if (!attempts[i].correct) continue;
        if (attempts[i].bytes < shortest) shortest = attempts[i].bytes;
        if (attempts[i].bytes > longest) longest = attempts[i].bytes;
    }
    for (size_t i = 0; i < count; i++) {
        if (!known) {
            gavel_abstain(verdicts[i], "the row has no ground truth");
        } else if (!number) {
            gavel_invalid_input(verdicts[i], gavel_concat("the ground truth `", truth_text.ptr, "` is not a number", NULL));
        } else {
            double range = longest > shortest ? (double)(longest - shortest) : 1;
            double lost = attempts[i].correct ? penalty * (double)(attempts[i].bytes - shortest) / range : 1;
            gavel_score(verdicts[i], 1 - lost);
            gavel_metric(verdicts[i], "correct", attempts[i].correct);
        }
    }
}
