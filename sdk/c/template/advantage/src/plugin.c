/* The reward of a sample minus the mean of its group, divided by the deviation
 * of the group, or not. */

#include "gavel.h"
#include <math.h>

/* Keeps a division by the deviation finite. */
#define EPSILON 1e-6

/* Whether a difference is divided by the deviation of the group. */
static bool is_scaled;

/* Once, before any step; refusing stops a run before it starts. */
bool plugin_init(gavel_params *params, gavel_info *info) {
    gavel_text scale = gavel_param_text(params, "scale", "group");
    is_scaled = gavel_equal(scale, gavel_str("group"));
    if (!is_scaled && !gavel_equal(scale, gavel_str("none"))) {
        return gavel_refuse(params, "`scale` must be \"group\" or \"none\"");
    }
    *info = (gavel_info){.name = "{{name}}", .version = "0.1.0", .pure = true};
    return true;
}

/* The advantages of the samples of a group, exactly 0 where all rewards are equal. */
static void of_group(size_t number, const gavel_group *group, gavel_estimates *estimates) {
    size_t count = group->samples_count;
    bool is_equal = true;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        is_equal = is_equal && group->samples[i].reward == group->samples[0].reward;
        sum += group->samples[i].reward;
    }
    double mean = sum / (double)count;
    for (size_t i = 0; i < count; i++) {
        double difference = group->samples[i].reward - mean;
        squares += difference * difference;
    }
    double divisor = is_scaled && !is_equal ? sqrt(squares / (double)(count - 1)) + EPSILON : 1;
    for (size_t i = 0; i < count; i++) {
        gavel_advantage(estimates, number, i, is_equal ? 0 : (group->samples[i].reward - mean) / divisor);
    }
}

/* Once for the groups that the policy learns from at once: an advantage for each sample of each group. */
void plugin_estimate(uint64_t step, const gavel_group *groups, size_t count, gavel_estimates *estimates) {
    (void)step;
    for (size_t i = 0; i < count; i++) of_group(i, &groups[i], estimates);
}
