#include "gavel.h"

bool plugin_init(gavel_params *params, gavel_info *info) {
    (void)params;
    *info = (gavel_info){.name = "echoes", .version = "1"};
    return true;
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
