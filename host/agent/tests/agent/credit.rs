//! Credit of the standard reward `item-credit` for samples of several trajectories: it goes to the text that was scored.

use crate::common::{Scripted, built, limits, sandbox, task, text, toolbox};
use gavel_agent::{AgentEpisode, Episode, EpisodeLimits, EpisodeProgress, History, Policy, ToolSet, Tools};
use gavel_data::{Outcome, Sample};
use gavel_plugin::{Agent, Limits, Plugin, PluginSpec, Sandbox};
use gavel_text::RenderOptions;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

fn spec(name: &str, params: Value) -> PluginSpec {
    let limits = Limits { deadline: Duration::from_secs(30), cpu: Duration::from_secs(10), ..Limits::default() };
    let params: Map<String, Value> = serde_json::from_value(params).unwrap();
    PluginSpec { limits, params, ..PluginSpec::new(name, built(&format!("plugins/{name}.wasm"))) }
}

fn row() -> Value {
    json!({"prompt": "Sort 3 1.", "ground_truth": "1 3"})
}

/// The sample that a standard agent makes of these turns.
async fn of_agent(sandbox: &Sandbox, name: &str, params: Value, turns: &[&str]) -> Sample {
    let policy = Arc::new(Scripted::new(text("qwen2_5"), turns));
    let agent = Arc::new(Agent::load(sandbox, spec(name, params)).await.unwrap());
    let set = Arc::new(ToolSet::load(sandbox, Vec::new()).await.unwrap());
    let tools = Tools { set, limits: limits() };
    let (task, max_prompt_tokens, max_tokens) = (task(row()), 100_000, 100_000);
    let episode = AgentEpisode { task, index: 0, max_prompt_tokens, max_tokens, seed: 5, tool_seed: 6, agent, tools };
    episode.play(policy, &EpisodeProgress::default()).await.unwrap()
}

/// The sample of these turns with a tool, each turn a trajectory.
async fn split(sandbox: &Sandbox, turns: &[&str]) -> Sample {
    let policy = Scripted::new(text("qwen2_5"), turns);
    let set = Arc::new(ToolSet::load(sandbox, vec![toolbox().into()]).await.unwrap());
    let task = task(row());
    let prompt = policy.text.prompt_ids_with(&task.prompt, &RenderOptions::prompt(&set.definitions())).unwrap();
    let limits = EpisodeLimits { history: History::Split, ..limits() };
    let (key, tools) = (policy.conversation(), Some(Tools { set, limits }));
    let episode = Episode { task, index: 0, prompt, max_tokens: 100_000, seed: 5, tool_seed: 6, key, tools };
    let first = policy.generate(vec![episode.first_request()]).await.unwrap().remove(0);
    episode.play(&policy, first, &EpisodeProgress::default()).await.unwrap()
}

/// For each credit: the trajectory, the message, the text and the value.
async fn credit(sandbox: &Sandbox, sample: Sample) -> Vec<(u32, u32, String, f64)> {
    let params = json!({"right": 0.5, "wrong": -0.5});
    let plugin = Plugin::load(sandbox, spec("item-credit", params)).await.unwrap();
    let sample = Arc::new(sample);
    let outcome = plugin.score(&sample, 1).await.outcome;
    let Outcome::Scored(score) = outcome else { panic!("{outcome:?}") };
    let texts = score.credit.iter().map(|credit| {
        let message = &sample.trajectories[credit.trajectory as usize].messages[credit.message as usize];
        let text = message.text()[credit.start as usize..credit.end as usize].to_owned();
        (credit.trajectory, credit.message, text, credit.value)
    });
    texts.collect()
}

fn credits(trajectory: u32, message: u32, items: &[(&str, f64)]) -> Vec<(u32, u32, String, f64)> {
    items.iter().map(|(text, value)| (trajectory, message, (*text).to_owned(), *value)).collect()
}

#[test]
fn credit_is_for_the_draft_that_the_agent_chose() {
    let sandbox = sandbox();
    sandbox.handle().block_on(async {
        let drafts = ["So 1 3? Answer: 1 2", "Answer: 1 3 4", "Answer: 3 1", "The best is 2."];
        let sample = of_agent(&sandbox, "best-of-n", json!({"n": 3}), &drafts).await;
        let expected = credits(1, 0, &[("1", 0.5), ("3", 0.5), ("4", -0.5)]);
        assert_eq!(credit(&sandbox, sample).await, expected);
        // Drafts with the same words are right and wrong alike.
        let same = ["Answer: 1 2", "Answer: 2 1", "Answer: 1 2", "The best is 3."];
        let sample = of_agent(&sandbox, "best-of-n", json!({"n": 3}), &same).await;
        let items = [("1", 0.5), ("2", -0.5)];
        let mut found = credit(&sandbox, sample).await;
        found.sort_by_key(|credit| credit.0);
        assert_eq!(found, [credits(0, 0, &items), credits(2, 0, &items)].concat());
    });
}

#[test]
fn credit_is_for_the_last_words_of_a_debate() {
    let sandbox = sandbox();
    sandbox.handle().block_on(async {
        let turns = ["Answer: 2", "Answer: 3", "Answer: 1 3", "Answer: 1 2"];
        let sample = of_agent(&sandbox, "debate", json!({"rounds": 2}), &turns).await;
        assert_eq!(credit(&sandbox, sample).await, credits(0, 2, &[("1", 0.5), ("3", 0.5)]));
    });
}

#[test]
fn credit_is_for_the_last_turn_of_a_split_history() {
    let sandbox = sandbox();
    sandbox.handle().block_on(async {
        let call = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"by\": 2}}\n</tool_call>";
        for first in ["Answer: 1 2", "Answer: 1 3"] {
            let sample = split(&sandbox, &[&format!("{first}\n{call}"), "Answer: 1 3"]).await;
            assert_eq!(sample.trajectories.len(), 2);
            assert_eq!(credit(&sandbox, sample).await, credits(1, 0, &[("1", 0.5), ("3", 0.5)]), "{first}");
        }
    });
}
