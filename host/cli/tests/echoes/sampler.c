/* Tells in its state what it sees, with numbers in quarters, draws the last row
 * and the first, and refuses a group. */

#include "gavel.h"
#include <string.h>

bool plugin_init(gavel_params *params, gavel_info *info) {
    (void)params;
    *info = (gavel_info){.name = "echo", .version = "1", .pure = true};
    return true;
}

static const char *number(uint64_t value) {
    return gavel_integer((int64_t)value);
}

static const char *quarters(double value) {
    return gavel_integer((int64_t)(value * 4));
}

static const char *or_none(gavel_text text) {
    return text.len ? gavel_c_str(text) : "none";
}

static const char *sample(const char *text, const gavel_ended_sample *one) {
    static const char *const outcomes[] = {"scored", "abstained", "fault", "out-of-budget", "unavailable"};
    const char *reward = one->has_reward ? quarters(one->reward) : "none";
    text = gavel_concat(text, " | ", outcomes[one->outcome], " ", reward, NULL);
    for (size_t i = 0; i < one->metrics_count; i++) {
        text = gavel_concat(text, " ", one->metrics[i].name.ptr, "=", quarters(one->metrics[i].value), NULL);
    }
    return text;
}

static const char *group(const char *text, const gavel_ended_group *one) {
    double mean;
    const char *reward = gavel_mean_reward(one, &mean) ? quarters(mean) : "none";
    text = gavel_concat(text, " | ", number(one->draw), " ", number(one->row), " ", number(one->dataset), " ",
                        one->task_id.ptr, " ", or_none(one->data_source), " ", number(one->version), " ",
                        or_none(one->dropped), " ", reward, NULL);
    for (size_t i = 0; i < one->samples_count; i++) text = sample(text, &one->samples[i]);
    return text;
}

void plugin_sample(const gavel_draw_request *request, gavel_draws *draws) {
    const char *text = gavel_concat(gavel_c_str(request->state), " ", number(request->step), " ", number(request->seed),
                                    " ", number(request->wanted), " ", number(request->next_draw), " ",
                                    number(request->rows), NULL);
    for (size_t i = 0; i < request->datasets_count; i++) {
        const gavel_dataset *dataset = &request->datasets[i];
        text = gavel_concat(text, " | ", number(dataset->rows), " ", quarters(dataset->weight), NULL);
    }
    for (size_t i = 0; i < request->ended_count; i++) text = group(text, &request->ended[i]);
    gavel_draw(draws, request->rows - 1);
    gavel_draw(draws, 0);
    gavel_refuse_group(draws, request->ended[0].draw, "seen");
    gavel_next_state(draws, text, strlen(text));
}
