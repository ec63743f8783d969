/* Connects the functions of gavel.h with those that the build generates from
 * the contract (build/bindings/plugin.h): memory, parameters, exports. */

#include "call.h"
#include "gavel.h"
#include "plugin.h"
#include <stdlib.h>
#include <string.h>

#if defined(GAVEL_EXPORT_REWARD) || defined(GAVEL_EXPORT_JUDGER)
#define GAVEL_HAS_SAMPLES
#endif

/* ---- Memory: what a call allocates is freed at its end ---- */

static void **kept;
static size_t kept_count, kept_capacity;

/* Takes over a block of malloc until the call ends. */
static void *keep(void *block) {
    if (!block) abort();
    if (kept_count == kept_capacity) {
        kept_capacity = kept_capacity ? 2 * kept_capacity : 64;
        kept = realloc(kept, kept_capacity * sizeof *kept);
        if (!kept) abort();
    }
    return kept[kept_count++] = block;
}

void *gavel_alloc(size_t size) {
    return keep(malloc(size ? size : 1));
}

void gavel_free_call(void) {
    for (size_t i = 0; i < kept_count; i++) free(kept[i]);
    kept_count = 0;
}

gavel_text gavel_kept(plugin_string_t text) {
    char *block = text.len ? realloc(text.ptr, text.len + 1) : malloc(1);
    keep(block);
    block[text.len] = 0;
    return (gavel_text){block, text.len};
}

plugin_string_t gavel_lent(gavel_text text) {
    return (plugin_string_t){(uint8_t *)text.ptr, text.len};
}

/* Text for the host, which frees it. */
static plugin_string_t give(const char *text) {
    plugin_string_t given;
    plugin_string_dup(&given, text);
    return given;
}

/* ---- Parameters ---- */

struct gavel_params {
    gavel_text json;
    const char *refused;
    const char **asked;
    size_t asked_count;
};

bool gavel_refuse(gavel_params *params, const char *what) {
    if (!params->refused) params->refused = what;
    return false;
}

gavel_text gavel_param_json(gavel_params *params, const char *name) {
    const char **asked = gavel_alloc((params->asked_count + 1) * sizeof *asked);
    if (params->asked_count) memcpy(asked, params->asked, params->asked_count * sizeof *asked);
    asked[params->asked_count++] = name;
    params->asked = asked;
    gavel_text json = {"", 0};
    gavel_json_get(params->json, name, &json);
    return json;
}

static void wrong_type(gavel_params *params, const char *name, gavel_text found, const char *expected) {
    gavel_refuse(params, gavel_concat("parameter `", name, "`: expected ", expected, ", found ", gavel_c_str(found), NULL));
}

gavel_text gavel_param_text(gavel_params *params, const char *name, const char *otherwise) {
    gavel_text json = gavel_param_json(params, name), text = gavel_str(otherwise);
    if (json.len && !gavel_json_string(json, &text)) wrong_type(params, name, json, "a text");
    return text;
}

double gavel_param_number(gavel_params *params, const char *name, double otherwise) {
    gavel_text json = gavel_param_json(params, name);
    double number = otherwise;
    if (json.len && !gavel_json_number(json, &number)) wrong_type(params, name, json, "a number");
    return number;
}

bool gavel_param_bool(gavel_params *params, const char *name, bool otherwise) {
    gavel_text json = gavel_param_json(params, name);
    bool value = otherwise;
    if (json.len && !gavel_json_bool(json, &value)) wrong_type(params, name, json, "true or false");
    return value;
}

static bool was_asked(const gavel_params *params, gavel_text key) {
    for (size_t i = 0; i < params->asked_count; i++) {
        if (gavel_equal(key, gavel_str(params->asked[i]))) return true;
    }
    return false;
}

static void refuse_unknown(gavel_params *params) {
    gavel_text key;
    for (size_t i = 0; gavel_json_key(params->json, i, &key); i++) {
        if (was_asked(params, key)) continue;
        const char *message = gavel_concat("unknown parameter `", key.ptr, "`, expected ", NULL);
        if (!params->asked_count) message = gavel_concat(message, "none", NULL);
        for (size_t asked = 0; asked < params->asked_count; asked++) {
            message = gavel_concat(message, asked ? ", `" : "`", params->asked[asked], "`", NULL);
        }
        gavel_refuse(params, message);
    }
}

/* Its memory is never freed: the plugin keeps its parameters. */
bool exports_gavel_plugin_lifecycle_init(plugin_string_t *params_json, exports_gavel_plugin_lifecycle_info_t *ret,
                                         plugin_string_t *err) {
    gavel_params params = {.json = gavel_kept(*params_json)};
    gavel_info info = {0};
    if (!gavel_json_valid(params.json) || params.json.ptr[0] != '{') {
        gavel_refuse(&params, "the parameters must be a JSON object");
    } else if (plugin_init(&params, &info)) {
        refuse_unknown(&params);
    } else {
        gavel_refuse(&params, "plugin_init returned false");
    }
    if (!params.refused && !(info.name && info.version)) gavel_refuse(&params, "plugin_init set no name or no version");
    kept_count = 0;
    if (params.refused) {
        *err = give(params.refused);
        return false;
    }
    ret->name = give(info.name);
    ret->version = give(info.version);
    ret->pure = info.pure;
    ret->score_range.is_some = info.min != info.max;
    ret->score_range.val.min = info.min;
    ret->score_range.val.max = info.max;
    return true;
}

#if defined(GAVEL_HAS_SAMPLES) || defined(GAVEL_EXPORT_AGENT)

/* ---- Messages ---- */

gavel_message gavel_joined(gavel_plugin_types_message_t *message) {
    size_t len = 0;
    for (size_t i = 0; i < message->content.len; i++) {
        gavel_plugin_types_content_part_t part = message->content.ptr[i];
        if (part.tag == GAVEL_PLUGIN_TYPES_CONTENT_PART_TEXT) len += part.val.text.len;
    }
    char *text = gavel_alloc(len + 1), *end = text;
    for (size_t i = 0; i < message->content.len; i++) {
        gavel_plugin_types_content_part_t part = message->content.ptr[i];
        if (part.tag != GAVEL_PLUGIN_TYPES_CONTENT_PART_TEXT || !part.val.text.len) continue;
        memcpy(end, part.val.text.ptr, part.val.text.len);
        end += part.val.text.len;
    }
    *end = 0;
    gavel_message found = {(gavel_role)message->role, {text, len}};
    gavel_plugin_types_message_free(message);
    return found;
}

const gavel_message *gavel_all_joined(gavel_plugin_types_message_t *messages, size_t count) {
    gavel_message *found = gavel_alloc(count * sizeof *found);
    for (size_t i = 0; i < count; i++) found[i] = gavel_joined(&messages[i]);
    if (count) free(messages);
    return found;
}

const gavel_tool_function *gavel_all_kept(gavel_plugin_types_tool_spec_t *specs, size_t count) {
    gavel_tool_function *functions = gavel_alloc(count * sizeof *functions);
    for (size_t i = 0; i < count; i++) {
        functions[i] = (gavel_tool_function){gavel_kept(specs[i].name), gavel_kept(specs[i].description),
                                             gavel_kept(specs[i].parameters)};
    }
    if (count) free(specs);
    return functions;
}

#endif

#ifdef GAVEL_HAS_SAMPLES

/* ---- The sample and the reference ---- */

static gavel_plugin_samples_own_trajectory_t *trajectories;
static size_t trajectories_count;

static gavel_plugin_samples_borrow_sample_t of(gavel_sample sample) {
    return (gavel_plugin_samples_borrow_sample_t){sample.handle};
}

static gavel_plugin_samples_borrow_trajectory_t of_trajectory(gavel_trajectory trajectory) {
    return (gavel_plugin_samples_borrow_trajectory_t){trajectory.handle};
}

static gavel_plugin_references_borrow_reference_t of_reference(gavel_reference reference) {
    return (gavel_plugin_references_borrow_reference_t){reference.handle};
}

gavel_text gavel_response(gavel_sample sample) {
    plugin_string_t text;
    gavel_plugin_samples_method_sample_response(of(sample), &text);
    return gavel_kept(text);
}

gavel_text gavel_task_id(gavel_sample sample) {
    plugin_string_t text;
    gavel_plugin_samples_method_sample_task_id(of(sample), &text);
    return gavel_kept(text);
}

bool gavel_data_source(gavel_sample sample, gavel_text *source) {
    plugin_string_t text;
    if (!gavel_plugin_samples_method_sample_data_source(of(sample), &text)) return false;
    *source = gavel_kept(text);
    return true;
}

uint32_t gavel_group_index(gavel_sample sample) {
    return gavel_plugin_samples_method_sample_group_index(of(sample));
}

const gavel_message *gavel_prompt(gavel_sample sample, size_t *count) {
    gavel_plugin_samples_list_message_t list;
    gavel_plugin_samples_method_sample_prompt(of(sample), &list);
    *count = list.len;
    return gavel_all_joined(list.ptr, list.len);
}

bool gavel_prior(gavel_sample sample, const char *name, gavel_prior_verdict *verdict) {
    plugin_string_t asked;
    plugin_string_set(&asked, name);
    gavel_plugin_samples_prior_verdict_t said;
    if (!gavel_plugin_samples_method_sample_verdict(of(sample), &asked, &said)) return false;
    *verdict = (gavel_prior_verdict){.kind = (gavel_prior_kind)said.tag, .text = {"", 0}, .payload = {"", 0}};
    if (said.tag == GAVEL_PLUGIN_TYPES_PRIOR_VERDICT_SCORED) {
        gavel_plugin_types_score_t *score = &said.val.scored;
        gavel_named_number *metrics = gavel_alloc(score->metrics.len * sizeof *metrics);
        for (size_t i = 0; i < score->metrics.len; i++) {
            metrics[i] = (gavel_named_number){gavel_kept(score->metrics.ptr[i].name), score->metrics.ptr[i].value};
        }
        if (score->metrics.len) free(score->metrics.ptr);
        if (score->credit.len) free(score->credit.ptr);
        verdict->score = score->value;
        verdict->metrics = metrics;
        verdict->metrics_count = score->metrics.len;
        if (score->note.is_some) verdict->text = gavel_kept(score->note.val);
        if (score->payload.is_some) verdict->payload = gavel_kept(score->payload.val);
    } else if (said.tag == GAVEL_PLUGIN_TYPES_PRIOR_VERDICT_ABSTAINED) {
        verdict->text = gavel_kept(said.val.abstained);
    }
    return true;
}

uint32_t gavel_trajectory_count(gavel_sample sample) {
    return gavel_plugin_samples_method_sample_trajectory_count(of(sample));
}

bool gavel_trajectory_at(gavel_sample sample, uint32_t index, gavel_trajectory *trajectory) {
    gavel_plugin_samples_own_trajectory_t own;
    if (!gavel_plugin_samples_method_sample_trajectory(of(sample), index, &own)) return false;
    trajectories = realloc(trajectories, (trajectories_count + 1) * sizeof *trajectories);
    if (!trajectories) abort();
    trajectories[trajectories_count++] = own;
    trajectory->handle = gavel_plugin_samples_borrow_trajectory(own).__handle;
    return true;
}

uint32_t gavel_message_count(gavel_trajectory trajectory) {
    return gavel_plugin_samples_method_trajectory_message_count(of_trajectory(trajectory));
}

bool gavel_message_at(gavel_trajectory trajectory, uint32_t index, gavel_message *message) {
    gavel_plugin_samples_message_t found;
    if (!gavel_plugin_samples_method_trajectory_message(of_trajectory(trajectory), index, &found)) return false;
    *message = gavel_joined(&found);
    return true;
}

gavel_text gavel_trajectory_response(gavel_trajectory trajectory) {
    plugin_string_t text;
    gavel_plugin_samples_method_trajectory_response(of_trajectory(trajectory), &text);
    return gavel_kept(text);
}

gavel_finish_reason gavel_finished(gavel_trajectory trajectory) {
    return (gavel_finish_reason)gavel_plugin_samples_method_trajectory_finish_reason(of_trajectory(trajectory));
}

uint32_t gavel_turns(gavel_trajectory trajectory) {
    return gavel_plugin_samples_method_trajectory_turns(of_trajectory(trajectory));
}

uint32_t gavel_tool_turns(gavel_trajectory trajectory) {
    return gavel_plugin_samples_method_trajectory_tool_turns(of_trajectory(trajectory));
}

int64_t gavel_response_tokens(gavel_trajectory trajectory) {
    uint32_t tokens;
    bool known = gavel_plugin_samples_method_trajectory_response_tokens(of_trajectory(trajectory), &tokens);
    return known ? (int64_t)tokens : -1;
}

/* ---- The trace ---- */

gavel_text gavel_speaker(gavel_trajectory trajectory) {
    plugin_string_t text;
    gavel_plugin_samples_method_trajectory_speaker(of_trajectory(trajectory), &text);
    return gavel_kept(text);
}

const gavel_message *gavel_trajectory_opening(gavel_trajectory trajectory, size_t *count) {
    gavel_plugin_samples_list_message_t list;
    gavel_plugin_samples_method_trajectory_opening(of_trajectory(trajectory), &list);
    *count = list.len;
    return gavel_all_joined(list.ptr, list.len);
}

const gavel_tool_function *gavel_offered(gavel_trajectory trajectory, size_t *count) {
    gavel_plugin_samples_list_tool_spec_t list;
    gavel_plugin_samples_method_trajectory_functions(of_trajectory(trajectory), &list);
    *count = list.len;
    return gavel_all_kept(list.ptr, list.len);
}

const gavel_ended_call *gavel_calls(gavel_trajectory trajectory, size_t *count) {
    gavel_plugin_samples_list_ended_call_t list;
    gavel_plugin_samples_method_trajectory_calls(of_trajectory(trajectory), &list);
    gavel_ended_call *calls = gavel_alloc(list.len * sizeof *calls);
    for (size_t i = 0; i < list.len; i++) {
        gavel_plugin_samples_ended_call_t *call = &list.ptr[i];
        gavel_text function = call->function.is_some ? gavel_kept(call->function.val) : (gavel_text){"", 0};
        calls[i] = (gavel_ended_call){call->turn, function, (gavel_call_ending)call->ending};
    }
    if (list.len) free(list.ptr);
    *count = list.len;
    return calls;
}

bool gavel_turn_finished(gavel_trajectory trajectory, uint32_t index, gavel_finish_reason *reason) {
    gavel_plugin_samples_finish_reason_t found;
    if (!gavel_plugin_samples_method_trajectory_turn_finish_reason(of_trajectory(trajectory), index, &found)) {
        return false;
    }
    *reason = (gavel_finish_reason)found;
    return true;
}

int64_t gavel_message_tokens(gavel_trajectory trajectory, uint32_t index) {
    uint32_t tokens;
    bool known = gavel_plugin_samples_method_trajectory_message_tokens(of_trajectory(trajectory), index, &tokens);
    return known ? (int64_t)tokens : -1;
}

bool gavel_state(gavel_trajectory trajectory, const char *name, gavel_text *json) {
    plugin_string_t asked, text;
    plugin_string_set(&asked, name);
    if (!gavel_plugin_samples_method_trajectory_state(of_trajectory(trajectory), &asked, &text)) return false;
    *json = gavel_kept(text);
    return true;
}

bool gavel_extra(gavel_sample sample, gavel_text *json) {
    plugin_string_t text;
    if (!gavel_plugin_samples_method_sample_extra(of(sample), &text)) return false;
    *json = gavel_kept(text);
    return true;
}

/* ---- The reference ---- */

bool gavel_ground_truth(gavel_reference reference, gavel_text *truth) {
    plugin_string_t text;
    if (!gavel_plugin_references_method_reference_ground_truth(of_reference(reference), &text)) return false;
    *truth = gavel_kept(text);
    return true;
}

bool gavel_column(gavel_reference reference, const char *name, gavel_text *json) {
    plugin_string_t asked, text;
    plugin_string_set(&asked, name);
    if (!gavel_plugin_references_method_reference_column(of_reference(reference), &asked, &text)) return false;
    *json = gavel_kept(text);
    return true;
}

gavel_text gavel_columns(gavel_reference reference) {
    plugin_string_t text;
    gavel_plugin_references_method_reference_columns(of_reference(reference), &text);
    return gavel_kept(text);
}

/* ---- Verdicts ---- */

struct gavel_verdict {
    enum { UNSET, SCORED, ABSTAINED, FAILED } state;
    uint8_t failure;
    const char *why;
    double value;
    const char *note;
    const char *payload;
    gavel_plugin_types_metric_t *metrics;
    size_t metrics_count;
    gavel_plugin_types_credit_t *credit;
    size_t credit_count;
};

void gavel_score(gavel_verdict *verdict, double value) {
    verdict->state = SCORED;
    verdict->value = value;
}

/* A list with room for one more, for the host, which frees it. */
static void *grown(void *list, size_t count, size_t size) {
    void *larger = realloc(list, (count + 1) * size);
    if (!larger) abort();
    return larger;
}

void gavel_metric(gavel_verdict *verdict, const char *name, double value) {
    verdict->metrics = grown(verdict->metrics, verdict->metrics_count, sizeof *verdict->metrics);
    verdict->metrics[verdict->metrics_count++] = (gavel_plugin_types_metric_t){give(name), value};
}

void gavel_credit(gavel_verdict *verdict, uint32_t trajectory, uint32_t message, uint32_t start, uint32_t end,
                  double value) {
    verdict->credit = grown(verdict->credit, verdict->credit_count, sizeof *verdict->credit);
    verdict->credit[verdict->credit_count++] =
        (gavel_plugin_types_credit_t){trajectory, message, start, end, value};
}

void gavel_note(gavel_verdict *verdict, const char *note) {
    verdict->note = note;
}

void gavel_payload(gavel_verdict *verdict, const char *json) {
    verdict->payload = json;
}

void gavel_abstain(gavel_verdict *verdict, const char *why) {
    verdict->state = ABSTAINED;
    verdict->why = why;
}

static void fail(gavel_verdict *verdict, uint8_t failure, const char *what) {
    verdict->state = FAILED;
    verdict->failure = failure;
    verdict->why = what;
}

void gavel_invalid_input(gavel_verdict *verdict, const char *what) {
    fail(verdict, GAVEL_PLUGIN_TYPES_FAILURE_INVALID_INPUT, what);
}

void gavel_unavailable(gavel_verdict *verdict, const char *what) {
    fail(verdict, GAVEL_PLUGIN_TYPES_FAILURE_UNAVAILABLE, what);
}

void gavel_internal(gavel_verdict *verdict, const char *what) {
    fail(verdict, GAVEL_PLUGIN_TYPES_FAILURE_INTERNAL, what);
}

static void forget(gavel_verdict *verdict) {
    for (size_t i = 0; i < verdict->metrics_count; i++) plugin_string_free(&verdict->metrics[i].name);
    free(verdict->metrics);
    free(verdict->credit);
}

/* Gives a verdict to the host; false if it is a failure, in `err`. */
static bool deliver(gavel_verdict *verdict, gavel_plugin_types_verdict_t *ret, gavel_plugin_types_failure_t *err) {
    if (verdict->state == UNSET) gavel_internal(verdict, "the plugin gave no verdict");
    if (verdict->state == SCORED) {
        ret->tag = GAVEL_PLUGIN_TYPES_VERDICT_SCORED;
        gavel_plugin_types_score_t *score = &ret->val.scored;
        score->value = verdict->value;
        score->metrics.ptr = verdict->metrics;
        score->metrics.len = verdict->metrics_count;
        score->credit.ptr = verdict->credit;
        score->credit.len = verdict->credit_count;
        score->note.is_some = verdict->note != NULL;
        if (verdict->note) score->note.val = give(verdict->note);
        score->payload.is_some = verdict->payload != NULL;
        if (verdict->payload) score->payload.val = give(verdict->payload);
        return true;
    }
    forget(verdict);
    if (verdict->state == ABSTAINED) {
        ret->tag = GAVEL_PLUGIN_TYPES_VERDICT_ABSTAINED;
        ret->val.abstained = give(verdict->why);
        return true;
    }
    err->tag = verdict->failure;
    /* The text is at the same place in each case. */
    err->val.internal = give(verdict->why);
    return false;
}

/* The end of every call. */
static void end_call(gavel_plugin_references_borrow_reference_t reference) {
    for (size_t i = 0; i < trajectories_count; i++) gavel_plugin_samples_trajectory_drop_own(trajectories[i]);
    trajectories_count = 0;
    gavel_plugin_references_reference_drop_borrow(reference);
    gavel_free_call();
}

#ifdef GAVEL_EXPORT_REWARD
bool exports_gavel_plugin_reward_score(exports_gavel_plugin_reward_borrow_sample_t sample,
                                       exports_gavel_plugin_reward_borrow_reference_t reference,
                                       exports_gavel_plugin_reward_verdict_t *ret,
                                       exports_gavel_plugin_reward_failure_t *err) {
    gavel_verdict verdict = {0};
    plugin_score((gavel_sample){sample.__handle}, (gavel_reference){reference.__handle}, &verdict);
    bool given = deliver(&verdict, ret, err);
    gavel_plugin_samples_sample_drop_borrow(sample);
    end_call(reference);
    return given;
}
#endif

#ifdef GAVEL_EXPORT_JUDGER
bool exports_gavel_plugin_judger_judge(exports_gavel_plugin_judger_list_own_sample_t *samples,
                                       exports_gavel_plugin_judger_borrow_reference_t reference,
                                       exports_gavel_plugin_judger_list_verdict_t *ret,
                                       exports_gavel_plugin_judger_failure_t *err) {
    size_t count = samples->len;
    gavel_sample *given = gavel_alloc(count * sizeof *given);
    gavel_verdict *verdicts = gavel_alloc(count * sizeof *verdicts);
    gavel_verdict **each = gavel_alloc(count * sizeof *each);
    memset(verdicts, 0, count * sizeof *verdicts);
    for (size_t i = 0; i < count; i++) {
        given[i].handle = gavel_plugin_samples_borrow_sample(samples->ptr[i]).__handle;
        each[i] = &verdicts[i];
    }
    plugin_judge(given, count, (gavel_reference){reference.__handle}, each);

    ret->ptr = count ? malloc(count * sizeof *ret->ptr) : NULL;
    ret->len = 0;
    if (count && !ret->ptr) abort();
    bool all = true;
    for (size_t i = 0; i < count; i++) {
        if (!all) {
            forget(&verdicts[i]);
        } else if (deliver(&verdicts[i], &ret->ptr[i], err)) {
            ret->len++;
        } else {
            all = false;
        }
    }
    if (!all) exports_gavel_plugin_judger_list_verdict_free(ret);
    for (size_t i = 0; i < count; i++) gavel_plugin_samples_sample_drop_own(samples->ptr[i]);
    if (count) free(samples->ptr);
    end_call(reference);
    return all;
}
#endif

#endif

/* ---- Asking models ---- */

#if defined(GAVEL_IMPORT_CHAT) || defined(GAVEL_IMPORT_REWARD_MODEL)

static gavel_plugin_types_message_t *gavel_lent_messages(const gavel_message *given, size_t count) {
    gavel_plugin_types_message_t *messages = gavel_alloc(count * sizeof *messages);
    gavel_plugin_types_content_part_t *parts = gavel_alloc(count * sizeof *parts);
    memset(messages, 0, count * sizeof *messages);
    for (size_t m = 0; m < count; m++) {
        parts[m].tag = GAVEL_PLUGIN_TYPES_CONTENT_PART_TEXT;
        parts[m].val.text = gavel_lent(given[m].text);
        messages[m].role = (gavel_plugin_types_role_t)given[m].role;
        messages[m].content.ptr = &parts[m];
        messages[m].content.len = 1;
    }
    return messages;
}

#endif

/* ---- Chat ---- */

#ifdef GAVEL_IMPORT_CHAT

void gavel_chat(const gavel_chat_request *requests, size_t count, gavel_chat_reply *replies) {
    gavel_plugin_chat_list_request_t sent = {gavel_alloc(count * sizeof *sent.ptr), count};
    for (size_t i = 0; i < count; i++) {
        const gavel_chat_request *request = &requests[i];
        sent.ptr[i].endpoint = gavel_lent(gavel_str(request->endpoint));
        sent.ptr[i].messages.ptr = gavel_lent_messages(request->messages, request->count);
        sent.ptr[i].messages.len = request->count;
        sent.ptr[i].options = gavel_lent(gavel_str(request->options ? request->options : ""));
    }
    gavel_plugin_chat_list_result_own_reply_error_t received;
    gavel_plugin_chat_complete(&sent, &received);
    for (size_t i = 0; i < count; i++) {
        if (i >= received.len) {
            replies[i] = (gavel_chat_reply){GAVEL_CHAT_UNAVAILABLE, gavel_str("the host gave no answer")};
        } else if (received.ptr[i].is_err) {
            gavel_plugin_chat_error_t error = received.ptr[i].val.err;
            gavel_chat_status status = (gavel_chat_status)(GAVEL_CHAT_INVALID_REQUEST + error.tag);
            replies[i] = (gavel_chat_reply){status, gavel_kept(error.val.refused)};
        } else {
            gavel_plugin_chat_own_reply_t reply = received.ptr[i].val.ok;
            plugin_string_t text;
            gavel_plugin_chat_method_reply_text(gavel_plugin_chat_borrow_reply(reply), &text);
            gavel_plugin_chat_reply_drop_own(reply);
            replies[i] = (gavel_chat_reply){GAVEL_CHAT_OK, gavel_kept(text)};
        }
    }
    if (received.len) free(received.ptr);
}

#endif

/* ---- Reward models ---- */

#ifdef GAVEL_IMPORT_REWARD_MODEL

void gavel_model_scores(const gavel_score_request *requests, size_t count, gavel_model_score *scores) {
    gavel_plugin_reward_model_list_request_t sent = {gavel_alloc(count * sizeof *sent.ptr), count};
    for (size_t i = 0; i < count; i++) {
        sent.ptr[i].model = gavel_lent(gavel_str(requests[i].model));
        sent.ptr[i].messages.ptr = gavel_lent_messages(requests[i].messages, requests[i].count);
        sent.ptr[i].messages.len = requests[i].count;
    }
    gavel_plugin_reward_model_list_result_step_scores_error_t received;
    gavel_plugin_reward_model_score_steps(&sent, &received);
    for (size_t i = 0; i < count; i++) {
        gavel_model_score score = {GAVEL_MODEL_UNAVAILABLE, 0, NULL, 0, gavel_str("the host gave no answer")};
        if (i < received.len && received.ptr[i].is_err) {
            gavel_plugin_reward_model_error_t error = received.ptr[i].val.err;
            score.status = (gavel_model_status)(GAVEL_MODEL_INVALID_REQUEST + error.tag);
            score.why = gavel_kept(error.val.refused);
        } else if (i < received.len) {
            gavel_plugin_reward_model_step_scores_t found = received.ptr[i].val.ok;
            gavel_step *steps = gavel_alloc(found.steps.len * sizeof *steps);
            for (size_t s = 0; s < found.steps.len; s++) {
                gavel_plugin_reward_model_step_t step = found.steps.ptr[s];
                steps[s] = (gavel_step){step.start, step.end, step.value};
            }
            if (found.steps.len) free(found.steps.ptr);
            score = (gavel_model_score){GAVEL_MODEL_OK, found.score, steps, found.steps.len, gavel_str("")};
        }
        scores[i] = score;
    }
    if (received.len) free(received.ptr);
}

#endif
