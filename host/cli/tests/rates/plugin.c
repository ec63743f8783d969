#include "gavel.h"

bool plugin_init(gavel_params *params, gavel_info *info) {
    (void)params;
    *info = (gavel_info){.name = "rates", .version = "1"};
    return true;
}

/* The state of a tool, as JSON. */
static const char *state(gavel_trajectory trajectory, const char *tool) {
    gavel_text json;
    return gavel_state(trajectory, tool, &json) ? gavel_c_str(json) : "null";
}

void plugin_score(gavel_sample sample, gavel_reference reference, gavel_verdict *verdict) {
    (void)reference;
    gavel_text extra;
    gavel_trajectory first;
    if (gavel_extra(sample, &extra) && gavel_trajectory_at(sample, 0, &first)) {
        const char *states = gavel_concat(state(first, "shop"), ", ", state(first, "other"), NULL);
        gavel_score(verdict, 1);
        gavel_payload(verdict, gavel_concat("{\"extra\": ", gavel_c_str(extra), ", \"states\": [", states, "]}", NULL));
        return;
    }
    gavel_message said[] = {{GAVEL_USER, gavel_str("Go.")}, {GAVEL_ASSISTANT, gavel_response(sample)}};
    gavel_message nothing[] = {{GAVEL_USER, gavel_str("Go.")}, {GAVEL_ASSISTANT, gavel_str("")}};
    gavel_score_request requests[] = {{"quality", said, 2}, {"quality", nothing, 2}, {"quality", said, 2}};
    gavel_model_score scores[3];
    gavel_model_scores(requests, 3, scores);
    for (int i = 0; i < 3; i++) {
        if (scores[i].status != GAVEL_MODEL_OK) {
            gavel_unavailable(verdict, scores[i].why.ptr);
            return;
        }
    }
    gavel_step last = scores[2].steps[scores[2].steps_count - 1];
    gavel_score(verdict, scores[0].score - scores[1].score);
    gavel_metric(verdict, "steps", (double)scores[2].steps_count);
    gavel_metric(verdict, "last", last.value);
    gavel_metric(verdict, "end", last.end);
}
