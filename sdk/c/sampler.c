/* The export of a sampler: see gavel.h. */

#ifdef GAVEL_EXPORT_SAMPLER

#include "call.h"
#include "gavel.h"
#include "plugin.h"
#include <stdlib.h>
#include <string.h>

typedef exports_gavel_plugin_sampler_request_t host_request;
typedef exports_gavel_plugin_sampler_ended_group_t host_group;
typedef exports_gavel_plugin_sampler_ended_sample_t host_sample;
typedef exports_gavel_plugin_sampler_task_t host_task;
typedef exports_gavel_plugin_sampler_refusal_t host_refusal;

struct gavel_draws {
    const gavel_draw_request *request;
    exports_gavel_plugin_sampler_list_task_t draws;
    exports_gavel_plugin_sampler_list_refusal_t refusals;
    plugin_list_u8_t state;
    /* Why there are none. */
    const char *why;
};

/* ---- What the host gives. A call has a fresh instance, so its lists are never freed. ---- */

static gavel_ended_sample sample_of(const host_sample *sample) {
    gavel_named_number *metrics = gavel_alloc(sample->metrics.len * sizeof *metrics);
    for (size_t i = 0; i < sample->metrics.len; i++) {
        metrics[i] = (gavel_named_number){gavel_kept(sample->metrics.ptr[i].name), sample->metrics.ptr[i].value};
    }
    return (gavel_ended_sample){
        .outcome = (gavel_sample_outcome)sample->outcome,
        .has_reward = sample->reward.is_some,
        .reward = sample->reward.is_some ? sample->reward.val : 0,
        .metrics = metrics,
        .metrics_count = sample->metrics.len,
    };
}

static uint64_t row_of(const host_request *request, const host_task *task) {
    uint64_t row = task->row;
    for (uint32_t i = 0; i < task->dataset; i++) row += request->datasets.ptr[i].rows;
    return row;
}

static gavel_ended_group group_of(const host_request *request, const host_group *group) {
    gavel_ended_sample *samples = gavel_alloc(group->samples.len * sizeof *samples);
    for (size_t i = 0; i < group->samples.len; i++) samples[i] = sample_of(&group->samples.ptr[i]);
    return (gavel_ended_group){
        .draw = group->draw,
        .row = row_of(request, &group->task),
        .dataset = group->task.dataset,
        .task_id = gavel_kept(group->task_id),
        .data_source = group->data_source.is_some ? gavel_kept(group->data_source.val) : gavel_str(""),
        .version = group->version,
        .samples = samples,
        .samples_count = group->samples.len,
        .dropped = group->dropped.is_some ? gavel_kept(group->dropped.val) : gavel_str(""),
    };
}

static gavel_draw_request request_of(const host_request *request) {
    gavel_dataset *datasets = gavel_alloc(request->datasets.len * sizeof *datasets);
    uint64_t rows = 0;
    for (size_t i = 0; i < request->datasets.len; i++) {
        const exports_gavel_plugin_sampler_dataset_t *each = &request->datasets.ptr[i];
        datasets[i] = (gavel_dataset){each->rows, each->weight.is_some ? each->weight.val : 0};
        rows += each->rows;
    }
    gavel_ended_group *ended = gavel_alloc(request->ended.len * sizeof *ended);
    for (size_t i = 0; i < request->ended.len; i++) ended[i] = group_of(request, &request->ended.ptr[i]);
    return (gavel_draw_request){
        .step = request->step,
        .seed = request->seed,
        .datasets = datasets,
        .datasets_count = request->datasets.len,
        .rows = rows,
        .ended = ended,
        .ended_count = request->ended.len,
        .wanted = request->wanted,
        .next_draw = request->next_draw,
        .state = {(const char *)request->state.ptr, request->state.len},
    };
}

/* ---- What the plugin sets ---- */

/* Room for one more element of this size behind `count` of them, which the host frees with the answer. */
static void *grown(void *list, size_t count, size_t size) {
    /* The room doubles at each power of two. */
    if (count > 0 && (count & (count - 1)) != 0) return list;
    void *room = realloc(list, (count ? 2 * count : 1) * size);
    if (!room) abort();
    return room;
}

void gavel_draw(gavel_draws *draws, uint64_t row) {
    const gavel_draw_request *request = draws->request;
    host_task task = {0, row};
    /* A row that does not exist is of a dataset that does not exist, which the host refuses. */
    while (task.dataset < request->datasets_count && task.row >= request->datasets[task.dataset].rows) {
        task.row -= request->datasets[task.dataset++].rows;
    }
    draws->draws.ptr = grown(draws->draws.ptr, draws->draws.len, sizeof task);
    draws->draws.ptr[draws->draws.len++] = task;
}

void gavel_refuse_group(gavel_draws *draws, uint64_t draw, const char *reason) {
    host_refusal refusal = {.draw = draw};
    plugin_string_dup(&refusal.reason, reason);
    draws->refusals.ptr = grown(draws->refusals.ptr, draws->refusals.len, sizeof refusal);
    draws->refusals.ptr[draws->refusals.len++] = refusal;
}

void gavel_next_state(gavel_draws *draws, const void *bytes, size_t count) {
    free(draws->state.ptr);
    draws->state = (plugin_list_u8_t){gavel_given(count), count};
    if (count) memcpy(draws->state.ptr, bytes, count);
}

void gavel_no_draws(gavel_draws *draws, const char *what) {
    // The text may be in a buffer of the rule.
    if (!draws->why) draws->why = gavel_concat(what, NULL);
}

bool gavel_mean_reward(const gavel_ended_group *group, double *mean) {
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < group->samples_count; i++) {
        if (!group->samples[i].has_reward) continue;
        sum += group->samples[i].reward;
        count++;
    }
    if (count) *mean = sum / (double)count;
    return count > 0;
}

uint64_t gavel_random(uint64_t *seed) {
    *seed += 0x9e3779b97f4a7c15;
    uint64_t mixed = *seed;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111eb;
    return mixed ^ (mixed >> 31);
}

/* ---- The call ---- */

bool exports_gavel_plugin_sampler_sample(host_request *request, exports_gavel_plugin_sampler_answer_t *ret,
                                         exports_gavel_plugin_sampler_failure_t *err) {
    gavel_draw_request read = request_of(request);
    gavel_draws draws = {.request = &read};
    draws.draws.ptr = gavel_given(sizeof *draws.draws.ptr);
    draws.refusals.ptr = gavel_given(sizeof *draws.refusals.ptr);
    draws.state.ptr = gavel_given(0);
    plugin_sample(&read, &draws);
    if (draws.why) {
        err->tag = GAVEL_PLUGIN_TYPES_FAILURE_INTERNAL;
        plugin_string_dup(&err->val.internal, draws.why);
        gavel_free_call();
        return false;
    }
    gavel_free_call();
    ret->draws = draws.draws;
    ret->refusals = draws.refusals;
    ret->state = draws.state;
    return true;
}

#endif
