#include "gavel.h"

bool plugin_init(gavel_params *params, gavel_info *info) {
    (void)params;
    *info = (gavel_info){.name = "echoes", .version = "1"};
    return true;
}

/* Counts what the trace has; without an agent and a policy, only the prompt. */
static size_t seen(gavel_sample sample) {
    gavel_trajectory each;
    gavel_text json;
    size_t sum = gavel_extra(sample, &json), count;
    for (uint32_t i = 0; gavel_trajectory_at(sample, i, &each); i++) {
        gavel_finish_reason reason;
        sum += gavel_speaker(each).len + gavel_state(each, "shop", &json);
        sum += gavel_turn_finished(each, 0, &reason) || gavel_message_tokens(each, 0) != -1;
        gavel_trajectory_opening(each, &count);
        sum += count;
        gavel_offered(each, &count);
        sum += count;
        gavel_calls(each, &count);
        sum += count;
    }
    return sum;
}

void plugin_judge(const gavel_sample *samples, size_t count, gavel_reference reference, gavel_verdict **verdicts) {
    (void)reference;
    for (size_t i = 0; i < count; i++) {
        gavel_prior_verdict said;
        if (!gavel_prior(samples[i], "quality", &said)) {
            gavel_score(verdicts[i], -1);
        } else if (said.kind == GAVEL_SCORED) {
            gavel_score(verdicts[i], said.score);
            gavel_metric(verdicts[i], "note", said.text.len);
            gavel_metric(verdicts[i], "seen", seen(samples[i]));
            gavel_payload(verdicts[i], said.score == 0.25 ? "{\"\\u00e9\": [0.25]}" : "{}");
            for (size_t m = 0; m < said.metrics_count; m++) {
                gavel_metric(verdicts[i], said.metrics[m].name.ptr, said.metrics[m].value);
            }
        } else if (said.kind == GAVEL_ABSTAINED) {
            gavel_abstain(verdicts[i], said.text.ptr);
        } else {
            gavel_score(verdicts[i], said.kind == GAVEL_NO_VERDICT ? -2 : -3);
        }
    }
}
