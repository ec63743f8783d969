//! A scripted policy in the standard shop, and the score of the state that it leaves there.

use crate::common::{Scripted, built, limits, sandbox, task, text};
use gavel_agent::{Episode, EpisodeLimits, EpisodeProgress, Policy, ToolSet, Tools};
use gavel_data::{Outcome, Sample};
use gavel_plugin::{Limits, Plugin, PluginSpec, Sandbox};
use gavel_text::RenderOptions;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn spec(name: &str) -> PluginSpec {
    let limits = Limits { deadline: Duration::from_secs(30), cpu: Duration::from_secs(10), ..Limits::default() };
    PluginSpec { limits, ..PluginSpec::new(name, built(&format!("plugins/{name}.wasm"))) }
}

/// The sample of these turns, for a row that asks for 2 apples.
async fn play(sandbox: &Sandbox, turns: &[String]) -> Sample {
    let turns: Vec<&str> = turns.iter().map(String::as_str).collect();
    let policy = Scripted::new(text("qwen2_5"), &turns);
    let set = Arc::new(ToolSet::load(sandbox, vec![spec("shop").into()]).await.unwrap());
    let stock = json!({"apple": {"price": 3, "count": 5}, "pear": {"price": 4, "count": 2}});
    let task = task(json!({
        "prompt": "Buy 2 apples.",
        "ground_truth": {"orders": [{"apple": 2}]},
        "extra_info": {"tools_kwargs": {"shop": {"create_kwargs": {"stock": stock}}}},
    }));
    let prompt = policy.text.prompt_ids_with(&task.prompt, &RenderOptions::prompt(&set.definitions())).unwrap();
    let (key, tools) = (policy.conversation(), Some(Tools { set, limits: EpisodeLimits { max_turns: 8, ..limits() } }));
    let episode = Episode { task, index: 0, prompt, max_tokens: 100_000, seed: 5, tool_seed: 6, key, tools };
    let first = policy.generate(vec![episode.first_request()]).await.unwrap().remove(0);
    episode.play(&policy, first, &EpisodeProgress::default()).await.unwrap()
}

fn call(name: &str, arguments: &Value) -> String {
    format!("<tool_call>\n{}\n</tool_call>", json!({"name": name, "arguments": arguments}))
}

#[test]
fn what_was_bought_counts_and_not_what_is_said() {
    let add = |item: &str, count: u64| call("add", &json!({"item": item, "count": count}));
    let (pay, cancel) = (|| call("pay", &json!({})), |order: u64| call("cancel", &json!({"order": order})));
    let (apples, pear) = (|| add("apple", 2), || add("pear", 1));
    let right = json!({"orders": [{"apple": 2}], "paid": 6, "basket": {}, "stock": {"apple": 3, "pear": 2}});
    let untouched =
        |basket: Value| json!({"orders": [], "paid": 0, "basket": basket, "stock": {"apple": 5, "pear": 2}});
    let both =
        json!({"orders": [{"apple": 2}, {"pear": 1}], "paid": 10, "basket": {}, "stock": {"apple": 3, "pear": 1}});
    let cases: [(&str, Vec<String>, Option<Value>, f64); 9] = [
        ("right", vec![apples(), pay()], Some(right.clone()), 1.0),
        ("a cancelled order beside it", vec![pear(), pay(), apples(), pay(), cancel(1)], Some(right), 1.0),
        (
            "the wrong item",
            vec![pear(), pay()],
            Some(json!({"orders": [{"pear": 1}], "paid": 4, "basket": {}, "stock": {"apple": 5, "pear": 1}})),
            0.0,
        ),
        (
            "the wrong number",
            vec![apples(), add("apple", 1), pay()],
            Some(json!({"orders": [{"apple": 3}], "paid": 9, "basket": {}, "stock": {"apple": 2, "pear": 2}})),
            0.0,
        ),
        ("not paid", vec![apples()], Some(untouched(json!({"apple": 2}))), 0.0),
        ("more than there is", vec![add("apple", 6), pay()], Some(untouched(json!({}))), 0.0),
        ("cancelled", vec![apples(), pay(), cancel(1)], Some(untouched(json!({}))), 0.0),
        ("another order too", vec![apples(), pay(), pear(), pay()], Some(both), 0.0),
        ("nothing", Vec::new(), None, 0.0),
    ];
    let sandbox = sandbox();
    sandbox.handle().block_on(async {
        let params = json!({"tool": "shop"}).as_object().unwrap().clone();
        let reward = Plugin::load(&sandbox, PluginSpec { params, ..spec("final-state") }).await.unwrap();
        for (name, mut turns, state, expected) in cases {
            turns.push("I bought 2 apples.".to_owned());
            let sample = Arc::new(play(&sandbox, &turns).await);
            let came: Option<Value> = sample.states.get("shop").map(|state| state.parse().unwrap());
            assert_eq!(came, state, "{name}");
            let Outcome::Scored(score) = reward.score(&sample, 1).await.outcome else { panic!("{name}") };
            assert_eq!(score.value, expected, "{name}");
        }
    });
}
