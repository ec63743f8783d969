/* The export of an advantage: see gavel.h. */

#ifdef GAVEL_EXPORT_ADVANTAGE

#include "call.h"
#include "gavel.h"
#include "plugin.h"
#include <stdlib.h>
#include <string.h>

typedef exports_gavel_plugin_advantage_group_t host_group;
typedef exports_gavel_plugin_advantage_scored_sample_t host_sample;
typedef exports_gavel_plugin_advantage_trajectory_t host_trajectory;
typedef exports_gavel_plugin_advantage_part_t host_part;
typedef exports_gavel_plugin_advantage_sample_advantage_t host_advantage;

/* No advantage was set yet. */
#define NONE UINT8_MAX

struct gavel_estimates {
    const gavel_group *groups;
    size_t count;
    exports_gavel_plugin_advantage_list_list_sample_advantage_t advantages;
    gavel_text earlier;
    plugin_list_u8_t state;
    /* Why there are none. */
    const char *why;
};

/* ---- What the host gives. A call has a fresh instance, so its lists are never freed. ---- */

static gavel_part part_of(const host_part *part) {
    gavel_named_number *metrics = gavel_alloc(part->metrics.len * sizeof *metrics);
    for (size_t i = 0; i < part->metrics.len; i++) {
        metrics[i] = (gavel_named_number){gavel_kept(part->metrics.ptr[i].name), part->metrics.ptr[i].value};
    }
    return (gavel_part){
        .reward = gavel_kept(part->reward),
        .weight = part->weight,
        .has_score = part->score.is_some,
        .score = part->score.is_some ? part->score.val : 0,
        .counted = part->counted,
        .metrics = metrics,
        .metrics_count = part->metrics.len,
    };
}

static gavel_numbers numbers_of(const host_trajectory *trajectory) {
    gavel_span *learned = gavel_alloc(trajectory->learned.len * sizeof *learned);
    for (size_t i = 0; i < trajectory->learned.len; i++) {
        learned[i] = (gavel_span){trajectory->learned.ptr[i].start, trajectory->learned.ptr[i].end};
    }
    gavel_token_credit *credit = gavel_alloc(trajectory->credit.len * sizeof *credit);
    for (size_t i = 0; i < trajectory->credit.len; i++) {
        const exports_gavel_plugin_advantage_token_credit_t *each = &trajectory->credit.ptr[i];
        credit[i] = (gavel_token_credit){{each->tokens.start, each->tokens.end}, each->value};
    }
    return (gavel_numbers){
        .index = trajectory->index,
        .finish_reason = (gavel_finish_reason)trajectory->finish_reason,
        .prompt_tokens = trajectory->prompt_tokens,
        .response_tokens = trajectory->response_tokens,
        .learned = learned,
        .learned_count = trajectory->learned.len,
        .credit = credit,
        .credit_count = trajectory->credit.len,
        .penalty = trajectory->penalty,
        .logprob = trajectory->logprob,
        .oldest_version = trajectory->oldest_version.is_some ? (int64_t)trajectory->oldest_version.val : -1,
        .newest_version = trajectory->newest_version.is_some ? (int64_t)trajectory->newest_version.val : -1,
    };
}

static gavel_scored_sample sample_of(const host_sample *sample) {
    gavel_part *parts = gavel_alloc(sample->parts.len * sizeof *parts);
    for (size_t i = 0; i < sample->parts.len; i++) parts[i] = part_of(&sample->parts.ptr[i]);
    gavel_numbers *trajectories = gavel_alloc(sample->trajectories.len * sizeof *trajectories);
    for (size_t i = 0; i < sample->trajectories.len; i++) trajectories[i] = numbers_of(&sample->trajectories.ptr[i]);
    return (gavel_scored_sample){
        .index = sample->index,
        .reward = sample->reward,
        .parts = parts,
        .parts_count = sample->parts.len,
        .trajectories = trajectories,
        .trajectories_count = sample->trajectories.len,
    };
}

static gavel_group group_of(const host_group *group) {
    gavel_scored_sample *samples = gavel_alloc(group->samples.len * sizeof *samples);
    for (size_t i = 0; i < group->samples.len; i++) samples[i] = sample_of(&group->samples.ptr[i]);
    return (gavel_group){
        .task_id = gavel_kept(group->task_id),
        .data_source = group->data_source.is_some ? gavel_kept(group->data_source.val) : gavel_str(""),
        .speaker = gavel_kept(group->speaker),
        .samples = samples,
        .samples_count = group->samples.len,
    };
}

/* ---- What the plugin sets ---- */

static plugin_list_f64_t given_numbers(const double *values, size_t count) {
    plugin_list_f64_t list = {gavel_given(count * sizeof *list.ptr), count};
    if (count) memcpy(list.ptr, values, count * sizeof *list.ptr);
    return list;
}

/* The place of the advantage of a sample, which is free; NULL if there is no such sample. */
static host_advantage *place(gavel_estimates *estimates, size_t group, size_t sample) {
    if (group >= estimates->count || sample >= estimates->groups[group].samples_count) {
        gavel_no_advantages(estimates, "an advantage was set for a sample that does not exist");
        return NULL;
    }
    host_advantage *advantage = &estimates->advantages.ptr[group].ptr[sample];
    if (advantage->tag != NONE) exports_gavel_plugin_advantage_sample_advantage_free(advantage);
    return advantage;
}

void gavel_advantage(gavel_estimates *estimates, size_t group, size_t sample, double value) {
    host_advantage *advantage = place(estimates, group, sample);
    if (!advantage) return;
    advantage->tag = EXPORTS_GAVEL_PLUGIN_ADVANTAGE_SAMPLE_ADVANTAGE_SAMPLE;
    advantage->val.sample = value;
}

void gavel_advantage_of_trajectories(gavel_estimates *estimates, size_t group, size_t sample, const double *values) {
    host_advantage *advantage = place(estimates, group, sample);
    if (!advantage) return;
    size_t count = estimates->groups[group].samples[sample].trajectories_count;
    advantage->tag = EXPORTS_GAVEL_PLUGIN_ADVANTAGE_SAMPLE_ADVANTAGE_TRAJECTORIES;
    advantage->val.trajectories = given_numbers(values, count);
}

void gavel_advantage_of_tokens(gavel_estimates *estimates, size_t group, size_t sample, const double *const *values) {
    host_advantage *advantage = place(estimates, group, sample);
    if (!advantage) return;
    const gavel_scored_sample *of = &estimates->groups[group].samples[sample];
    plugin_list_list_f64_t all = {gavel_given(of->trajectories_count * sizeof *all.ptr), of->trajectories_count};
    for (size_t i = 0; i < all.len; i++) all.ptr[i] = given_numbers(values[i], of->trajectories[i].response_tokens);
    advantage->tag = EXPORTS_GAVEL_PLUGIN_ADVANTAGE_SAMPLE_ADVANTAGE_TOKENS;
    advantage->val.tokens = all;
}

gavel_text gavel_earlier_state(const gavel_estimates *estimates) {
    return estimates->earlier;
}

void gavel_keep_state(gavel_estimates *estimates, const void *bytes, size_t count) {
    free(estimates->state.ptr);
    estimates->state = (plugin_list_u8_t){gavel_given(count), count};
    if (count) memcpy(estimates->state.ptr, bytes, count);
}

void gavel_no_advantages(gavel_estimates *estimates, const char *what) {
    // The text may be in a buffer of the rule.
    if (!estimates->why) estimates->why = gavel_concat(what, NULL);
}

uint32_t gavel_learned_tokens(const gavel_numbers *trajectory) {
    uint32_t count = 0;
    for (size_t i = 0; i < trajectory->learned_count; i++) {
        count += trajectory->learned[i].end - trajectory->learned[i].start;
    }
    return count;
}

/* ---- The call ---- */

bool exports_gavel_plugin_advantage_estimate(uint64_t step, exports_gavel_plugin_advantage_list_group_t *groups,
                                             plugin_list_u8_t *state, exports_gavel_plugin_advantage_estimates_t *ret,
                                             exports_gavel_plugin_advantage_failure_t *err) {
    gavel_group *read = gavel_alloc(groups->len * sizeof *read);
    gavel_estimates estimates = {.groups = read, .count = groups->len};
    estimates.earlier = (gavel_text){(const char *)state->ptr, state->len};
    estimates.state.ptr = gavel_given(0);
    estimates.advantages.ptr = gavel_given(groups->len * sizeof *estimates.advantages.ptr);
    estimates.advantages.len = groups->len;
    for (size_t i = 0; i < groups->len; i++) {
        read[i] = group_of(&groups->ptr[i]);
        size_t count = read[i].samples_count;
        estimates.advantages.ptr[i].ptr = gavel_given(count * sizeof *estimates.advantages.ptr[i].ptr);
        estimates.advantages.ptr[i].len = count;
        for (size_t sample = 0; sample < count; sample++) estimates.advantages.ptr[i].ptr[sample].tag = NONE;
    }
    plugin_estimate(step, read, groups->len, &estimates);
    for (size_t i = 0; i < groups->len; i++) {
        for (size_t sample = 0; sample < read[i].samples_count; sample++) {
            if (estimates.advantages.ptr[i].ptr[sample].tag != NONE) continue;
            const char *of_group = gavel_concat(" of group ", gavel_integer((int64_t)i), NULL);
            const char *number = gavel_integer((int64_t)sample);
            gavel_no_advantages(&estimates, gavel_concat("sample ", number, of_group, " has no advantage", NULL));
        }
    }
    if (estimates.why) {
        err->tag = GAVEL_PLUGIN_TYPES_FAILURE_INTERNAL;
        plugin_string_dup(&err->val.internal, estimates.why);
        gavel_free_call();
        return false;
    }
    gavel_free_call();
    ret->advantages = estimates.advantages;
    ret->state = estimates.state;
    return true;
}

#endif
