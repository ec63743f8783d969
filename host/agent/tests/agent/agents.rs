//! Agents in the sandbox, over a scripted policy.

use crate::common::{Scripted, built, every_failure, limits, sandbox, task, text, toolbox};
use futures::future::join_all;
use gavel_agent::{AgentEpisode, EpisodeLimits, EpisodeProgress, History, OnFailedCall, ToolLimits, ToolSet, Tools};
use gavel_data::{
    FinishReason, Message, Role, RolloutFaultKind, RolloutStage, Sample, SamplingMask, ToolEnding, ToolUse,
};
use gavel_plugin::{Agent, Limits, PluginSpec, Sandbox, SandboxConfig};
use serde_json::{Map, Value, json};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

fn agent(path: PathBuf, params: Value) -> PluginSpec {
    // Only acts that are meant to use them up do, however busy the machine is.
    let limits = Limits {
        deadline: Duration::from_secs(300),
        cpu: Duration::from_secs(60),
        memory: 16 << 20,
        ..Limits::default()
    };
    let params: Map<String, Value> = serde_json::from_value(params).unwrap();
    PluginSpec { limits, params, ..PluginSpec::new("agent", path) }
}

/// A sample that the agent makes of a row, with the toolbox beside it.
fn play(spec: PluginSpec, policy: &Arc<Scripted>, row: Value, max_tokens: usize) -> Sample {
    play_with(spec, policy, row, max_tokens, limits())
}

fn play_with(spec: PluginSpec, policy: &Arc<Scripted>, row: Value, max_tokens: usize, limits: EpisodeLimits) -> Sample {
    let sandbox = sandbox();
    sandbox.handle().block_on(async {
        let agent = Arc::new(Agent::load(&sandbox, spec).await.unwrap());
        let set = Arc::new(ToolSet::load(&sandbox, vec![toolbox().into()]).await.unwrap());
        let tools = Tools { set, limits };
        let (task, max_prompt_tokens) = (task(row), 100_000);
        let episode =
            AgentEpisode { task, index: 1, max_prompt_tokens, max_tokens, seed: 5, tool_seed: 6, agent, tools };
        episode.play(policy.clone(), &EpisodeProgress::default()).await.unwrap()
    })
}

/// The row of an act of the guest `acts`.
fn acting(act: &str) -> Value {
    json!({"prompt": "Act.", "extra_info": {"agent_kwargs": {"act": act}}})
}

/// The sample of an act of the guest `acts`.
fn act(act: &str, turns: &[&str], max_tokens: usize) -> Sample {
    act_before(&Arc::new(Scripted::new(text("qwen2_5"), turns)), act, max_tokens)
}

fn act_before(policy: &Arc<Scripted>, act: &str, max_tokens: usize) -> Sample {
    let row = json!({"prompt": "Act.", "data_source": "stage", "extra_info": {"agent_kwargs": {"act": act}}});
    play(agent(built("guests/acts.wasm"), json!({})), policy, row, max_tokens)
}

/// What a standard agent makes of a question.
fn ask(name: &str, params: Value, turns: &[&str], max_tokens: usize) -> (Sample, Arc<Scripted>) {
    let policy = Arc::new(Scripted::new(text("qwen2_5"), turns));
    let path = built(&format!("plugins/{name}.wasm"));
    let row = json!({"prompt": "What is 2 + 3?"});
    (play(agent(path, params), &policy, row, max_tokens), policy)
}

fn speakers(sample: &Sample) -> Vec<&str> {
    sample
        .trajectories
        .iter()
        .map(|trajectory| trajectory.opening.as_ref().map_or("-", |opening| opening.speaker.as_str()))
        .collect()
}

fn reasons(sample: &Sample) -> Vec<FinishReason> {
    sample.trajectories.iter().map(|trajectory| trajectory.finish_reason).collect()
}

fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(Message::text).collect()
}

/// The tokens on which a trajectory learns, as text.
fn learned(sample: &Sample, trajectory: usize) -> String {
    let tokens = sample.trajectories[trajectory].tokens().unwrap();
    let written = tokens.response.iter().zip(&tokens.loss_mask).filter(|(_, learned)| **learned);
    let ids: Vec<u32> = written.map(|(id, _)| *id).collect();
    text("qwen2_5").tokenizer.decode(&ids).unwrap()
}

/// Why a sample has no answer: the stage, the reason, and whether another attempt may help.
fn fault(sample: &Sample) -> (RolloutStage, &str, bool) {
    assert_eq!(sample.answer, None);
    let fault = sample.trajectories[0].report.error.as_ref().unwrap();
    (fault.stage, &fault.message, fault.retryable)
}

#[test]
fn an_agent_sees_its_task_without_the_answer_key() {
    let sample = act("tell", &[], 1000);
    let told: Value = serde_json::from_str(&sample.response()).unwrap();
    assert_eq!(told["source"], "stage");
    assert_eq!(told["index"], 1);
    assert_eq!(told["prompt"], "Act.");
    assert_eq!(told["settings"], json!({"act": "tell"}));
    // The policy was not asked; the answer is all that there is.
    assert_eq!(texts(&sample.trajectories[0].messages), [sample.response()]);
    assert!(sample.trajectories[0].tokens.is_none());
}

#[test]
fn conversations_are_told_apart_and_forgotten_at_the_end() {
    let policy = Arc::new(Scripted::new(text("qwen2_5"), &["First.", "Left!", "Right!"]));
    act_before(&policy, "fork", 1000);
    assert_eq!(*policy.conversations.lock().unwrap(), [0, 1, 2]);
    let mut forgotten = policy.forgotten.lock().unwrap().clone();
    forgotten.sort_unstable();
    assert_eq!(forgotten, [0, 1, 2]);
}

#[test]
fn a_fork_learns_only_what_was_written_in_it() {
    let sample = act("fork", &["First.", "Left!", "Right!"], 1000);
    assert_eq!(sample.response(), "Left!Right!");
    assert_eq!(speakers(&sample), ["-", "left", "right"]);
    assert_eq!([0, 1, 2].map(|index| learned(&sample, index)), ["First.", "Left!", "Right!"]);
    let opening = sample.trajectories[1].opening.as_ref().unwrap();
    assert_eq!(texts(&opening.messages), ["Act.", "First."]);
    assert_eq!(texts(&sample.trajectories[1].messages), ["Left?", "Left!"]);
    // What it had read when it wrote is its prompt, token for token.
    let tokens = |index: usize| sample.trajectories[index].tokens().unwrap();
    assert_eq!(tokens(1).prompt, [&tokens(0).prompt[..], &tokens(0).response].concat());
    // Masks are counted from its own first token.
    for tokens in [0, 1, 2].map(tokens) {
        for (at, (id, learned)) in tokens.response.iter().zip(&tokens.loss_mask).enumerate() {
            let could = if *learned { SamplingMask::Only(vec![*id]) } else { SamplingMask::All };
            assert_eq!(tokens.masks.get(at), could, "token {at}");
        }
    }
}

#[test]
fn a_turn_takes_from_when_the_agent_asks_for_it() {
    let policy = Arc::new(Scripted::new(text("qwen2_5"), &["Call."]));
    let sample = act_before(&policy, "call", 1000);
    let generating = &sample.trajectories[0].report.generating;
    let confirming = policy.confirming.lock().unwrap();
    assert!(generating.len() == 1 && generating[0] >= confirming[0], "{generating:?} {confirming:?}");
}

#[test]
fn requests_that_cannot_be_met_are_told_to_the_agent() {
    assert_eq!(act("again", &["First."], 1000).response(), "there is no message to answer; append one");
    let twice = "a conversation has one turn at a time";
    assert_eq!(act("twice", &[], 1000).response(), format!("{twice}{twice}"));
}

#[test]
fn tools_answer_an_agent_with_messages() {
    let sample = act("call", &["Call."], 1000);
    let answers = sample.response();
    assert!(
        answers.starts_with("add: 2\nadd: 5\nnothing: error: there is no function `nothing`; there are: add,"),
        "{answers}"
    );
    let endings: Vec<_> = sample.trajectories[0].report.tool_uses.iter().map(|tool_use| tool_use.ending).collect();
    assert_eq!(endings, [ToolEnding::Answered, ToolEnding::Answered, ToolEnding::CalledWrongly]);
}

/// The calls of a sample whose agent has the time `deadline` and calls a tool that computes without end, for at most
/// the time `cpu`.
fn calls_of_a_loop(policy_writes: bool, deadline: Duration, cpu: Duration) -> Vec<ToolUse> {
    let policy = Arc::new(Scripted::new(text("qwen2_5"), &["Call."]));
    let act = if policy_writes { "converse" } else { "wait" };
    let call = json!({"name": "loop", "arguments": {}});
    let row = json!({"prompt": "Act.", "extra_info": {"agent_kwargs": {"act": act, "call": call}}});
    let mut spec = agent(built("guests/acts.wasm"), json!({}));
    spec.limits.deadline = deadline;
    let limits_of_tool = Limits { cpu, memory: 16 << 20, deadline: Duration::from_secs(60), ..Limits::default() };
    let tool = PluginSpec { limits: limits_of_tool, ..toolbox() };
    let sandbox = sandbox();
    let sample = sandbox.handle().block_on(async {
        let agent = Arc::new(Agent::load(&sandbox, spec).await.unwrap());
        let set = Arc::new(ToolSet::load(&sandbox, vec![tool.into()]).await.unwrap());
        let (tools, task) = (Tools { set, limits: limits() }, task(row));
        let (max_prompt_tokens, max_tokens, seed, tool_seed) = (100_000, 100_000, 5, 6);
        let episode = AgentEpisode { task, index: 1, max_prompt_tokens, max_tokens, seed, tool_seed, agent, tools };
        episode.play(policy, &EpisodeProgress::default()).await.unwrap()
    });
    sample.trajectories[0].report.tool_uses.clone()
}

#[test]
fn the_variables_of_a_row_hold_in_every_conversation() {
    for (act, turns, history) in [
        ("fork", &["First.", "Left!", "Right!"][..], History::Exact),
        ("fork", &["First.", "Left!", "Right!"], History::Split),
        ("turns", &["One.", "Two.", "Three.", "Four."], History::Exact),
    ] {
        let policy = Arc::new(Scripted::new(text("qwen3"), turns));
        let mut row = acting(act);
        row["chat_template_kwargs"] = json!({"enable_thinking": false});
        let spec = agent(built("guests/acts.wasm"), json!({}));
        play_with(spec, &policy, row, 1000, EpisodeLimits { history, ..limits() });
        for turn in 0..turns.len() {
            let saw = policy.saw(turn);
            assert!(saw.ends_with("<|im_start|>assistant\n<think>\n\n</think>\n\n"), "{act}, {turn}: {saw:?}");
        }
    }
}

#[test]
fn calls_count_before_the_policy_writes_and_where_the_agent_ends_before_them() {
    let (short, long) = (Duration::from_millis(200), Duration::from_secs(60));
    // A call before the policy writes, such as a search for its prompt, and a call that takes all of the sample's time.
    for (policy_writes, deadline, cpu) in [(false, long, short), (true, Duration::from_secs(8), long)] {
        let uses = calls_of_a_loop(policy_writes, deadline, cpu);
        let [ToolUse { name: Some(name), ending: ToolEnding::OutOfBudget, turn: 0, seconds }] = &uses[..] else {
            panic!("{uses:?}")
        };
        assert!(name == "loop" && *seconds >= 0.04, "{uses:?}");
    }
}

#[test]
fn an_agent_is_ended_with_a_tool_that_fails() {
    let tools = ToolLimits { on_failure: every_failure(OnFailedCall::End), ..limits().tools };
    let policy = Arc::new(Scripted::new(text("qwen2_5"), &[]));
    let spec = agent(built("guests/acts.wasm"), json!({}));
    let sample = play_with(spec, &policy, acting("wait"), 1000, EpisodeLimits { tools, ..limits() });
    let (stage, message, retryable) = fault(&sample);
    assert_eq!((stage, retryable), (RolloutStage::Tools, false));
    assert!(message.starts_with("the tool function `loop` used up its cpu: the call was ended: "), "{message}");
    assert_eq!(reasons(&sample), [FinishReason::Error]);
    assert_eq!(sample.trajectories[0].fault_kind(), Some(RolloutFaultKind::OutOfBudget));
    let uses = &sample.trajectories[0].report.tool_uses;
    assert_eq!(uses.iter().map(|tool_use| tool_use.ending).collect::<Vec<_>>(), [ToolEnding::OutOfBudget]);
}

#[test]
fn an_agent_returns_an_object_beside_its_answer_and_its_tools_report_their_states() {
    let done = |extra: Value| {
        let policy = Arc::new(Scripted::new(text("qwen2_5"), &["Call."]));
        let row = json!({"prompt": "Act.", "extra_info": {"agent_kwargs": {"act": "call", "extra": extra}}});
        play(agent(built("guests/acts.wasm"), json!({})), &policy, row, 1000)
    };
    let sample = done(json!({"plan": [1.5, {"é": null}]}));
    assert_eq!(serde_json::to_string(&sample.extra).unwrap(), r#"{"plan":[1.5,{"é":null}]}"#);
    assert_eq!(serde_json::to_string(&sample.states).unwrap(), r#"{"toolbox":{"sum":5}}"#);
    let sample = done(json!([1]));
    let (stage, what, _) = fault(&sample);
    assert_eq!((stage, sample.extra.as_ref()), (RolloutStage::Agent, None));
    assert!(what.starts_with("the agent failed: the extra is not a JSON object: "), "{what}");
}

#[test]
fn an_agent_answers_calls_that_cannot_be_read_with_templates_that_ask_for_their_id() {
    let broken = "[TOOL_CALLS] [{\"name\": \"add\", \"arguments\": {\"by\": 2}]";
    let policy = Arc::new(Scripted::new(text("mistral_v3"), &[broken, "It is 5."]));
    let sample = play(agent(built("plugins/summarize.wasm"), json!({})), &policy, json!({"prompt": "Add."}), 10_000);
    assert_eq!(sample.response(), "It is 5.");
    let answer = sample.trajectories[0].messages.iter().find(|message| message.role == Role::Tool).unwrap();
    assert!(answer.text().starts_with("error: the call cannot be read: "), "{answer:?}");
}

#[test]
fn a_budget_that_the_policy_used_up_is_no_fault_of_the_agent() {
    let sample = act("turns", &["One.", "Two.", "Three.", "Four."], 1000);
    assert_eq!((sample.response().as_str(), &reasons(&sample)[..]), ("Four.", &[FinishReason::MaxTurns][..]));
    assert_eq!(sample.trajectories[0].report.error, None);
    let sample = act("turns", &["One.", "Two."], 60);
    assert_eq!((sample.response().as_str(), &reasons(&sample)[..]), ("Two.", &[FinishReason::Length][..]));
    // The prompt alone is too long: the policy never wrote.
    let sample = act("long", &[], 1000);
    let (stage, what, _) = fault(&sample);
    assert_eq!(stage, RolloutStage::Agent);
    assert!(what.contains("and at most 100000 fit"), "{what}");
}

#[test]
fn an_agent_that_misbehaves_costs_its_own_sample() {
    let said = ["I say this."];
    for (name, turns, reason, expected, retryable) in [
        ("loop", &said[..], FinishReason::Error, "the agent used up its cpu:", false),
        ("sleep", &said[..], FinishReason::Timeout, "the agent used up its deadline:", true),
        ("trap", &said[..], FinishReason::Error, "the agent failed:", false),
        ("append", &[], FinishReason::Error, "the agent used up its memory:", false),
        ("open", &[], FinishReason::Error, "the agent used up its", false),
        ("refuse", &[], FinishReason::Error, "the agent failed: the row says so", true),
        ("other", &[], FinishReason::Error, "the agent failed: invalid input: there is no act \"other\"", false),
    ] {
        let mut path = agent(built("guests/acts.wasm"), json!({}));
        if name == "sleep" {
            path.grants.clock = gavel_plugin::ClockGrant::Real;
            path.limits.deadline = Duration::from_secs(15);
        }
        if name == "loop" {
            path.limits.cpu = Duration::from_secs(1);
        }
        let policy = Arc::new(Scripted::new(text("qwen2_5"), turns));
        let row = json!({"prompt": "Act.", "extra_info": {"agent_kwargs": {"act": name}}});
        let sample = play(path, &policy, row, 1000);
        let (stage, what, again) = fault(&sample);
        assert!(what.starts_with(expected), "{name}: {what}");
        assert_eq!((stage, again, &reasons(&sample)[..]), (RolloutStage::Agent, retryable, &[reason][..]), "{name}");
        // The turns that the policy wrote before are kept.
        assert_eq!(texts(&sample.trajectories[0].messages), turns, "{name}");
    }
}

#[test]
fn agents_and_their_tools_do_not_wait_for_each_others_threads() {
    let sandbox = sandbox();
    let policy = Arc::new(Scripted::new(text("qwen2_5"), &[]));
    let short = Limits { cpu: Duration::from_millis(100), memory: 16 << 20, ..Limits::default() };
    let (agent_spec, tool) = (agent(built("guests/acts.wasm"), json!({})), PluginSpec { limits: short, ..toolbox() });
    let answers = sandbox.handle().block_on(async {
        let agent = Arc::new(Agent::load(&sandbox, agent_spec).await.unwrap());
        let set = Arc::new(ToolSet::load(&sandbox, vec![tool.into()]).await.unwrap());
        // More than all threads of both lanes take at once.
        let plays = (0..32).map(|index| {
            let tools = Tools { set: set.clone(), limits: limits() };
            let (task, agent) = (task(acting("wait")), agent.clone());
            let (max_prompt_tokens, max_tokens, seed, tool_seed) = (1000, 1000, 5, 6);
            let episode = AgentEpisode { task, index, max_prompt_tokens, max_tokens, seed, tool_seed, agent, tools };
            let policy = policy.clone();
            async move { episode.play(policy, &EpisodeProgress::default()).await.unwrap().response() }
        });
        tokio::time::timeout(Duration::from_secs(300), join_all(plays)).await.expect("agents wait for ever")
    });
    assert!(answers.iter().all(|answer| answer.starts_with("error: the call was ended: ")), "{answers:?}");
}

#[test]
fn an_agent_and_tools_that_never_have_room_are_refused() {
    let config = SandboxConfig { memory: 48 << 20, ..SandboxConfig::with_threads(NonZeroUsize::MIN) };
    let sandbox = Sandbox::new(config).unwrap();
    let (agent, set) = sandbox.handle().block_on(async {
        let agent = Agent::load(&sandbox, agent(built("guests/acts.wasm"), json!({}))).await.unwrap();
        (agent, ToolSet::load(&sandbox, vec![toolbox().into()]).await.unwrap())
    });
    set.check_room(None).unwrap();
    let error = set.check_room(Some(&agent)).unwrap_err().to_string();
    assert!(error.starts_with("the sessions of one sample (agent, toolbox) may use 33554432 bytes"), "{error}");
}

#[test]
fn forks_share_the_tokens_of_a_conversation() {
    let turns = ["One.", "Two.", "Three.", "Four."];
    let sample = act("deep", &turns, 60);
    assert_eq!(sample.response(), "the conversation has used up its 60 tokens (rollout.max_tokens)");
    assert_eq!(sample.trajectories.len(), 2);
}

#[test]
fn each_turn_of_an_agent_is_a_trajectory_where_the_template_rewrites_history() {
    let thought = "<think>\nHm.\n</think>\n\n";
    let turns = ["One.", "Two.", "Three."].map(|said| format!("{thought}{said}"));
    let policy = Scripted::new(text("qwen3"), &turns.each_ref().map(String::as_str));
    let limits = EpisodeLimits { max_turns: 3, history: History::Split, ..limits() };
    let spec = agent(built("guests/acts.wasm"), json!({}));
    let sample = play_with(spec, &Arc::new(policy), acting("turns"), 100_000, limits);
    assert_eq!(sample.trajectories.len(), 3);
    assert_eq!(sample.response(), format!("{thought}Three."));
    for (number, trajectory) in sample.trajectories.iter().enumerate() {
        let tokens = trajectory.tokens().unwrap();
        assert!(tokens.loss_mask.iter().all(|learned| *learned), "{number}");
        let prompt = text("qwen3").tokenizer.decode_with(&tokens.prompt, false).unwrap();
        // The policy does not read what it thought before.
        assert_eq!((prompt.matches("Hm.").count(), prompt.matches("More.").count()), (0, number), "{prompt}");
        assert_eq!(trajectory.opening.is_some(), number > 0);
    }
    use FinishReason::{MaxTurns, Stop};
    assert_eq!(reasons(&sample), [Stop, Stop, MaxTurns]);
}

#[test]
fn react_acts_until_it_answers() {
    let act = "Thought: I add.\nAction: add\nAction Input: {\"by\": 5}\nObservation:";
    let (sample, policy) = ask("react", json!({}), &["I wonder.", act, "Thought: done.\nFinal Answer: 5"], 10_000);
    assert_eq!(sample.response(), "5");
    let texts = texts(&sample.trajectories[0].messages);
    assert_eq!(texts[1], "Observation: that was neither an action nor a final answer");
    assert_eq!(texts[3], "Observation: 5");
    assert!(policy.saw(0).contains("- add: Adds to the sum and returns it."), "{}", policy.saw(0));
    assert!(policy.asked.lock().unwrap().iter().all(|request| request.stop == ["Observation:"]));
}

#[test]
fn best_of_n_takes_the_answer_that_the_policy_chooses() {
    let turns = ["It is 4.", "It is 5.", "Answer 2 is right: 2"];
    let (sample, policy) = ask("best-of-n", json!({"n": 2}), &turns, 10_000);
    assert_eq!(sample.response(), "It is 5.");
    assert_eq!(speakers(&sample), ["answer", "answer", "verify"]);
    assert!(policy.saw(2).contains("Answer 1:\nIt is 4."), "{}", policy.saw(2));
    let seeds: Vec<u64> = policy.asked.lock().unwrap().iter().map(|request| request.seed).collect();
    assert_ne!(seeds[0], seeds[1]);
}

#[test]
fn speakers_of_a_debate_hear_each_other() {
    let (sample, policy) = ask("debate", json!({}), &["5", "6", "Still 5", "5 then"], 10_000);
    assert_eq!(sample.response(), "Still 5");
    assert_eq!(speakers(&sample), ["first", "second"]);
    assert!(policy.saw(2).contains("Somebody else answers:\n\n6"), "{}", policy.saw(2));
    assert_eq!([0, 1].map(|index| learned(&sample, index)), ["5Still 5", "65 then"]);
}

#[test]
fn a_summary_begins_a_new_context() {
    let call = r#"<tool_call>
{"name": "flood", "arguments": {"bytes": 150}}
</tool_call>"#;
    let turns = [call, call, "It was all x.", "It is 5."];
    let (sample, policy) = ask("summarize", json!({"reserve": 200}), &turns, 800);
    assert_eq!(sample.response(), "It is 5.");
    assert_eq!(sample.trajectories.len(), 2);
    assert_eq!(sample.trajectories[0].turns(Role::Tool), 2);
    assert!(policy.saw(3).contains("What you found out so far:\n\nIt was all x."), "{}", policy.saw(3));
    assert!(!policy.saw(3).contains("xxxx"));
}

#[test]
fn what_a_scripted_user_says_is_read_and_not_learned() {
    let call = r#"<tool_call>
{"name": "add", "arguments": {"by": 5}}
</tool_call>"#;
    let turns = ["It is 4.", call, "It is 5.", "Yes."];
    let params = json!({"script": ["Use the tool.", "Sure?"]});
    let (sample, policy) = ask("scripted-user", params, &turns, 10_000);
    assert_eq!((sample.response().as_str(), speakers(&sample)), ("Yes.", vec!["-"]));
    let of_user = sample.trajectories[0].messages.iter().filter(|message| message.role == Role::User);
    assert_eq!(of_user.map(Message::text).collect::<Vec<_>>(), ["Use the tool.", "Sure?"]);
    assert_eq!(learned(&sample, 0), turns.concat());
    assert!(policy.saw(0).contains("Adds to the sum and returns it."), "{}", policy.saw(0));
    assert_eq!(serde_json::to_value(&sample.extra).unwrap(), json!({"user_turns": 2, "ended": "script"}));
    assert_eq!(reasons(&sample), [FinishReason::Stop]);
}

#[test]
fn a_scripted_user_writes_first_and_ends_with_the_turns_of_the_policy() {
    let policy = Arc::new(Scripted::new(text("qwen2_5"), &["5", "10", "20", "40"]));
    let script = ["2 + 3?", "Twice that?", "Again?", "Again?", "Again?"];
    let prompt = json!([{"role": "system", "content": "Be brief."}]);
    let row = json!({"prompt": prompt, "extra_info": {"agent_kwargs": {"script": script}}});
    let sample = play(agent(built("plugins/scripted-user.wasm"), json!({"opening": "user"})), &policy, row, 10_000);
    let opening = sample.trajectories[0].opening.as_ref().unwrap();
    assert_eq!(texts(&opening.messages), ["Be brief.", "2 + 3?"]);
    // Nothing of the message that was not answered is kept.
    let said = ["5", "Twice that?", "10", "Again?", "20", "Again?", "40"];
    assert_eq!(texts(&sample.trajectories[0].messages), said);
    assert_eq!((sample.response().as_str(), learned(&sample, 0).as_str()), ("40", "5102040"));
    assert_eq!(serde_json::to_value(&sample.extra).unwrap(), json!({"user_turns": 4, "ended": "exhausted"}));
    assert_eq!(reasons(&sample), [FinishReason::MaxTurns]);
}
