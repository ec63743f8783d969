//! Training where an agent makes the samples.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "train")]

mod project;

use project::{Project, built, lines, stderr};
use serde_json::Value;

/// The arguments of a run in which two speakers debate.
fn debate(settings: &[&str]) -> Vec<String> {
    let agent = format!("agent.path={:?}", built("plugins/debate.wasm"));
    let common =
        ["agent.params={rounds=1}", "train.steps=2", "train.mini_batch_prompts=4", "log.token_ids=true", &agent];
    let settings = common.iter().chain(settings).flat_map(|setting| ["--set", setting]);
    ["train", "-c", "train.toml"].into_iter().chain(settings).map(str::to_owned).collect()
}

fn succeed(project: &Project, arguments: &[String]) -> String {
    let output = project.succeed(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_conversation_of_an_agent_is_a_trajectory_that_is_learned_from() {
    let project = Project::new();
    let checked = succeed(&project, &[&debate(&[])[..], &["--dry-run".to_owned()]].concat());
    assert!(checked.contains("agent: debate"), "{checked}");
    succeed(&project, &debate(&[]));
    for line in &project.metrics("runs/run")[1..] {
        assert_eq!(line["num_trajectories/mean"], 2.0, "{line:?}");
        assert!(line["response_length/clip_ratio"].as_f64().unwrap() <= 1.0, "{line:?}");
        assert!(line["logprob_mismatch"].as_f64().unwrap() < 1e-4, "{line:?}");
    }
    let trajectories = lines(&project.path("runs/run/trajectories/step-000001.jsonl"));
    assert_eq!(trajectories.len(), 2 * 16);
    let speakers: Vec<&Value> = trajectories[..2].iter().map(|line| &line["opening"]["speaker"]).collect();
    assert_eq!(speakers, ["first", "second"]);
    for pair in trajectories.chunks(2) {
        assert_eq!((&pair[0]["id"], &pair[0]["advantage"]), (&pair[1]["id"], &pair[1]["advantage"]));
        // What rewards read is what the agent answered: the first speaker's last turn.
        assert_eq!(pair[1]["answer"], pair[0]["response"]);
    }
    let said = succeed(&project, &["replay".to_owned(), "runs/run".to_owned()]);
    assert!(said.contains("all the same"), "{said}");

    let resumed = [&debate(&["train.steps=3"])[..], &["--resume".to_owned()]].concat();
    succeed(&project, &resumed);
}

#[test]
fn the_reward_reaches_the_last_trajectory_alone_if_the_run_says_so() {
    let project = Project::new();
    succeed(&project, &debate(&["train.steps=1", "agent.reward_to=last"]));
    let metrics = project.metrics("runs/run");
    let (trained, response) = (&metrics[1]["tokens/trained"], &metrics[1]["tokens/response"]);
    assert!(trained.as_f64().unwrap() < 0.8 * response.as_f64().unwrap(), "{metrics:?}");
}

#[test]
fn a_configuration_of_an_agent_that_cannot_be_says_why() {
    let project = Project::new();
    let error = |settings: &[&str]| {
        let output = project.run(&debate(settings).iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    let said = error(&["agent.kind=tools"]);
    assert!(
        said.contains("both agent.kind and agent.path say what makes a sample\nhint: leave agent.kind out"),
        "{said}"
    );
    let said = error(&["agent.limits={timeout=\"1s\"}"]);
    assert!(said.contains("agent.limits.timeout is not a key\nhint: set agent.timeout"), "{said}");
    let said = error(&[&format!("agent.path={:?}", built("plugins/exact-answer.wasm")), "agent.params={}"]);
    assert!(
        said.contains("plugin `agent` is not an agent: it does not export gavel:plugin/agent\nhint: name"),
        "{said}"
    );
    let said = error(&["agent.params={rounds=0}"]);
    assert!(said.contains("rounds must be at least 1, not 0"), "{said}");
}
