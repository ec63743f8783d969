//! Episodes of a scripted policy with a real tool in the sandbox.

use crate::common::{Scripted, limits, patient_toolbox, sandbox, task, text, toolbox};
use gavel_agent::{
    Episode, EpisodeLimits, EpisodeProgress, History, LeftOut, Policy, ToolLimits, ToolSet, ToolSetError, Tools,
};
use gavel_data::{Budget, FinishReason, Message, Role, RolloutStage, Sample, SamplingMask, ToolEnding, Trajectory};
use gavel_plugin::{PluginSpec, Sandbox};
use gavel_text::RenderOptions;
use serde_json::{Value, json};
use std::iter::zip;
use std::sync::Arc;
use std::time::Duration;

/// Plays an episode on this row.
fn play_with(sandbox: &Sandbox, policy: &Scripted, row: Value, limits: EpisodeLimits, max_tokens: usize) -> Sample {
    sandbox.handle().block_on(async {
        // A sample that ends first must end before its call, however late this thread is.
        let toolbox = if limits.deadline < Duration::from_secs(1) { patient_toolbox() } else { toolbox() };
        let set = Arc::new(ToolSet::load(sandbox, vec![toolbox.into()]).await.unwrap());
        let task = task(row);
        let set = set.of_row(&task).unwrap();
        let options = set.definitions();
        let prompt = policy.text.prompt_ids_with(&task.prompt, &RenderOptions::prompt(&options)).unwrap();
        let tools = Some(Tools { set, limits });
        let episode =
            Episode { task, index: 1, prompt, max_tokens, seed: 5, tool_seed: 6, key: policy.conversation(), tools };
        let first = policy.generate(vec![episode.first_request()]).await.unwrap().remove(0);
        episode.play(policy, first, &EpisodeProgress::default()).await.unwrap()
    })
}

fn play(policy: &Scripted) -> Trajectory {
    play_with(&sandbox(), policy, json!({"prompt": "Add."}), limits(), 100_000).trajectories.remove(0)
}

fn call(name: &str, arguments: &Value) -> String {
    format!("<tool_call>\n{}\n</tool_call>", json!({"name": name, "arguments": arguments}))
}

/// The texts of the tools' answers.
fn answers(trajectory: &Trajectory) -> Vec<String> {
    trajectory.messages.iter().filter(|message| message.role == Role::Tool).map(Message::text).collect()
}

fn endings(trajectory: &Trajectory) -> Vec<(Option<&str>, ToolEnding)> {
    trajectory.report.tool_uses.iter().map(|tool_use| (tool_use.name.as_deref(), tool_use.ending)).collect()
}

#[test]
fn the_variables_of_a_row_hold_in_every_turn() {
    let asking = "<|im_start|>assistant\n";
    for (kwargs, ending) in [(json!({}), ""), (json!({"enable_thinking": false}), "<think>\n\n</think>\n\n")] {
        for history in [History::Exact, History::Split] {
            let policy = Scripted::new(text("qwen3"), &[&call("add", &json!({"by": 2})), "It is 2."]);
            let row = json!({"prompt": "Add.", "chat_template_kwargs": kwargs});
            let limits = EpisodeLimits { history, ..limits() };
            play_with(&sandbox(), &policy, row, limits, 100_000);
            let second = policy.saw(1);
            assert!(second.ends_with(&format!("</tool_response><|im_end|>\n{asking}{ending}")), "{second:?}");
        }
    }
}

#[test]
fn calls_are_answered_until_a_turn_has_none() {
    let add = |by: i64| call("add", &json!({"by": by}));
    let policy =
        Scripted::new(text("qwen2_5"), &[&format!("First. {}", add(2)), &(add(3) + "\n" + &add(4)), "It is 9."]);
    let trajectory = play(&policy);
    assert_eq!(trajectory.finish_reason, FinishReason::Stop);
    assert_eq!(answers(&trajectory), ["2", "5", "9"]);
    assert_eq!(trajectory.response(), "It is 9.");
    assert_eq!((trajectory.turns(Role::Assistant), trajectory.turns(Role::Tool)), (3, 3));
    let first = &trajectory.messages[0];
    assert_eq!((first.text().as_str(), first.tool_calls[0].name.as_str()), ("First.", "add"));
    assert_eq!(trajectory.messages[1].tool_call_id.as_deref(), Some(first.tool_calls[0].id.as_str()));
    assert_eq!(trajectory.report.generating.len(), 3);
    // The episode begins after its first turn was asked for.
    let confirming = policy.confirming.lock().unwrap();
    assert!(zip(&trajectory.report.generating, &*confirming).skip(1).all(|(whole, part)| whole >= part));
    assert_eq!(*policy.conversations.lock().unwrap(), [0, 0, 0]);
    assert_eq!(*policy.forgotten.lock().unwrap(), [0]);
    assert!(policy.saw(0).contains("# Tools") && policy.saw(0).contains("Adds to the sum"));
}

#[test]
fn what_the_policy_wrote_is_kept_to_the_token() {
    // Written as no template would write it.
    let odd = "<tool_call>{ \"arguments\":{\"by\" : 2},\"name\":\"add\" }</tool_call>";
    let policy = Scripted::new(text("qwen2_5"), &[odd, "done"]);
    let trajectory = play(&policy);
    let tokens = trajectory.tokens().unwrap();
    let all = [&tokens.prompt[..], &tokens.response].concat();
    let asked = policy.asked.lock().unwrap();
    // What each turn saw is a prefix of what is trained on.
    for request in asked.iter() {
        assert_eq!(all[..request.prompt.len()], request.prompt);
    }
    let decode = |wanted: bool| {
        let ids: Vec<u32> = tokens
            .response
            .iter()
            .zip(&tokens.loss_mask)
            .filter(|(_, mask)| **mask == wanted)
            .map(|(id, _)| *id)
            .collect();
        policy.text.tokenizer.decode_with(&ids, false).unwrap()
    };
    assert_eq!(decode(true), format!("{odd}<|im_end|>done<|im_end|>"));
    assert_eq!(
        decode(false),
        "\n<|im_start|>user\n<tool_response>\n2\n</tool_response><|im_end|>\n<|im_start|>assistant\n"
    );
    let written = |number: &f32| *number != 0.0;
    assert!(tokens.logprobs.iter().zip(&tokens.loss_mask).all(|(logprob, mask)| written(logprob) == *mask));
    assert_eq!(tokens.versions, vec![3; tokens.response.len()]);
    for (at, (id, mask)) in tokens.response.iter().zip(&tokens.loss_mask).enumerate() {
        let could = if *mask { SamplingMask::Only(vec![*id]) } else { SamplingMask::All };
        assert_eq!(tokens.masks.get(at), could, "token {at}");
    }
}

#[test]
fn a_wrong_call_is_told_to_the_policy_and_counted() {
    let calls = [
        "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"by\": 2}\n</tool_call>".to_owned(),
        call("subtract", &json!({"by": 2})),
        call("add", &json!({})),
        call("add", &json!({"by": "two", "to": 1})),
        call("fail", &json!({"how": "wrong"})),
    ];
    let mut trajectories = calls.iter().map(|call| play(&Scripted::new(text("qwen2_5"), &[call, "well"])));
    let mut told = || {
        let trajectory = trajectories.next().unwrap();
        assert_eq!(trajectory.report.tool_uses[0].ending, ToolEnding::CalledWrongly);
        (trajectory.report.tool_uses[0].name.clone(), answers(&trajectory).concat())
    };
    let (name, answer) = told();
    assert!(name.is_none() && answer.starts_with("error: the call cannot be read: "), "{answer}");
    let (name, answer) = told();
    assert!(
        name.is_none() && answer.starts_with("error: there is no function `subtract`; there are: add, "),
        "{answer}"
    );
    assert_eq!(told(), (Some("add".into()), "error: \"by\" is a required property".into()));
    let (_, answer) = told();
    assert!(answer.contains("by: \"two\" is not of type \"integer\"") && answer.contains("'to'"), "{answer}");
    assert_eq!(told(), (Some("fail".into()), "error: that was wrong".into()));
}

#[test]
fn a_tool_that_fails_is_told_apart_from_one_that_was_called_wrongly() {
    let ways = ["away", "broken"].map(|how| call("fail", &json!({"how": how})));
    let rest = [call("loop", &json!({})), call("trap", &json!({})), call("add", &json!({"by": 1}))];
    let turn = [&ways[..], &rest[..1]].concat().join("\n");
    let policy = Scripted::new(text("qwen2_5"), &[&turn, &rest[1], &rest[2], "well"]);
    let trajectory = play(&policy);
    use ToolEnding::{Answered, Failed, OutOfBudget, Unavailable};
    let expected =
        [("fail", Unavailable), ("fail", Failed), ("loop", OutOfBudget), ("trap", Failed), ("add", Answered)];
    assert_eq!(endings(&trajectory), expected.map(|(name, ending)| (Some(name), ending)));
    let answers = answers(&trajectory);
    assert_eq!(answers[0], "error: nobody is there");
    assert!(answers[2].starts_with("error: the call was ended: "), "{answers:?}");
    assert_eq!(answers[4], "1");
}

#[test]
fn budgets_of_turns_calls_tokens_and_time_end_a_trajectory_each_in_its_own_way() {
    let sandbox = sandbox();
    let add = call("add", &json!({"by": 1}));
    let row = || json!({"prompt": "Add."});
    let script = |turns: &[&str]| Scripted::new(text("qwen2_5"), turns);
    let ended = |policy: &Scripted, limits: EpisodeLimits, max_tokens: usize| {
        play_with(&sandbox, policy, row(), limits, max_tokens).trajectories.remove(0)
    };

    let policy = script(&[&add, &add]);
    let trajectory = ended(&policy, EpisodeLimits { max_turns: 2, ..limits() }, 100_000);
    assert_eq!((trajectory.finish_reason, answers(&trajectory).len()), (FinishReason::MaxTurns, 1));

    let tools = ToolLimits { max_parallel_calls: 2, ..limits().tools };
    let policy = script(&[&[&*add; 3].join("\n"), "well"]);
    let trajectory = ended(&policy, EpisodeLimits { tools, ..limits() }, 100_000);
    assert_eq!(answers(&trajectory)[..2], ["1", "2"]);
    assert_eq!(answers(&trajectory)[2], "error: at most 2 calls are made in one turn; ask again for this one");

    // There is no room for the answer of the tool, or none after it.
    for max_tokens in [add.len() + 1, add.len() + 30] {
        let trajectory = ended(&script(&[&add]), limits(), max_tokens);
        assert_eq!((trajectory.finish_reason, trajectory.messages.len()), (FinishReason::Length, 1), "{max_tokens}");
        assert!(trajectory.tokens().unwrap().response.len() <= max_tokens);
    }

    let wait = call("loop", &json!({}));
    let deadline = Duration::from_millis(50);
    let trajectory = ended(&script(&[&wait]), EpisodeLimits { deadline, ..limits() }, 100_000);
    assert_eq!(trajectory.finish_reason, FinishReason::Timeout);
    assert_eq!(trajectory.report.error.unwrap().message, "the sample was not done after 0.05 s");
}

#[test]
fn a_long_answer_is_cut_and_says_so() {
    let flood = call("flood", &json!({"bytes": 1000}));
    for (left_out, expected) in [
        (LeftOut::End, format!("{}\n[800 tokens left out]", "x".repeat(200))),
        (LeftOut::Start, format!("[800 tokens left out]\n{}", "x".repeat(200))),
        (LeftOut::Middle, format!("{0}\n[800 tokens left out]\n{0}", "x".repeat(100))),
    ] {
        let policy = Scripted::new(text("qwen2_5"), &[&flood, "well"]);
        let limits = EpisodeLimits { tools: ToolLimits { left_out, ..limits().tools }, ..limits() };
        let sample = play_with(&sandbox(), &policy, json!({"prompt": "Go."}), limits, 100_000);
        assert_eq!(answers(&sample.trajectories[0]), [expected]);
    }
}

#[test]
fn of_a_very_long_answer_only_the_ends_are_read() {
    let flood = call("flood", &json!({"bytes": 200_000}));
    for (left_out, head, tail) in [(LeftOut::End, 200, 0), (LeftOut::Start, 0, 200), (LeftOut::Middle, 100, 100)] {
        let policy = Scripted::new(text("qwen2_5"), &[&flood, "well"]);
        let limits = EpisodeLimits { tools: ToolLimits { left_out, ..limits().tools }, ..limits() };
        let sample = play_with(&sandbox(), &policy, json!({"prompt": "Go."}), limits, 100_000);
        let parts = ["x".repeat(head), "[199800 bytes left out]".to_owned(), "x".repeat(tail)];
        let expected = parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n");
        assert_eq!(answers(&sample.trajectories[0]), [expected]);
    }
}

#[test]
fn a_call_that_cannot_be_read_is_answered_with_templates_that_ask_for_its_id() {
    let broken = "[TOOL_CALLS] [{\"name\": \"add\", \"arguments\": {\"by\": 2}]";
    let policy = Scripted::new(text("mistral_v3"), &[broken, "well"]);
    let trajectory = play(&policy);
    assert_eq!(endings(&trajectory), [(None, ToolEnding::CalledWrongly)]);
    assert!(answers(&trajectory)[0].starts_with("error: the call cannot be read: "), "{:?}", answers(&trajectory));
    assert_eq!(trajectory.response(), "well");
}

#[test]
fn a_call_that_the_time_of_the_sample_ends_is_counted() {
    let limits = EpisodeLimits { deadline: Duration::from_millis(50), ..limits() };
    let policy = Scripted::new(text("qwen2_5"), &[&call("loop", &json!({}))]);
    let sample = play_with(&sandbox(), &policy, json!({"prompt": "Go."}), limits, 100_000);
    let trajectory = &sample.trajectories[0];
    assert_eq!(endings(trajectory), [(Some("loop"), ToolEnding::OutOfBudget)]);
    let report = &trajectory.report;
    assert_eq!(report.in_tools, [report.tool_uses[0].seconds]);
    assert!(report.tool_uses[0].seconds > 0.0, "{report:?}");
}

#[test]
fn a_row_sets_its_tools_and_the_policy_does_not_see_it() {
    let policy = Scripted::new(text("qwen2_5"), &[&call("settings", &json!({})), "well"]);
    let row = json!({"prompt": "Go.", "extra_info": {"index": 0, "tools_kwargs": {"toolbox": {"create_kwargs": {"secret": 41}}}}});
    let sample = play_with(&sandbox(), &policy, row, limits(), 100_000);
    assert_eq!(answers(&sample.trajectories[0]), [r#"{"secret":41}"#]);
    assert!(!policy.saw(0).contains("41"));
}

#[test]
fn a_tool_reports_the_state_in_which_it_ended() {
    let sandbox = sandbox();
    let ended = |settings: Value, turns: &[&str]| {
        let policy = Scripted::new(text("qwen2_5"), turns);
        let tools_kwargs = json!({"toolbox": {"create_kwargs": settings}});
        let row = json!({"prompt": "Go.", "extra_info": {"tools_kwargs": tools_kwargs}});
        play_with(&sandbox, &policy, row, limits(), 100_000)
    };
    let states = |sample: &Sample| serde_json::to_string(&sample.states).unwrap();
    let add = call("add", &json!({"by": 2}));
    assert_eq!(states(&ended(json!({}), &[&add, &add, "It is 4."])), r#"{"toolbox":{"sum":4}}"#);
    // It was not called, has nothing to report, or lost its state with its instance.
    assert_eq!(states(&ended(json!({}), &["well"])), "{}");
    assert_eq!(states(&ended(json!({"finish": "none"}), &[&add, "well"])), "{}");
    assert_eq!(states(&ended(json!({}), &[&add, &call("trap", &json!({})), "well"])), "{}");
    // A sample without the state is not scored: a reward would take it for none.
    for (finish, why, retryable, budget) in [
        ("away", "nobody is there", true, None),
        ("large", "the state has 1048578 bytes, more than the 65536 allowed", false, None),
        ("loop", "cpu: ", false, Some(Budget::Cpu)),
        ("trap", "", false, None),
    ] {
        let sample = ended(json!({"finish": finish}), &[&add, "well"]);
        let trajectory = &sample.trajectories[0];
        let error = trajectory.report.error.as_ref().unwrap();
        let expected = format!("the tool `toolbox` did not report the state in which it ended: {why}");
        assert!(error.message.starts_with(&expected), "{finish}: {error:?}");
        assert_eq!((error.stage, error.retryable, error.budget), (RolloutStage::Tools, retryable, budget), "{finish}");
        assert_eq!((trajectory.finish_reason, states(&sample)), (FinishReason::Error, "{}".into()), "{finish}");
        assert_eq!(answers(trajectory), ["2"], "{finish}");
    }
}

#[test]
fn a_row_whose_tools_need_settings_has_some_for_a_tool_of_the_run() {
    let sandbox = sandbox();
    let all = Arc::new(sandbox.handle().block_on(ToolSet::load(&sandbox, vec![toolbox().into()])).unwrap());
    let of_row = |needs: bool, settings: Value| {
        let extra_info = json!({"need_tools_kwargs": needs, "tools_kwargs": settings});
        all.of_row(&task(json!({"prompt": "Go.", "extra_info": extra_info}))).map(drop)
    };
    let (tool, function, other) = (json!({"toolbox": {}}), json!({"add": {}, "b": {}}), json!({"b": {}, "a": {}}));
    for (needs, settings) in [(true, tool), (true, function), (false, other.clone()), (false, Value::Null)] {
        assert_eq!(of_row(needs, settings.clone()), Ok(()), "{needs} {settings}");
    }
    let known = "the tools and functions are: add, bytes, claim, fail, flood, grow, loop, random, settings, toolbox, trap, wait";
    // In Parquet, a column that a row leaves out is null.
    for (settings, set) in [(other, "b, a"), (json!({"toolbox": null}), "toolbox"), (Value::Null, "none")] {
        let expected = format!(
            "extra_info.need_tools_kwargs is true, and extra_info.tools_kwargs sets up no tool of the run: it names {set}; {known}\nhint: give the [[tool]] the name that the rows use"
        );
        assert_eq!(of_row(true, settings), Err(expected));
    }
}

#[test]
fn a_row_selects_what_may_be_called() {
    let (add, flood) = (call("add", &json!({"by": 2})), call("flood", &json!({"bytes": 3})));
    let row = |selection: Value| json!({"prompt": "Go.", "extra_info": {"tool_selection": selection}});
    for selection in [json!(["add"]), json!(["fail", "add"])] {
        let policy = Scripted::new(text("qwen2_5"), &[&add, &flood, "well"]);
        let sample = play_with(&sandbox(), &policy, row(selection.clone()), limits(), 100_000);
        let known: Vec<&str> = ["add", "fail"].into_iter().take(selection.as_array().unwrap().len()).collect();
        let unknown = format!("error: there is no function `flood`; there are: {}", known.join(", "));
        assert_eq!(answers(&sample.trajectories[0]), ["2", &unknown], "{selection}");
        assert!(policy.saw(0).contains("Adds to the sum") && !policy.saw(0).contains("\"flood\""), "{selection}");
    }
    let sandbox = sandbox();
    let all = Arc::new(sandbox.handle().block_on(ToolSet::load(&sandbox, vec![toolbox().into()])).unwrap());
    let selected = |selection: Value| all.of_row(&task(row(selection)));
    assert_eq!(selected(json!(["toolbox"])).unwrap().definitions(), all.definitions());
    assert_eq!(selected(Value::Null).unwrap().definitions(), all.definitions());
    let none = selected(json!([])).unwrap();
    assert_eq!((none.definitions().len(), none.tools().len()), (0, 0));
    let error = selected(json!(["add", "subtract"])).err().unwrap();
    assert!(error.starts_with("extra_info.tool_selection: there is no tool or function `subtract`; there are: add, "));
    let error = selected(json!("add")).err().unwrap();
    assert_eq!(error, "extra_info.tool_selection must be a list of tools, not \"add\"");
}

#[test]
fn two_tools_with_one_function_are_refused() {
    let sandbox = sandbox();
    let twice = vec![toolbox().into(), PluginSpec { name: "other".into(), ..toolbox() }.into()];
    let error = sandbox.handle().block_on(ToolSet::load(&sandbox, twice)).err().unwrap();
    assert!(matches!(error, ToolSetError::Twice { .. }), "{error}");
    assert!(error.to_string().starts_with("the tools `toolbox` and `other` both have a function `add`\n"), "{error}");
}

#[test]
fn a_quick_build_is_not_a_tool_of_a_run() {
    let sandbox = sandbox();
    let params = serde_json::from_value(json!({"name": "toolbox (quick)"})).unwrap();
    let quick = vec![PluginSpec { params, ..toolbox() }.into()];
    let error = sandbox.handle().block_on(ToolSet::load(&sandbox, quick)).err().unwrap();
    assert!(matches!(error, ToolSetError::Quick(_)), "{error}");
}

#[test]
fn each_turn_is_a_trajectory_where_the_template_rewrites_history() {
    // The template leaves out the thoughts of earlier turns.
    let policy = Scripted::new(text("qwen3"), &[]);
    let first = format!("<think>\nI add.\n</think>\n\n{}", call("add", &json!({"by": 2})));
    *policy.turns.lock().unwrap() = [first.clone(), "It is 2.".to_owned()].into();
    let limits = EpisodeLimits { history: History::Split, ..limits() };
    let sample = play_with(&sandbox(), &policy, json!({"prompt": "Add."}), limits, 100_000);
    assert_eq!(sample.response(), "It is 2.");
    let [before, after] = &sample.trajectories[..] else { panic!("{sample:?}") };
    assert_eq!((before.turns(Role::Assistant), before.turns(Role::Tool), before.opening.is_some()), (1, 0, false));
    // The second turn reads the template's rendering of everything before it, and only its own tokens are learned from.
    let opening = after.opening.as_ref().unwrap();
    let roles: Vec<Role> = opening.messages.iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::Tool]);
    let asked = policy.asked.lock().unwrap();
    let tokens = after.tokens().unwrap();
    assert_eq!(tokens.prompt, asked[1].prompt);
    assert!(tokens.loss_mask.iter().all(|learned| *learned));
    assert_eq!(before.tokens().unwrap().response.len(), first.len() + 1);
    assert_eq!(before.report.tool_uses.len(), 1);
}
