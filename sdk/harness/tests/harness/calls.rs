//! Real components under the harness: builders, fakes and assertions.

use crate::common::{assert_shows, built, panic_of};
use gavel_data::{Blame, Budget, FinishReason, OutcomeKind, PriorVerdict, SampleInput};
use gavel_harness::{
    Call, CaseFile, FakeChat, FakeHttp, Harness, LoadedPlugin, groups, recorded, sample, sample_of, samples,
    samples_like, trajectory,
};
use gavel_plugin::{ChatError, Grants, Limits, PluginSpec, Sandbox, SandboxConfig, Tape};
use gavel_runs::{SampleWriter, ScoredSample, TaskStore, layout};
use gavel_scoring::recording::{Grouping, PluginSet, keep_plugin_set};
use gavel_scoring::{Scorer, WeightedPlugin};
use serde_json::{Value, json};
use snapbox::str;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

fn obeys() -> LoadedPlugin {
    Harness::new().unwrap().plugin(built("guests/obeys.wasm")).load().unwrap()
}

#[test]
fn what_holds_is_quiet() {
    let plugin = obeys();
    plugin.score(sample("score 0.5\nmetric words 3\nnote fine\nprint hello")).assert_score(0.5);
    plugin
        .score(sample("score 0.1\nmetric words 3\nnote so fine\nprint hello\ncomplain oh"))
        .assert_score(0.1)
        .assert_score_between(0.0, 0.2)
        .assert_metric("words", 3.0)
        .assert_reason("fine")
        .assert_printed("hello\noh")
        .assert_memory_at_most(64 << 20);
    plugin.score(sample("truth").ground_truth(7)).assert_score(7.0);
    plugin.score(sample("abstain not mine")).assert_abstained().assert_reason("not mine");
    plugin.score(sample("dance")).assert_fault(Blame::Input).assert_reason("is not an instruction");
    plugin.score(sample("panic ouch")).assert_fault(Blame::Plugin).assert_printed("ouch");
    plugin.score(sample("unavailable busy")).assert_unavailable();
    plugin.score(sample("take 1000000000")).assert_out_of_budget(Budget::Memory);
}

#[test]
fn states_and_extra_reach_a_reward() {
    let harness = Harness::new().unwrap();
    let note = |sample: SampleInput| {
        let plugin = harness.plugin(built("guests/traces.wasm")).load().unwrap();
        let note: Value = serde_json::from_str(&plugin.score(sample).outcome().reason().unwrap()).unwrap();
        json!([note["trajectories"][0]["shop"], note["extra"]])
    };
    let extra = json!({"plan": [1]}).as_object().unwrap().clone();
    let told = sample("x").state("shop", json!({"sold": 2})).extra(extra);
    assert_eq!(note(told.into()), json!([{"sold": 2}, {"plan": [1]}]));
    assert_eq!(note(sample("x").into()), json!([null, null]));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cases.jsonl");
    let case = |name: &str, value: Value| {
        let mut case = json!({"response": "x", "states": {"shop": {"sold": 2}}, "extra": {"plan": [1]}});
        case[name] = value;
        std::fs::write(&path, format!("{case}\n")).unwrap();
        harness.plugin(built("guests/traces.wasm")).cases(&path).map_err(|error| error.to_string())
    };
    let told = r#""shop":{"sold":2}"#;
    case("expect", json!({"score": 1, "reason": told})).unwrap().assert_pass();
    case("expect", json!({"score": 1, "reason": r#""extra":{"plan":[1]}"#})).unwrap().assert_pass();
    for (name, value, what) in [
        ("states", json!([1]), "line 1: `states` must be an object of the states of tools, not [1]"),
        ("extra", json!("x"), "line 1: `extra` must be an object, which the agent returned, not \"x\""),
    ] {
        let error = case(name, value).unwrap_err();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn parameters_limits_and_names_are_those_of_a_run() {
    let harness = Harness::new().unwrap();
    let limits = Limits { cpu: Duration::from_millis(200), fuel: Some(50_000_000), ..Limits::default() };
    let plugin = harness.plugin(built("guests/obeys.wasm")).params(json!({"factor": 2})).limits(limits).load().unwrap();
    assert_eq!((plugin.name(), plugin.info().name.as_str()), ("obeys", "obeys"));
    plugin.score(sample("score 1")).assert_score(2.0).assert_fuel_at_most(50_000_000);
    let looped = plugin.score(sample("loop"));
    assert_eq!(looped.outcome().kind(), OutcomeKind::OutOfBudget);
    let error = |params: Value| match harness.plugin(built("guests/obeys.wasm")).params(params).load() {
        Ok(_) => panic!("it loads"),
        Err(error) => error.to_string(),
    };
    assert_shows(error(json!([1])), str!["plugin `obeys`: the parameters must be a JSON object, not [1]"]);
    assert_shows(
        error(json!({"factor": 0})),
        str![[r#"plugin `obeys` refuses its parameters {"factor":0}: `factor` is 0: every score would be"#]],
    );
}

#[test]
fn an_assertion_that_fails_shows_all_that_is_known() {
    let plugin = obeys();
    let failed = |response: &str, assert: fn(&Call)| {
        let call = plugin.score(sample(response).ground_truth("4"));
        panic_of(|| assert(&call))
    };
    assert_shows(
        failed("score 0.25\nmetric words 3\nnote too short\nprint one\nprint two", |call| {
            call.assert_score(1.0);
        }),
        str![[r#"
plugin `obeys`: expected score 1, got 0.25 (difference -0.75)
  outcome   scored 0.25
  note      too short
  metrics   words 3
  printed   one
            two
  used      [..]
  response  "score 0.25\nmetric words 3\nnote too short\nprint one\nprint two"

"#]],
    );
    assert_shows(
        failed("complain no such table\npanic it is gone", |call| {
            call.assert_score_between(0.0, 1.0);
        }),
        str![[r#"
plugin `obeys`: expected score 0 to 1, got fault (trap)
  outcome   fault (trap)
  reason    thread '<unnamed>' (1) panicked at obeys/src/lib.rs:71:28: it is gone (wasm trap: wasm `unreachable` instruction executed)
  printed   no such table

            thread '<unnamed>' (1) panicked at obeys/src/lib.rs:71:28:
            it is gone
            note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
  trapped   gavel:plugin/reward@0.2.0#score
  used      [..]
  response  "complain no such table\npanic it is gone"

"#]],
    );
    assert_shows(
        failed("take 1000000000", |call| {
            call.assert_out_of_budget(Budget::Cpu);
        }),
        str![[r#"
plugin `obeys`: expected outcome out-of-budget (cpu), got out-of-budget (memory)
  outcome   out-of-budget (memory)
  reason    memory: [..] bytes asked for, 268435456 allowed
  printed   memory allocation of 1000000000 bytes failed
            note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace
  trapped   gavel:plugin/reward@0.2.0#score
  used      [..]
  response  "take 1000000000"

"#]],
    );
    assert_shows(
        failed("abstain not mine", |call| {
            call.assert_reason("yours");
        }),
        str![[r#"
plugin `obeys`: expected reason with "yours", got "not mine"
  outcome   abstained
  reason    not mine
  used      [..]
  response  "abstain not mine"

"#]],
    );
    assert_shows(
        failed("score 1", |call| {
            call.assert_metric("words", 3.0);
        }),
        str![[r#"
plugin `obeys`: expected metrics.words 3, got none
  outcome   scored 1
  used      [..]
  response  "score 1"

"#]],
    );
    assert_shows(
        failed(&format!("score 1\nnote {}", "a".repeat(400)), |call| {
            call.assert_printed("hello");
        }),
        str![[r#"
plugin `obeys`: expected it to print "hello"
  outcome   scored 1
  note      aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
  used      [..]
  response  "score 1\nnote aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"… (413 bytes)

"#]],
    );
    assert_shows(
        failed("score 1", |call| {
            call.assert_fuel_at_most(1000);
        }),
        str![[r#"
plugin `obeys`: expected little fuel, but fuel is not metered: set `fuel` in the limits
  outcome   scored 1
  used      [..]
  response  "score 1"

"#]],
    );
    assert_shows(
        failed("dance", |call| {
            call.assert_fault(Blame::Plugin);
        }),
        str![[r#"
plugin `obeys`: expected a fault of the plugin, got one of the input
  outcome   fault (input)
  reason    invalid input: `dance` is not an instruction
  used      [..]
  response  "dance"

"#]],
    );
}

#[test]
fn a_plugin_sees_what_was_built() {
    let plugin = Harness::new().unwrap().plugin(built("guests/echo-metadata.wasm")).load().unwrap();
    let talk = trajectory()
        .calls_tool("c1", "look", json!({"at": "x"}))
        .tool_answers("c1", "a cat")
        .answers("It is a cat.")
        .finish(FinishReason::Length);
    let call = plugin.score(sample_of([talk]).prompt("What is it?").id("cats/1").group_index(3).ground_truth("cat"));
    let seen: Value = serde_json::from_str(&call.outcome().reason().unwrap()).unwrap();
    assert_eq!(seen["task_id"], "cats/1");
    assert_eq!((&seen["group_index"], &seen["ground_truth"]), (&json!(3), &json!("cat")));
    assert_eq!(seen["response"], "It is a cat.");
    assert_eq!(seen["columns"]["prompt"], json!([{"role": "user", "content": "What is it?"}]));
}

#[test]
fn a_fake_model_replies_in_order_and_knows_what_it_was_asked() {
    let harness = Harness::new().unwrap();
    let judge = FakeChat::replies(["3", "4"]);
    harness.chat("judge", &judge);
    let grants = || Grants { chat: vec!["judge".into()], ..Grants::default() };
    let plugin =
        harness.plugin(built("guests/asks.wasm")).params(json!({"questions": 2})).grants(grants()).load().unwrap();
    plugin.score(sample("why?")).assert_score(7.0);
    let asked: Vec<String> = judge.requests().iter().map(|request| request.messages[1].text()).collect();
    assert_eq!(asked, ["0: why?", "1: why?"]);
    assert_eq!(judge.requests()[0].options["temperature"], 0);
    plugin
        .score(sample("and now?"))
        .assert_unavailable()
        .assert_reason("the test has no reply for request 3 to the endpoint `judge`");

    let harness = Harness::new().unwrap();
    harness.chat("judge", &FakeChat::answering(|request| Ok(request.messages[1].text().len().to_string())));
    let plugin = harness.plugin(built("guests/asks.wasm")).grants(grants()).load().unwrap();
    plugin.score(sample("xyz")).assert_score("0: xyz".len() as f64);

    let harness = Harness::new().unwrap();
    harness.chat("judge", &FakeChat::failing(ChatError::Unavailable("too busy".into())));
    let plugin = harness.plugin(built("guests/asks.wasm")).grants(grants()).load().unwrap();
    plugin.score(sample("xyz")).assert_unavailable().assert_reason("too busy");
}

#[test]
fn a_fake_server_answers_what_is_granted() {
    let harness = Harness::new().unwrap();
    let server = FakeHttp::replies([(200, "yes"), (503, "later")]);
    harness.http(&server);
    let urls =
        ["https://judge.example/a", "https://other.example/b", "https://judge.example/c", "https://judge.example/d"];
    let grants = Grants { http: vec!["judge.example".into()], ..Grants::default() };
    let plugin =
        harness.plugin(built("guests/fetch.wasm")).params(json!({"urls": urls})).grants(grants).load().unwrap();
    let call = plugin.score(sample("x"));
    let seen: Vec<Value> = serde_json::from_str(&call.outcome().reason().unwrap()).unwrap();
    assert_eq!(seen[0], json!({"status": 200, "body": "yes"}));
    assert!(seen[1]["error"].as_str().unwrap().contains("HttpRequestDenied"), "{seen:?}");
    assert_eq!(seen[2], json!({"status": 503, "body": "later"}));
    assert!(seen[3]["error"].as_str().unwrap().contains("ConnectionRefused"), "nobody listens any more: {seen:?}");
    let asked: Vec<String> = server.requests().iter().map(|request| request.uri().path().to_owned()).collect();
    assert_eq!(asked, ["/a", "/c", "/d"]);
}

#[test]
fn a_group_is_judged_together() {
    let plugin = Harness::new().unwrap().plugin(built("guests/shortest.wasm")).load().unwrap();
    let calls = plugin.judge([sample("long"), sample(""), sample("ab")]);
    calls[0].assert_score(0.0).assert_metric("index", 0.0);
    calls[1].assert_abstained();
    calls[2].assert_score(1.0).assert_metric("index", 2.0);
}

#[test]
fn a_judger_sees_what_the_test_says_that_others_said() {
    let harness = Harness::new().unwrap();
    let ranks = || harness.plugin(built("guests/ranks.wasm")).params(json!({"by": "quality"}));
    let calls = ranks().load().unwrap().judge([
        sample("a").verdict("quality", 0.5),
        sample("b").verdict("quality", 0.75),
        sample("c").verdict("quality", PriorVerdict::Abstained("no".into())),
        sample("d").verdict("other", 1.0),
    ]);
    calls[0].assert_score(0.0);
    calls[1].assert_score(0.5).assert_reason("scored 0.75");
    calls[2].assert_abstained().assert_reason("abstained: no");
    calls[3].assert_abstained().assert_reason("nothing is shown");

    let folder = tempfile::tempdir().unwrap();
    let cases = folder.path().join("cases.jsonl");
    let case = |verdict: Value, expect: Value| {
        format!("{}\n", json!({"id": "a", "response": "x", "verdicts": {"quality": verdict}, "expect": expect}))
    };
    let noted = json!({"score": 2, "note": "good", "metrics": {"m": 3}});
    let text = case(json!(1), json!({"score": 0}))
        + &case(noted, json!({"score": 0.5, "reason": "scored 2, good", "metrics": {"sum": 3}}))
        + &case(json!("not-called"), json!({"outcome": "abstained", "reason": "not called"}))
        + &case(json!("no-verdict"), json!({"outcome": "abstained", "reason": "no verdict"}));
    std::fs::write(&cases, &text).unwrap();
    ranks().cases(&cases).unwrap().assert_pass();
    std::fs::write(&cases, text.replace("not-called", "not called")).unwrap();
    let error = ranks().cases(&cases).unwrap_err().to_string();
    assert!(error.contains("`verdicts.quality` must be a score"), "{error}");
}

#[test]
fn recorded_answers_are_given_again_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let grants = Grants { http: vec!["judge.example".into()], ..Grants::default() };
    let params = serde_json::from_value(json!({"urls": ["https://judge.example/a"], "must": true})).unwrap();
    let spec = PluginSpec { params, grants: grants.clone(), ..PluginSpec::new("judge", built("guests/fetch.wasm")) };
    let asked: Arc<gavel_data::Sample> = sample("x").ground_truth("y").into();

    let sandbox = Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::MIN)).unwrap();
    sandbox.use_tape(Tape::record(layout::tape(folder.path())));
    sandbox.answer_http(Arc::new(FakeHttp::replies([(200, "yes")])));
    let live = sandbox
        .handle()
        .block_on(async { gavel_plugin::Plugin::load(&sandbox, spec.clone()).await.unwrap().score(&asked, 7).await });

    let harness = Harness::replaying(folder.path()).unwrap();
    let plugin = harness.load(spec).unwrap();
    assert_eq!(plugin.score_seeded(asked, 7).outcome(), &live.outcome);
    plugin.score(sample("another")).assert_unavailable().assert_reason("was not recorded");
}

#[test]
fn the_samples_of_a_recording_are_scored_as_they_were() {
    let folder = tempfile::tempdir().unwrap();
    let spec = PluginSpec::new("random", built("guests/random.wasm"));
    let plugins = vec![WeightedPlugin::new(spec.clone(), 1.0)];
    let scorer = Scorer::new(plugins, SandboxConfig::with_threads(NonZeroUsize::MIN).into()).unwrap();
    keep_plugin_set(folder.path(), PluginSet::of(&scorer, Grouping::default(), 0), false).unwrap();
    let mut tasks = TaskStore::open(folder.path()).unwrap();
    let mut writer = SampleWriter::create(folder.path(), 0).unwrap();
    let mut outcomes = Vec::new();
    for group in 0..3u64 {
        let scored: Arc<gavel_data::Sample> = sample(format!("response {group}")).into();
        let outcome = scorer.wait(scorer.start_alone(scored.clone(), 100 + group));
        writer
            .write(
                &mut tasks,
                &ScoredSample {
                    step: 1,
                    group,
                    trained_step: None,
                    sample: &scored,
                    outcome: &outcome,
                    advantages: &[],
                },
            )
            .unwrap();
        outcomes.push(outcome.plugins["random"].outcome.clone());
    }
    writer.finish(&mut tasks).unwrap();

    let plugin = Harness::new().unwrap().load(spec).unwrap();
    let recorded = recorded(folder.path()).unwrap();
    assert_eq!(recorded.iter().map(|recorded| recorded.seed).collect::<Vec<_>>(), [100, 101, 102]);
    for (recorded, outcome) in recorded.iter().zip(outcomes) {
        assert_eq!(plugin.score_recorded(recorded).outcome(), &outcome);
    }
}

#[test]
fn sound_plugins_never_fault() {
    let harness = Harness::new().unwrap();
    harness.plugin(built("plugins/exact-answer.wasm")).load().unwrap().assert_never_faults(samples());
    let format = harness.plugin(built("plugins/format.wasm")).params(json!({"pattern": "(?s)<think>.*</think>.*"}));
    format.load().unwrap().assert_never_faults(samples_like(&sample("").prompt("2 + 2?").ground_truth("4")));
    harness.plugin(built("guests/shortest.wasm")).load().unwrap().assert_never_faults_in_groups(groups());
}

#[test]
fn a_plugin_that_faults_is_shown_with_the_smallest_sample() {
    let harness = Harness::new().unwrap();
    let failed = |guest: &str| {
        let plugin = harness.plugin(built(&format!("hostile/{guest}.wasm"))).load().unwrap();
        panic_of(|| plugin.assert_never_faults(samples_like(&sample("").ground_truth("4"))))
    };
    assert_shows(
        failed("score-outside-range"),
        str![[r#"
plugin `score-outside-range` fails for this sample:
  outcome   fault (plugin)
  reason    the score 2 is outside the declared range [0, 1]
  used      [..]
  response  ""
as a case: {"ground_truth":"4","messages":[{"role":"assistant","content":""}]}
"#]],
    );
    assert_shows(
        failed("nan-score"),
        str![[r#"
plugin `nan-score` fails for this sample:
  outcome   fault (plugin)
  reason    the score is NaN
  used      [..]
  response  ""
as a case: {"ground_truth":"4","messages":[{"role":"assistant","content":""}]}
"#]],
    );
}

#[test]
fn a_file_of_cases_is_an_assertion_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cases.jsonl");
    let cases = r#"{"case": "right", "response": "score 1", "expect": {"score": 1}}
{"case": "wrong", "response": "score 0.5", "expect": {"score": 1, "tolerance": 0.1}}
"#;
    // Some editors put a byte-order mark before a file.
    std::fs::write(&file, format!("\u{feff}{cases}")).unwrap();
    let harness = Harness::new().unwrap();
    let results = harness.plugin(built("guests/obeys.wasm")).cases(&file).unwrap();
    assert_eq!(results.failed().count(), 1);
    let said = panic_of(|| results.assert_pass()).replace(&folder.path().display().to_string(), "FOLDER");
    assert_shows(
        said,
        str![[r#"
plugin `obeys`: 1 of 2 cases failed

wrong (FOLDER/cases.jsonl:2)
  expected score 1 ± 0.1, got 0.5 (difference -0.5)
  outcome   scored 0.5
  used      [..]
  response  "score 0.5"

"#]],
    );
    assert_eq!(CaseFile::read(&file).unwrap().cases().len(), 2);
}
