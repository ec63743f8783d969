/* The SDK for plugins of Gavel in C and C++.
 *
 * A reward is two functions, plugin_init and plugin_score; a judger is
 * plugin_init and plugin_judge; a taskset is plugin_init, plugin_len and
 * plugin_get; a tool is plugin_init, plugin_functions, plugin_open and
 * plugin_call; an agent is plugin_init and plugin_run; an advantage is
 * plugin_init and plugin_estimate; a sampler is plugin_init and plugin_sample.
 * They may call every function that starts with gavel_. The results of these
 * functions live until the call ends; in plugin_init, they live as long as the
 * plugin. Do not free them.
 *
 * Text is UTF-8, in and out. Any other text from the plugin is a fault of the
 * plugin. */

#ifndef GAVEL_H
#define GAVEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Text. A NUL follows its `len` bytes if a function here promises it. The text
 * of a response may also contain NULs. */
typedef struct {
    const char *ptr;
    size_t len;
} gavel_text;

/* ---- The plugin's input ---- */

typedef struct {
    int32_t handle;
} gavel_sample;

typedef struct {
    int32_t handle;
} gavel_trajectory;

typedef struct {
    int32_t handle;
} gavel_reference;

/* The task that an agent attempts. */
typedef struct {
    int32_t handle;
} gavel_task;

typedef struct gavel_params gavel_params;

typedef enum { GAVEL_SYSTEM, GAVEL_USER, GAVEL_ASSISTANT, GAVEL_TOOL } gavel_role;

typedef enum { GAVEL_STOP, GAVEL_LENGTH, GAVEL_MAX_TURNS, GAVEL_TIMEOUT, GAVEL_ERROR } gavel_finish_reason;

typedef struct {
    gavel_role role;
    /* The message's texts, joined; a NUL follows. */
    gavel_text text;
} gavel_message;

typedef enum {
    GAVEL_SCORED,
    GAVEL_ABSTAINED,
    /* Not called: its gate is shut, or it is for other data sources. */
    GAVEL_NOT_CALLED,
    /* Called without a verdict: a fault, out of budget, or unavailable. */
    GAVEL_NO_VERDICT
} gavel_prior_kind;

typedef struct {
    gavel_text name;
    double value;
} gavel_named_number;

/* The verdict of another reward on a sample. */
typedef struct {
    gavel_prior_kind kind;
    /* Of a score: its value and its metrics. */
    double score;
    const gavel_named_number *metrics;
    size_t metrics_count;
    /* The note of a score, empty if it has none, or why it abstained; a NUL follows. */
    gavel_text text;
    /* The payload of a score, a JSON object; empty if it has none. A NUL follows. */
    gavel_text payload;
} gavel_prior_verdict;

/* ---- The numbers that an advantage sees ---- */

/* The verdict of one reward on a sample. */
typedef struct {
    /* The name of the reward in the run's configuration; a NUL follows. */
    gavel_text reward;
    /* The factor of its score in the sample's reward; 0 if it is only recorded. */
    double weight;
    /* Whether it gave a score, and which. */
    bool has_score;
    double score;
    /* What it counts with: its score, or 0 if it was not called. Rewards that
     * failed share the rest of the reward that the run gives such a sample. */
    double counted;
    /* The metrics of its score. */
    const gavel_named_number *metrics;
    size_t metrics_count;
} gavel_part;

/* Tokens [start, end) of those after the prompt. */
typedef struct {
    uint32_t start, end;
} gavel_span;

/* Credit that rewards gave to tokens, times the weights of the rewards. */
typedef struct {
    gavel_span tokens;
    double value;
} gavel_token_credit;

/* The numbers of one trajectory of a sample. */
typedef struct {
    /* Its number in its sample, from 0. */
    uint32_t index;
    gavel_finish_reason finish_reason;
    uint32_t prompt_tokens;
    /* The number of tokens after the prompt, with those that the policy did not write. */
    uint32_t response_tokens;
    /* The tokens that are learned from, turn by turn. */
    const gavel_span *learned;
    size_t learned_count;
    const gavel_token_credit *credit;
    size_t credit_count;
    /* The sum of the penalties of its learned tokens (train.kl_reward). */
    double penalty;
    /* The sum of the log-probabilities of its learned tokens when they were drawn. */
    double logprob;
    /* The versions of the policy that drew its learned tokens; -1 without any. */
    int64_t oldest_version, newest_version;
} gavel_numbers;

/* A sample that has a reward. */
typedef struct {
    /* Its number in its group, from 0. */
    uint32_t index;
    /* Its reward, minus the mean of the penalties of its trajectories: what the
     * built-in algorithms compare. */
    double reward;
    /* One for each reward of the run, in the order of their names. */
    const gavel_part *parts;
    size_t parts_count;
    const gavel_numbers *trajectories;
    size_t trajectories_count;
} gavel_scored_sample;

/* Samples that are compared: attempts at one task. */
typedef struct {
    gavel_text task_id;
    /* Empty if the row has none. */
    gavel_text data_source;
    /* If the run compares the trajectories of each speaker by themselves, the
     * speaker of these; empty otherwise. */
    gavel_text speaker;
    const gavel_scored_sample *samples;
    size_t samples_count;
} gavel_group;

/* ---- What a run asks of a sampler ---- */

/* A dataset of data.train. */
typedef struct {
    /* The number of its rows that can be drawn, at least 1. */
    uint64_t rows;
    /* Its weight in the run's configuration; 0 if it has none. */
    double weight;
} gavel_dataset;

/* How the scoring of a sample ended. */
typedef enum {
    GAVEL_SAMPLE_SCORED,
    GAVEL_SAMPLE_ABSTAINED,
    GAVEL_SAMPLE_FAULT,
    GAVEL_SAMPLE_OUT_OF_BUDGET,
    GAVEL_SAMPLE_UNAVAILABLE
} gavel_sample_outcome;

/* An attempt at a task. */
typedef struct {
    gavel_sample_outcome outcome;
    /* Whether it has a reward, and which; without one it is left out of its group. */
    bool has_reward;
    double reward;
    /* The score of each reward under its name in the run's configuration, and
     * the metrics of the score as NAME/METRIC. */
    const gavel_named_number *metrics;
    size_t metrics_count;
} gavel_ended_sample;

/* A group whose samples all have their outcomes, before it is trained on. */
typedef struct {
    /* The number of its draw in the run, from 0. */
    uint64_t draw;
    /* Its row, counted over all datasets, from 0; and the number of its dataset. */
    uint64_t row;
    uint32_t dataset;
    gavel_text task_id;
    /* Empty if the row has none. */
    gavel_text data_source;
    /* The version of the policy under which it was started. */
    uint64_t version;
    const gavel_ended_sample *samples;
    size_t samples_count;
    /* Why the run does not train on it: equal-rewards or too-few-scored; empty if it does. */
    gavel_text dropped;
} gavel_ended_group;

typedef struct {
    /* From 1; the policy that learns has the version before it. */
    uint64_t step;
    /* The seed of this call's random choices, for gavel_random. */
    uint64_t seed;
    const gavel_dataset *datasets;
    size_t datasets_count;
    /* The number of rows of all datasets. */
    uint64_t rows;
    /* The groups that ended since the last call: in the order of their draws,
     * or, where the order of a run depends on time, in the order in which they
     * ended. */
    const gavel_ended_group *ended;
    size_t ended_count;
    /* The number of tasks that are needed; 0 if the call is about `ended` alone. */
    uint32_t wanted;
    /* The number of the first draw that the tasks are for. */
    uint64_t next_draw;
    /* What the last call kept; empty in the first call of a run. */
    gavel_text state;
} gavel_draw_request;

/* ---- The plugin's output ---- */

typedef struct {
    const char *name;
    const char *version;
    /* The same input gives the same verdict, and no call depends on an earlier one. */
    bool pure;
    /* Scores are in [min, max]; a score outside is a fault. If min and max are equal, any score is allowed. */
    double min, max;
} gavel_info;

typedef struct gavel_verdict gavel_verdict;

typedef struct gavel_row gavel_row;

typedef struct gavel_functions gavel_functions;

typedef struct gavel_answer gavel_answer;

typedef struct gavel_estimates gavel_estimates;

typedef struct gavel_draws gavel_draws;

/* ---- What you write ---- */

/* Once, before any sample. Fill in `info` and return true, or return
 * gavel_refuse(params, "what is wrong with the parameters"). Parameters that it
 * does not read are refused. */
bool plugin_init(gavel_params *params, gavel_info *info);

/* For exports = ["reward"]: once a sample. */
void plugin_score(gavel_sample sample, gavel_reference reference, gavel_verdict *verdict);

/* For exports = ["judger"]: once a group; verdicts[i] is for samples[i]. A
 * failure in one of them is a failure of the whole group. */
void plugin_judge(const gavel_sample *samples, size_t count, gavel_reference reference, gavel_verdict **verdicts);

/* For exports = ["taskset"]: the number of rows; false if they never end. */
bool plugin_len(uint64_t *rows);

/* For exports = ["taskset"]: the row at `index`, from 0. The same index and
 * seed must give the same row. */
void plugin_get(uint64_t index, uint64_t seed, gavel_row *row);

/* For exports = ["tool"]: describes its functions, each with gavel_function. */
void plugin_functions(gavel_functions *functions);

/* For exports = ["tool"]: the state of a new trajectory, from malloc, or NULL
 * where its calls share nothing. It is freed for you. `settings` is what the
 * dataset's row sets, a JSON object, which the policy does not see. To refuse
 * them, set a failure in `answer`. */
void *plugin_open(gavel_text settings, gavel_answer *answer);

/* For exports = ["tool"]: once a call. `arguments` are a JSON object that fits
 * the function's schema. */
void plugin_call(void *state, const char *function, gavel_text arguments, gavel_answer *answer);

/* For exports = ["tool"], and optional: once, after the last call of a
 * trajectory. The text of the answer is what became of the state, as JSON for
 * rewards and judgers; without an answer, the tool reports none. The policy
 * does not see it. */
void plugin_finish(void *state, gavel_answer *answer);

/* For exports = ["agent"]: once an attempt. The answer is the response that
 * rewards read. */
void plugin_run(gavel_task task, gavel_answer *answer);

/* For exports = ["advantage"]: once for all groups that the policy learns from
 * at once. Set the advantage of each sample. `step` is from 1. */
void plugin_estimate(uint64_t step, const gavel_group *groups, size_t count, gavel_estimates *estimates);

/* For exports = ["sampler"]: once for the next tasks of a run, and for groups
 * that ended. Draw as many tasks as the request wants. */
void plugin_sample(const gavel_draw_request *request, gavel_draws *draws);

/* ---- Parameters, in plugin_init ---- */

/* The parameter `name`, or `otherwise` if the run does not set it. A parameter
 * of another type is refused for you. A NUL follows a text. */
gavel_text gavel_param_text(gavel_params *params, const char *name, const char *otherwise);
double gavel_param_number(gavel_params *params, const char *name, double otherwise);
bool gavel_param_bool(gavel_params *params, const char *name, bool otherwise);
/* Any parameter as JSON; empty if the run does not set it. */
gavel_text gavel_param_json(gavel_params *params, const char *name);
/* Reports what is wrong with the parameters, and returns false. */
bool gavel_refuse(gavel_params *params, const char *what);

/* ---- The sample: what the policy wrote ---- */

/* The response: the agent's answer, or else the response of the first
 * trajectory. A NUL follows. */
gavel_text gavel_response(gavel_sample sample);
/* The id of the task, the same in every sample of a group; a NUL follows. */
gavel_text gavel_task_id(gavel_sample sample);
/* Its data source; false if the row has none. */
bool gavel_data_source(gavel_sample sample, gavel_text *source);
/* The number of this sample in its group, from 0. */
uint32_t gavel_group_index(gavel_sample sample);
/* The messages of the prompt; `count` is set. */
const gavel_message *gavel_prompt(gavel_sample sample, size_t *count);

/* The verdict of the reward `name` on the sample; false unless the run's
 * configuration lists it in this reward's `after`. */
bool gavel_prior(gavel_sample sample, const char *name, gavel_prior_verdict *verdict);

uint32_t gavel_trajectory_count(gavel_sample sample);
/* The trajectory at `index`; false past the end. */
bool gavel_trajectory_at(gavel_sample sample, uint32_t index, gavel_trajectory *trajectory);
/* The number of messages after the prompt. */
uint32_t gavel_message_count(gavel_trajectory trajectory);
bool gavel_message_at(gavel_trajectory trajectory, uint32_t index, gavel_message *message);
/* The text of the last message of the assistant; a NUL follows. */
gavel_text gavel_trajectory_response(gavel_trajectory trajectory);
gavel_finish_reason gavel_finished(gavel_trajectory trajectory);
uint32_t gavel_turns(gavel_trajectory trajectory);
uint32_t gavel_tool_turns(gavel_trajectory trajectory);
/* The number of tokens that the policy wrote, or -1 if no policy wrote the response. */
int64_t gavel_response_tokens(gavel_trajectory trajectory);

/* ---- The reference: the dataset's row ---- */

/* The ground truth; false if the row has none. A NUL follows. */
bool gavel_ground_truth(gavel_reference reference, gavel_text *truth);
/* A column as JSON; false if the row does not have it. A NUL follows. */
bool gavel_column(gavel_reference reference, const char *name, gavel_text *json);
/* All columns as one JSON object; a NUL follows. */
gavel_text gavel_columns(gavel_reference reference);

/* ---- Verdicts ---- */

/* The score, which must be finite. */
void gavel_score(gavel_verdict *verdict, double value);
/* With a score: a named number, averaged and logged by the host. */
void gavel_metric(gavel_verdict *verdict, const char *name, double value);
/* With a score: a note that explains it; it is recorded. */
void gavel_note(gavel_verdict *verdict, const char *note);
/* With a score: a JSON object of your own. It is recorded, and the rewards that
 * list this one in `after` read it. */
void gavel_payload(gavel_verdict *verdict, const char *json);
/* With a score: credit for bytes [start, end) of the text of a message. */
void gavel_credit(gavel_verdict *verdict, uint32_t trajectory, uint32_t message, uint32_t start, uint32_t end,
                  double value);
/* No score. This is not a failure: the plugin does not judge such samples. */
void gavel_abstain(gavel_verdict *verdict, const char *why);
/* The plugin cannot work on this sample or its reference. */
void gavel_invalid_input(gavel_verdict *verdict, const char *what);
/* A service that the plugin needs did not answer; another attempt may succeed. */
void gavel_unavailable(gavel_verdict *verdict, const char *what);
/* The plugin itself is at fault. */
void gavel_internal(gavel_verdict *verdict, const char *what);

/* ---- Rows of a taskset ---- */

/* A column whose value is a text. The text is copied. */
void gavel_row_text(gavel_row *row, const char *column, const char *text);
/* A column with any other value, as JSON: gavel_integer(3), "true", "[1, 2]". */
void gavel_row_json(gavel_row *row, const char *column, const char *json);
/* There is no such row, or the parameters do not allow it. */
void gavel_no_row(gavel_row *row, const char *what);

/* ---- Functions of a tool, and answers of a tool and of an agent. Texts are
 * copied. ---- */

/* A function that the policy may call: its name, what it does, and the JSON
 * Schema of its arguments, which are an object. */
void gavel_function(gavel_functions *functions, const char *name, const char *description, const char *parameters);
/* The text that the policy reads, or the response of an agent. */
void gavel_answer_text(gavel_answer *answer, const char *text);
/* With the response of an agent: a JSON object for rewards and judgers, which
 * read it with gavel_extra. It is recorded. */
void gavel_answer_extra(gavel_answer *answer, const char *json);
/* There is no answer. The policy reads why a tool has none: it called the
 * function wrongly; */
void gavel_answer_invalid_input(gavel_answer *answer, const char *what);
/* something that the plugin needs did not answer; */
void gavel_answer_unavailable(gavel_answer *answer, const char *what);
/* or the plugin itself is at fault. */
void gavel_answer_internal(gavel_answer *answer, const char *what);

/* ---- Advantages: how much better than expected each sample was ---- */

/* The advantage of a sample of a group, the same for all its tokens. */
void gavel_advantage(gavel_estimates *estimates, size_t group, size_t sample, double value);
/* The same with one value for each trajectory of the sample; */
void gavel_advantage_of_trajectories(gavel_estimates *estimates, size_t group, size_t sample, const double *values);
/* or, for each trajectory, one for each token after the prompt. Credit is not
 * added to these. */
void gavel_advantage_of_tokens(gavel_estimates *estimates, size_t group, size_t sample, const double *const *values);
/* What the last call kept; empty in the first call of a run. */
gavel_text gavel_earlier_state(const gavel_estimates *estimates);
/* Keeps bytes for the next call, at most 1 MiB. They are in the run's checkpoints. */
void gavel_keep_state(gavel_estimates *estimates, const void *bytes, size_t count);
/* The plugin is at fault: the step is not taken and the run stops. */
void gavel_no_advantages(gavel_estimates *estimates, const char *what);
/* The number of tokens of a trajectory that are learned from. */
uint32_t gavel_learned_tokens(const gavel_numbers *trajectory);

/* ---- Draws: which task is next, and which group is trained on ---- */

/* Draws the task of a row, which is counted over all datasets. */
void gavel_draw(gavel_draws *draws, uint64_t row);
/* Refuses the group of the draw `draw`. The run counts it by the reason: 1 to 64
 * letters, digits or one of _ . / - */
void gavel_refuse_group(gavel_draws *draws, uint64_t draw, const char *reason);
/* Keeps bytes for the next call, at most 1 MiB. They are in the run's checkpoints. */
void gavel_next_state(gavel_draws *draws, const void *bytes, size_t count);
/* The plugin is at fault: the step is not taken and the run stops. */
void gavel_no_draws(gavel_draws *draws, const char *what);
/* The mean reward of the samples of a group that have one; false if there are none. */
bool gavel_mean_reward(const gavel_ended_group *group, double *mean);
/* 64 random bits that follow from the seed, which moves on (SplitMix64). */
uint64_t gavel_random(uint64_t *seed);

/* ---- The task of an agent ---- */

/* The id of the task, the same in every attempt of a group; a NUL follows. */
gavel_text gavel_agent_task_id(gavel_task task);
/* Its data source; false if the row has none. */
bool gavel_agent_data_source(gavel_task task, gavel_text *source);
/* The number of this attempt in its group, from 0. */
uint32_t gavel_agent_group_index(gavel_task task);
/* The messages of the prompt; `count` is set. */
const gavel_message *gavel_agent_prompt(gavel_task task, size_t *count);
/* What the row sets for the agent, as a JSON object; a NUL follows. */
gavel_text gavel_agent_settings(gavel_task task);

/* ---- Conversations of an agent with the policy ---- */

/* A conversation. It is a trajectory of the sample if the policy wrote in it. */
typedef struct {
    int32_t handle;
} gavel_conversation;

/* A function that the policy may call. */
typedef struct {
    gavel_text name, description;
    /* The JSON Schema of its arguments, which are an object. */
    gavel_text parameters;
} gavel_tool_function;

/* A call that the policy asked for; `arguments` is JSON text. */
typedef struct {
    gavel_text id, name, arguments;
} gavel_tool_call;

/* The answer to the call `id` of the function `name`. */
typedef struct {
    gavel_text id, name, text;
} gavel_tool_answer;

/* How a conversation begins. */
typedef struct {
    /* It begins with the prompt of this task, unless that is NULL, */
    const gavel_task *task;
    /* and continues with these messages. */
    const gavel_message *messages;
    size_t count;
    /* Functions that the policy may call, such as those of gavel_tools. */
    const gavel_tool_function *functions;
    size_t functions_count;
    /* The speaker that the policy plays, if an agent has several; may be NULL. */
    const char *speaker;
} gavel_opening;

typedef enum {
    GAVEL_TURN,
    /* The request is not valid. */
    GAVEL_TURN_INVALID,
    /* A budget of the sample is used up: tokens of the conversation, or turns. */
    GAVEL_TURN_EXHAUSTED
} gavel_turn_status;

/* A turn of the policy. */
typedef struct {
    gavel_turn_status status;
    /* What the policy wrote, or why there is no turn; a NUL follows. */
    gavel_text text;
    /* The tools that it calls. */
    const gavel_tool_call *calls;
    size_t calls_count;
    /* What is wrong with the calls that cannot be parsed, one text for each. */
    const gavel_text *malformed;
    size_t malformed_count;
    /* GAVEL_STOP or GAVEL_LENGTH. */
    gavel_finish_reason finish_reason;
    uint32_t tokens;
} gavel_turn;

/* These three return false if the policy refuses; `answer` is then a failure
 * with the reason. */
bool gavel_conversation_open(const gavel_opening *opening, gavel_conversation *conversation, gavel_answer *answer);
bool gavel_conversation_append(gavel_conversation conversation, const gavel_message *messages, size_t count,
                               gavel_answer *answer);
/* A new conversation with the same history. Training uses the turns before the
 * fork only once, in the original. */
bool gavel_conversation_fork(gavel_conversation conversation, const char *speaker, gavel_conversation *fork,
                             gavel_answer *answer);
/* The number of tokens by which the conversation may still grow. */
uint32_t gavel_tokens_left(gavel_conversation conversation);

/* Generates the policy's next turn. `options` is a JSON object, or NULL:
 * `max_tokens` limits the turn, and `stop` lists texts that end it and are part
 * of it. */
gavel_turn gavel_generate(gavel_conversation conversation, const char *options);
/* The same for several conversations at once; turns[i] is that of all[i]. */
void gavel_generate_all(const gavel_conversation *all, size_t count, const char *options, gavel_turn *turns);

/* ---- The tools of the run, for an agent ---- */

/* Their functions; `count` is set. */
const gavel_tool_function *gavel_tools(size_t *count);
/* Makes all calls; calls of different tools run at once. answers[i] answers
 * calls[i]. */
void gavel_call_tools(const gavel_tool_call *calls, size_t count, gavel_tool_answer *answers);
/* Appends answers of tools to a conversation, as gavel_conversation_append does
 * with messages. */
bool gavel_conversation_append_answers(gavel_conversation conversation, const gavel_tool_answer *answers, size_t count,
                                       gavel_answer *answer);
/* Makes all calls of a turn and appends the answers. The answer to a call that
 * cannot be parsed says what is wrong with it. */
bool gavel_conversation_answer(gavel_conversation conversation, gavel_turn turn, gavel_answer *answer);

/* ---- Text ---- */

/* `size` bytes that live until the call ends. If memory runs out, the call ends. */
void *gavel_alloc(size_t size);
/* The text of a C string. */
gavel_text gavel_str(const char *text);
/* Joins C strings, up to a NULL: gavel_concat("no ", what, NULL). */
const char *gavel_concat(const char *first, ...);
/* A whole number in decimal. */
const char *gavel_integer(int64_t number);
/* A C string of a text, up to its first NUL. */
const char *gavel_c_str(gavel_text text);
bool gavel_equal(gavel_text a, gavel_text b);
/* The text without white space at both ends, or only at its end. */
gavel_text gavel_trim(gavel_text text);
gavel_text gavel_trim_end(gavel_text text);
/* Reads the whole text, trimmed, as a number; false if it is not a number. */
bool gavel_number(gavel_text text, double *number);

/* ---- Finding the answer in a response, with the same results in every SDK.
 * Each returns false if there is none. ---- */

/* The last number: -1,234.5e6, $5, .5. Only the number itself is read: 1/2 gives 2. */
bool gavel_last_number(gavel_text text, double *number);
/* The trimmed contents of the last complete \boxed{...}, with its braces balanced. */
bool gavel_last_boxed(gavel_text text, gavel_text *contents);
/* The trimmed text of the last <name>...</name>. */
bool gavel_last_tag(gavel_text text, const char *name, gavel_text *contents);
/* The text after the last `prefix`, up to the end of its line, trimmed. */
bool gavel_after_last(gavel_text text, const char *prefix, gavel_text *rest);

/* ---- JSON. A value is its text. Each function returns false if the value has
 * another type, is missing, or is not JSON. ---- */

bool gavel_json_get(gavel_text object, const char *key, gavel_text *value);
bool gavel_json_item(gavel_text array, size_t index, gavel_text *value);
/* A string, decoded; a NUL follows. */
bool gavel_json_string(gavel_text json, gavel_text *text);
bool gavel_json_number(gavel_text json, double *number);
bool gavel_json_bool(gavel_text json, bool *value);
/* The number of items of an array or of members of an object. */
bool gavel_json_count(gavel_text json, size_t *count);
/* The key of the member at `index`, in the order of the text. */
bool gavel_json_key(gavel_text object, size_t index, gavel_text *key);
/* Whether the text is one whole value. */
bool gavel_json_valid(gavel_text json);

/* ---- Asking a judge: for imports = ["chat"], granted by the run ---- */

#ifdef GAVEL_IMPORT_CHAT

typedef struct {
    /* The name of an endpoint in the run's configuration. */
    const char *endpoint;
    const gavel_message *messages;
    size_t count;
    /* Further fields of the request as a JSON object, such as "{\"temperature\": 0}"; may be NULL. */
    const char *options;
} gavel_chat_request;

typedef enum { GAVEL_CHAT_OK, GAVEL_CHAT_INVALID_REQUEST, GAVEL_CHAT_REFUSED, GAVEL_CHAT_UNAVAILABLE } gavel_chat_status;

typedef struct {
    gavel_chat_status status;
    /* The text of the first choice, or why there is none; a NUL follows. */
    gavel_text text;
} gavel_chat_reply;

/* Sends all requests at once and waits for the last; replies[i] answers requests[i]. */
void gavel_chat(const gavel_chat_request *requests, size_t count, gavel_chat_reply *replies);

#endif

/* ---- Asking a reward model: for imports = ["reward-model"], granted by the run ---- */

#ifdef GAVEL_IMPORT_REWARD_MODEL

typedef struct {
    /* The name of a reward model in the run's configuration. */
    const char *model;
    /* A conversation. Its last message is what the model scores. */
    const gavel_message *messages;
    size_t count;
} gavel_score_request;

typedef enum {
    GAVEL_MODEL_OK,
    GAVEL_MODEL_INVALID_REQUEST,
    GAVEL_MODEL_REFUSED,
    GAVEL_MODEL_UNAVAILABLE
} gavel_model_status;

/* The value of a step, which is the bytes [start, end) of the UTF-8 text of the last message. */
typedef struct {
    uint32_t start, end;
    double value;
} gavel_step;

typedef struct {
    gavel_model_status status;
    double score;
    /* The steps of a process reward model, in order. */
    const gavel_step *steps;
    size_t steps_count;
    /* Why there is no score; a NUL follows. */
    gavel_text why;
} gavel_model_score;

/* Sends all requests at once and waits for the last; scores[i] answers requests[i]. */
void gavel_model_scores(const gavel_score_request *requests, size_t count, gavel_model_score *scores);

#endif

/* ---- The trace of a trajectory ---- */

typedef enum {
    GAVEL_CALL_ANSWERED,
    /* There is no such function, the arguments are not JSON, or they do not fit. */
    GAVEL_CALL_WRONG,
    GAVEL_CALL_OUT_OF_BUDGET,
    GAVEL_CALL_UNAVAILABLE,
    GAVEL_CALL_FAILED
} gavel_call_ending;

/* A call of a tool. */
typedef struct {
    /* The turn of the sample in which the policy made the call, from 0. */
    uint32_t turn;
    /* The function; empty if the call cannot be parsed, or there is no such function. */
    gavel_text function;
    gavel_call_ending ending;
} gavel_ended_call;

/* The speaker that the policy played, if the agent names several; empty
 * otherwise. A NUL follows. */
gavel_text gavel_speaker(gavel_trajectory trajectory);
/* The messages that the conversation began with: the task's prompt, or the
 * messages that an agent opened it with; `count` is set. */
const gavel_message *gavel_trajectory_opening(gavel_trajectory trajectory, size_t *count);
/* The functions that the policy could call; `count` is set. */
const gavel_tool_function *gavel_offered(gavel_trajectory trajectory, size_t *count);
/* The calls of tools, in the order in which the policy made them; `count` is set. */
const gavel_ended_call *gavel_calls(gavel_trajectory trajectory, size_t *count);
/* Why the policy's turn in a message ended; false if the policy did not write
 * that message. */
bool gavel_turn_finished(gavel_trajectory trajectory, uint32_t index, gavel_finish_reason *reason);
/* The number of tokens that the policy wrote in a message, or -1 if it did not
 * write that message. */
int64_t gavel_message_tokens(gavel_trajectory trajectory, uint32_t index);
/* The state in which the tool `name` of the run ended, as JSON; false if it
 * reported none, or the policy did not call it. A NUL follows. */
bool gavel_state(gavel_trajectory trajectory, const char *name, gavel_text *json);
/* The JSON object that the agent returned beside its answer; false if there is
 * none. A NUL follows. */
bool gavel_extra(gavel_sample sample, gavel_text *json);

#ifdef __cplusplus
}
#endif

#endif
