// The reward of a sample minus the mean of its group, divided by the deviation
// of the group, or not.

#include "gavel.h"
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace {

// Keeps a division by the deviation finite.
constexpr double epsilon = 1e-6;

// Whether a difference is divided by the deviation of the group.
bool is_scaled;

// The advantages of the samples of a group, exactly 0 where all rewards are equal.
void of_group(size_t number, const gavel_group &group, gavel_estimates *estimates) {
    const std::span samples(group.samples, group.samples_count);
    const bool is_equal = std::ranges::all_of(samples, [&](auto &sample) { return sample.reward == samples[0].reward; });
    const auto count = static_cast<double>(samples.size());
    const double sum = std::accumulate(samples.begin(), samples.end(), 0.0,
                                       [](double sum, auto &sample) { return sum + sample.reward; });
    const double mean = sum / count;
    const double squares = std::accumulate(samples.begin(), samples.end(), 0.0, [=](double sum, auto &sample) {
        return sum + (sample.reward - mean) * (sample.reward - mean);
    });
    const double divisor = is_scaled && !is_equal ? std::sqrt(squares / (count - 1)) + epsilon : 1;
    for (size_t i = 0; i < samples.size(); i++) {
        gavel_advantage(estimates, number, i, is_equal ? 0 : (samples[i].reward - mean) / divisor);
    }
}

}  // namespace

// Once, before any step; refusing stops a run before it starts.
bool plugin_init(gavel_params *params, gavel_info *info) {
    const gavel_text scale = gavel_param_text(params, "scale", "group");
    is_scaled = gavel_equal(scale, gavel_str("group"));
    if (!is_scaled && !gavel_equal(scale, gavel_str("none"))) {
        return gavel_refuse(params, "`scale` must be \"group\" or \"none\"");
    }
    *info = {.name = "{{name}}", .version = "0.1.0", .pure = true, .min = 0, .max = 0};
    return true;
}

// Once for the groups that the policy learns from at once: an advantage for each sample of each group.
void plugin_estimate(uint64_t, const gavel_group *groups, size_t count, gavel_estimates *estimates) {
    for (size_t i = 0; i < count; i++) of_group(i, groups[i], estimates);
}
