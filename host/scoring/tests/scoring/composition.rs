//! Several plugins in one run: gates and data sources.

use gavel_data::{Message, NotCalled, OutcomeKind, Role, Sample, SampleOutcome, Task, Trajectory};
use gavel_plugin::{PluginSpec, SandboxConfig};
use gavel_scoring::{PendingGroup, Scorer, ScorerError, SourcePattern, Uncovered, WeightedPlugin, When};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

/// A plugin that is called for every sample.
fn plugin(name: &str, file: &str, weight: f64) -> WeightedPlugin {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(file);
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    WeightedPlugin::new(PluginSpec::new(name, path), weight)
}

/// 1 where the response has `pattern`.
fn has(name: &str, pattern: &str, weight: f64) -> WeightedPlugin {
    let mut plugin = plugin(name, "plugins/format.wasm", weight);
    plugin.spec.params.insert("pattern".into(), format!("(?s).*{pattern}.*").into());
    plugin
}

fn only_if(condition: &str, plugin: WeightedPlugin) -> WeightedPlugin {
    let when = When { only_if: Some(condition.parse().unwrap()), ..plugin.when };
    WeightedPlugin { when, ..plugin }
}

fn for_sources(sources: &[&str], plugin: WeightedPlugin) -> WeightedPlugin {
    let data_sources = sources.iter().map(|source| SourcePattern((*source).to_owned())).collect();
    WeightedPlugin { when: When { data_sources, ..plugin.when }, ..plugin }
}

fn load(plugins: Vec<WeightedPlugin>) -> Result<Scorer, ScorerError> {
    Scorer::new(plugins, SandboxConfig::with_threads(NonZeroUsize::MIN).into())
}

fn sample(response: &str, data_source: Value) -> Sample {
    let columns = json!({"prompt": "?", "data_source": data_source});
    let task = Task::from_row(serde_json::from_value(columns).unwrap(), 0, "test").unwrap();
    let messages = vec![Message::new(Role::Assistant, response)];
    let trajectories = vec![Trajectory::of(messages)];
    Sample::new(Arc::new(task), 0, trajectories)
}

fn score(scorer: &Scorer, response: &str, data_source: Value) -> SampleOutcome {
    scorer.wait(scorer.start_alone(sample(response, data_source), 1))
}

fn not_called(outcome: &SampleOutcome) -> Vec<(&str, NotCalled)> {
    outcome.not_called.iter().map(|(name, why)| (name.as_str(), *why)).collect()
}

#[test]
fn a_gate_decides_whether_a_reward_is_called_and_counts() {
    // The gated one stands first: the order of the configuration does not matter.
    let plugins = vec![only_if("format > 0", has("right", "4", 1.0)), has("format", "Answer", 0.5)];
    let scorer = load(plugins).unwrap();
    let open = score(&scorer, "Answer 4", Value::Null);
    assert_eq!((open.reward, open.plugins.len()), (Some(1.5), 2));
    let shut = score(&scorer, "4", Value::Null);
    assert_eq!((shut.reward, shut.outcome), (Some(0.0), OutcomeKind::Scored));
    assert_eq!(not_called(&shut), [("right", NotCalled::Gate)]);
    assert!(!shut.plugins.contains_key("right"));
}

#[test]
fn gates_in_a_row() {
    let plugins = vec![
        only_if("b > 0", has("c", "c", 1.0)),
        only_if("a > 0", has("b", "b", 1.0)),
        has("a", "a", 1.0),
        only_if("a == 0", has("other", "x", 10.0)),
    ];
    let scorer = load(plugins).unwrap();
    assert_eq!(score(&scorer, "abc", Value::Null).reward, Some(3.0));
    assert_eq!(score(&scorer, "ac", Value::Null).reward, Some(1.0));
    let none = score(&scorer, "bcx", Value::Null);
    assert_eq!(none.reward, Some(10.0));
    assert_eq!(not_called(&none), [("b", NotCalled::Gate), ("c", NotCalled::Gate)]);
}

#[test]
fn a_gate_that_fails_leaves_no_reward() {
    let trap = plugin("gate", "hostile/trap.wasm", 0.0);
    let scorer = load(vec![trap, only_if("gate > 0", has("right", "4", 1.0)), has("other", "4", 1.0)]).unwrap();
    let found = score(&scorer, "4", Value::Null);
    assert_eq!((found.reward, found.outcome), (None, OutcomeKind::Fault));
    assert!(found.reason.as_deref().unwrap().starts_with("gate: "), "{:?}", found.reason);
    assert_eq!(not_called(&found), [("right", NotCalled::NoGate)]);
}

#[test]
fn a_judger_sees_those_of_a_group_that_pass_its_gate() {
    let judge = only_if("format > 0", plugin("shortest", "guests/shortest.wasm", 1.0));
    let scorer = load(vec![judge, has("format", "A", 0.0)]).unwrap();
    let group = PendingGroup::new(3);
    let task = sample("", Value::Null).task;
    let responses = ["b", "AAA", "AA"];
    let started: Vec<_> = (0..)
        .zip(responses)
        .map(|(index, response)| {
            let sample = Sample { task: task.clone(), index, ..sample(response, Value::Null) };
            scorer.start(&group, sample, 1)
        })
        .collect();
    let found: Vec<SampleOutcome> = started.into_iter().map(|pending| scorer.wait(pending)).collect();
    // "b" is the shortest of all, but is not compared.
    assert_eq!(found.iter().map(|each| each.reward).collect::<Vec<_>>(), [Some(0.0), Some(0.0), Some(1.0)]);
    assert_eq!(not_called(&found[0]), [("shortest", NotCalled::Gate)]);
    assert_eq!(found[2].plugins["shortest"].outcome.score(), Some(1.0));
}

#[test]
fn a_reward_is_for_its_data_sources() {
    let plugins = vec![
        for_sources(&["openai/gsm8k"], has("gsm8k", "g", 1.0)),
        for_sources(&["math*", "*/MATH-*"], has("math", "m", 2.0)),
        has("shadow", "s", 0.0),
    ];
    let scorer = load(plugins).unwrap();
    assert_eq!(score(&scorer, "gm", "openai/gsm8k".into()).reward, Some(1.0));
    let math = score(&scorer, "gm", "HuggingFaceH4/MATH-500".into());
    assert_eq!((math.reward, not_called(&math)), (Some(2.0), vec![("gsm8k", NotCalled::DataSource)]));
    for (source, fine) in
        [(Some("openai/gsm8k"), true), (Some("math_dapo"), true), (Some("poems"), false), (None, false)]
    {
        assert_eq!(scorer.check_data_source(source).is_ok(), fine, "{source:?}");
    }
    let poems = score(&scorer, "gm", "poems".into());
    assert_eq!((poems.reward, poems.outcome), (None, OutcomeKind::Fault), "nobody judged it");
}

#[test]
fn a_gate_that_is_for_other_rows_is_found_before_the_run() {
    let gate = for_sources(&["a"], has("format", "x", 0.0));
    let scorer = load(vec![gate, only_if("format > 0", has("right", "4", 1.0))]).unwrap();
    assert_eq!(scorer.check_data_source(Some("a")), Ok(()));
    let error = scorer.check_data_source(Some("b")).unwrap_err();
    assert!(matches!(&error, Uncovered::GateElsewhere { gate, .. } if gate == "format"), "{error}");
    assert!(error.to_string().contains("the data source `b`"), "{error}");
}

#[test]
fn gates_that_cannot_be_are_refused() {
    let refused = |plugins: Vec<WeightedPlugin>| load(plugins).err().map(|error| error.to_string()).unwrap();
    let error = refused(vec![only_if("formt > 0", has("a", "x", 1.0)), has("format", "x", 1.0)]);
    assert!(error.contains("`formt`") && error.contains("a, format"), "{error}");
    let circle = vec![only_if("a > 0", has("a", "x", 1.0))];
    assert!(refused(circle).ends_with("each other: `only_if` of `a` names `a`\nhint: remove one of these names"));
    let circle = vec![only_if("b > 0", has("a", "x", 1.0)), only_if("a > 0", has("b", "x", 1.0)), has("c", "x", 1.0)];
    let expected = ": `only_if` of `a` names `b`, `only_if` of `b` names `a`\nhint: remove one of these names";
    assert!(refused(circle).ends_with(expected));
}
