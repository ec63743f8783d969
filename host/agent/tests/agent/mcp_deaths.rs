//! MCP servers that die during calls: what is asked again, and what becomes of the sample.

use crate::common::{Scripted, every_failure, limits, sandbox, task, text};
use gavel_agent::{
    Episode, EpisodeLimits, EpisodeProgress, McpSource, McpSpec, OnFailedCall, OnToolFailure, Policy, ToolLimits,
    ToolSet, Tools,
};
use gavel_data::{FinishReason, Role, RolloutFaultKind, RolloutStage, ToolEnding, Trajectory};
use gavel_text::RenderOptions;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_mortal.py");

/// A server with a folder of its own.
struct Mortal {
    folder: TempDir,
    spec: McpSpec,
}

impl Mortal {
    fn new(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let command = ["python3", SCRIPT, folder.path().to_str().unwrap()].into_iter().chain(more.iter().copied());
        let source = McpSource::Program(command.map(str::to_owned).collect());
        let spec = McpSpec {
            name: "server".into(),
            source,
            api_key_env: None,
            env: Vec::new(),
            timeout: Duration::from_secs(60),
            output: 1 << 16,
            limit: None,
            retries: 5,
        };
        Self { folder, spec }
    }

    /// A trajectory whose first turn makes these calls.
    fn play(&self, on_failure: OnToolFailure, calls: &[(&str, Value)]) -> Trajectory {
        let call = |(name, arguments): &(&str, Value)| {
            format!("<tool_call>\n{}\n</tool_call>", json!({"name": name, "arguments": arguments}))
        };
        let turn = calls.iter().map(call).collect::<Vec<_>>().join("\n");
        let policy = Scripted::new(text("qwen2_5"), &[&turn, "done"]);
        let sandbox = sandbox();
        sandbox.handle().block_on(async {
            let set = Arc::new(ToolSet::load(&sandbox, vec![self.spec.clone().into()]).await.unwrap());
            let task = task(json!({"prompt": "Go."}));
            let options = set.definitions();
            let prompt = policy.text.prompt_ids_with(&task.prompt, &RenderOptions::prompt(&options)).unwrap();
            let tools = ToolLimits { on_failure, ..limits().tools };
            let limits = EpisodeLimits { deadline: Duration::from_secs(300), tools, ..limits() };
            let (key, tools) = (policy.conversation(), Some(Tools { set, limits }));
            let episode = Episode { task, index: 0, prompt, max_tokens: 100_000, seed: 1, tool_seed: 2, key, tools };
            let first = policy.generate(vec![episode.first_request()]).await.unwrap().remove(0);
            let mut sample = episode.play(&policy, first, &EpisodeProgress::default()).await.unwrap();
            // A server keeps its state to itself.
            assert!(sample.states.is_empty(), "{:?}", sample.states);
            sample.trajectories.remove(0)
        })
    }

    fn lines(&self, file: &str) -> Vec<String> {
        let path: &Path = self.folder.path();
        let mut lines: Vec<String> = fs::read_to_string(path.join(file)).unwrap().lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines
    }
}

/// How each call ended, and what the policy read.
fn answers(trajectory: &Trajectory) -> Vec<(ToolEnding, String)> {
    let read = trajectory.messages.iter().filter(|message| message.role == Role::Tool);
    trajectory.report.tool_uses.iter().map(|tool_use| tool_use.ending).zip(read.map(|message| message.text())).collect()
}

fn answered(text: &str) -> (ToolEnding, String) {
    (ToolEnding::Answered, text.to_owned())
}

#[test]
fn calls_that_may_be_repeated_are_asked_again_after_a_death() {
    let server = Mortal::new(&[]);
    let calls = [("look", json!({})), ("set", json!({})), ("look", json!({})), ("die", json!({"after": 3}))];
    let trajectory = server.play(OnToolFailure::default(), &calls);
    assert_eq!(answers(&trajectory), vec![answered("life 2"); 4]);
    assert_eq!(trajectory.finish_reason, FinishReason::Stop);
    let each = ["die", "look", "look", "set"];
    let expected: Vec<String> = [1, 2].iter().flat_map(|life| each.map(|name| format!("{life} {name}"))).collect();
    assert_eq!(server.lines("calls"), expected);
}

#[test]
fn a_call_that_may_have_had_its_effect_is_not_repeated() {
    let server = Mortal::new(&[]);
    let calls = [("add", json!({})), ("look", json!({})), ("die", json!({"after": 2}))];
    let trajectory = server.play(every_failure(OnFailedCall::Answer), &calls);
    let away = (ToolEnding::Unavailable, "error: `server` does not answer".to_owned());
    assert_eq!(answers(&trajectory), [away, answered("life 2"), answered("life 2")]);
    assert_eq!(server.lines("calls"), ["1 add", "1 die", "1 look", "2 die", "2 look"]);
}

#[test]
fn a_sample_whose_tool_is_away_ends_and_nobody_reads_the_error() {
    let server = Mortal::new(&[]);
    let trajectory = server.play(OnToolFailure::default(), &[("add", json!({})), ("die", json!({"after": 1}))]);
    assert_eq!(answers(&trajectory), []);
    let endings: Vec<ToolEnding> = trajectory.report.tool_uses.iter().map(|tool_use| tool_use.ending).collect();
    assert_eq!(endings, [ToolEnding::Unavailable, ToolEnding::Answered]);
    let fault = trajectory.report.error.as_ref().unwrap();
    assert_eq!(fault.message, "the tool function `add` is unavailable: `server` does not answer");
    assert_eq!((fault.stage, fault.retryable), (RolloutStage::Tools, true));
    assert_eq!(trajectory.finish_reason, FinishReason::Error);
    assert_eq!(trajectory.fault_kind(), Some(RolloutFaultKind::Unavailable));
}

#[test]
fn a_call_that_ends_the_server_each_time_ends_the_others_at_most_twice() {
    let server = Mortal::new(&[]);
    let calls = [("look", json!({})), ("die", json!({"after": 1, "lives": 1000}))];
    let server = Mortal { spec: McpSpec { retries: 3, ..server.spec.clone() }, ..server };
    let trajectory = server.play(every_failure(OnFailedCall::Answer), &calls);
    let [(looked, life), (died, away)] = &answers(&trajectory)[..] else { panic!() };
    assert_eq!((*looked, *died), (ToolEnding::Answered, ToolEnding::Unavailable), "{life}, {away}");
    assert_eq!(away, "error: `server` does not answer");
    let lines = server.lines("calls");
    assert_eq!(lines.iter().filter(|line| line.ends_with("die")).count(), 4, "{lines:?}");
    assert!(lines.iter().filter(|line| line.ends_with("look")).count() <= 3, "{lines:?}");
}

#[test]
fn the_time_of_a_restart_is_not_that_of_the_call() {
    let server = Mortal::new(&["12"]);
    let server = Mortal { spec: McpSpec { timeout: Duration::from_secs(10), ..server.spec.clone() }, ..server };
    let trajectory = server.play(OnToolFailure::default(), &[("look", json!({})), ("die", json!({"after": 1}))]);
    // A server that is silent for 10 s is tried with another revision of the protocol, in another life.
    let [(looked, first), (died, second)] = &answers(&trajectory)[..] else { panic!() };
    assert_eq!((*looked, *died), (ToolEnding::Answered, ToolEnding::Answered), "{first}, {second}");
}

#[test]
fn a_server_that_does_not_start_again_is_tried_as_often_as_it_is_set() {
    let server = Mortal::new(&["no-number"]);
    let server = Mortal { spec: McpSpec { retries: 2, ..server.spec.clone() }, ..server };
    let trajectory = server.play(OnToolFailure::default(), &[("die", json!({}))]);
    let fault = trajectory.report.error.as_ref().unwrap();
    assert!(fault.message.starts_with("the tool function `die` is unavailable: tool `server`: "), "{}", fault.message);
    assert!(fault.message.contains("could not convert string to float: 'no-number'"), "{}", fault.message);
    assert_eq!(trajectory.fault_kind(), Some(RolloutFaultKind::Unavailable));
    assert_eq!(server.lines("lives").len(), 3);
}
