/* Tells in its state what it sees, with numbers in quarters, and gives an
 * advantage of each form. */

#include "gavel.h"
#include <string.h>

bool plugin_init(gavel_params *params, gavel_info *info) {
    (void)params;
    *info = (gavel_info){.name = "echo", .version = "1", .pure = true};
    return true;
}

static const char *quarters(double value) {
    return gavel_integer((int64_t)(value * 4));
}

static const char *part(const char *text, const gavel_part *one) {
    const char *score = one->has_score ? quarters(one->score) : "none";
    text = gavel_concat(text, " | ", one->reward.ptr, " ", quarters(one->weight), " ", score, " ",
                        quarters(one->counted), NULL);
    for (size_t i = 0; i < one->metrics_count; i++) {
        text = gavel_concat(text, " ", one->metrics[i].name.ptr, "=", quarters(one->metrics[i].value), NULL);
    }
    return text;
}

static const char *version(int64_t number) {
    return number < 0 ? "none" : gavel_integer(number);
}

static const char *trajectory(const char *text, const gavel_numbers *one) {
    text = gavel_concat(text, " | ", gavel_integer(one->index), " ", gavel_integer(one->prompt_tokens), " ",
                        one->finish_reason == GAVEL_LENGTH ? "1" : "0", " ", gavel_integer(one->response_tokens), NULL);
    for (size_t i = 0; i < one->learned_count; i++) {
        text = gavel_concat(text, " ", gavel_integer(one->learned[i].start), "-", gavel_integer(one->learned[i].end), NULL);
    }
    for (size_t i = 0; i < one->credit_count; i++) {
        const gavel_token_credit *credit = &one->credit[i];
        text = gavel_concat(text, " ", gavel_integer(credit->tokens.start), "-", gavel_integer(credit->tokens.end), ":",
                            quarters(credit->value), NULL);
    }
    return gavel_concat(text, " ", quarters(one->penalty), " ", quarters(one->logprob), " ",
                        version(one->oldest_version), " ", version(one->newest_version), NULL);
}

void plugin_estimate(uint64_t step, const gavel_group *groups, size_t count, gavel_estimates *estimates) {
    if (count != 1) {
        gavel_no_advantages(estimates, "there is not one group");
        return;
    }
    const gavel_group *group = groups;
    const char *text = gavel_concat(gavel_c_str(gavel_earlier_state(estimates)), " ", gavel_integer((int64_t)step), " ",
                                    group->task_id.ptr, " ", gavel_c_str(group->data_source), " [", group->speaker.ptr,
                                    "]", NULL);
    for (size_t i = 0; i < group->samples_count; i++) {
        const gavel_scored_sample *sample = &group->samples[i];
        for (size_t j = 0; j < sample->parts_count; j++) text = part(text, &sample->parts[j]);
        for (size_t j = 0; j < sample->trajectories_count; j++) text = trajectory(text, &sample->trajectories[j]);
    }
    const double of_trajectories[] = {0.5, 1.5}, of_tokens[] = {7}, *const all[] = {of_tokens};
    gavel_advantage(estimates, 0, 0, group->samples[0].reward);
    /* Another advantage replaces it. */
    gavel_advantage(estimates, 0, 1, 9);
    gavel_advantage_of_trajectories(estimates, 0, 1, of_trajectories);
    gavel_advantage_of_trajectories(estimates, 0, 2, of_tokens);
    gavel_advantage_of_tokens(estimates, 0, 2, all);
    gavel_keep_state(estimates, text, strlen(text));
}
