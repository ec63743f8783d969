//! Judgers that see the verdicts of other rewards on their samples.

use gavel_data::{Message, NotCalled, OutcomeKind, Role, Sample, SampleOutcome, Task, Trajectory};
use gavel_plugin::{ClockGrant, PluginSpec, SandboxConfig};
use gavel_scoring::{PendingGroup, Scorer, ScorerError, WeightedPlugin};
use serde_json::json;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn plugin(name: &str, guest: &str) -> WeightedPlugin {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/guests/{guest}.wasm"));
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    WeightedPlugin::new(PluginSpec::new(name, path), 1.0)
}

/// A judger that ranks by the score of `by`, and comes after `after`.
fn ranks(name: &str, by: &str, after: &[&str]) -> WeightedPlugin {
    let mut plugin = plugin(name, "ranks");
    plugin.spec.params.insert("by".into(), by.into());
    plugin.when.after = after.iter().map(|name| (*name).to_owned()).collect();
    plugin
}

fn only_if(condition: &str, mut plugin: WeightedPlugin) -> WeightedPlugin {
    plugin.when.only_if = Some(condition.parse().unwrap());
    plugin
}

fn load(plugins: Vec<WeightedPlugin>) -> Result<Scorer, ScorerError> {
    Scorer::new(plugins, SandboxConfig::with_threads(NonZeroUsize::MIN).into())
}

fn sample(task: &Arc<Task>, index: u32, response: &str) -> Sample {
    let messages = vec![Message::new(Role::Assistant, response)];
    let trajectories = vec![Trajectory::of(messages)];
    Sample::new(task.clone(), index, trajectories)
}

/// Scores responses as a group, each a while after the one before it.
fn scored(scorer: &Scorer, responses: &[&str], pause: Duration) -> Vec<SampleOutcome> {
    let columns = serde_json::from_value(json!({"prompt": "?"})).unwrap();
    let task = Arc::new(Task::from_row(columns, 0, "test").unwrap());
    let group = PendingGroup::new(responses.len());
    let start = |(index, response): (u32, &&str)| {
        std::thread::sleep(pause);
        scorer.start(&group, sample(&task, index, response), 40 + u64::from(index))
    };
    let started: Vec<_> = (0..).zip(responses).map(start).collect();
    started.into_iter().map(|pending| scorer.wait(pending)).collect()
}

/// The score of a plugin, or why there is none.
fn said(outcome: &SampleOutcome, name: &str) -> Result<f64, String> {
    let found = &outcome.plugins[name].outcome;
    found.score().ok_or_else(|| found.reason().unwrap_or_default())
}

#[test]
fn a_judger_sees_scores_abstentions_and_that_there_is_no_verdict() {
    let gate = only_if("first >= 0", plugin("quality", "obeys"));
    let scorer = load(vec![ranks("rank", "quality", &["quality"]), gate, plugin("first", "obeys")]).unwrap();
    let responses = [
        "score 0.25",
        "score 1\nmetric a 2\nmetric b 3\nnote fine",
        "score 0.5",
        "abstain not mine",
        "panic",
        "score -1",
    ];
    let outcomes = scored(&scorer, &responses, Duration::ZERO);
    let found: Vec<_> = outcomes.iter().map(|outcome| said(outcome, "rank")).collect();
    // The last sample is not judged, since its gate is shut. A failure or abstention shuts the gate too.
    let expected = [Ok(0.0), Ok(2.0 / 3.0), Ok(1.0 / 3.0)].into_iter();
    let expected = expected.chain(["not called", "not called", "not called"].map(|why| Err(why.to_owned())));
    assert_eq!(found, expected.collect::<Vec<_>>());
    let rank = &outcomes[1].plugins["rank"];
    assert_eq!(rank.outcome.reason().unwrap(), "scored 1, fine");
    assert_eq!(outcomes[3].not_called["quality"], NotCalled::NoGate);

    let scorer = load(vec![ranks("rank", "quality", &["quality"]), plugin("quality", "obeys")]).unwrap();
    let outcomes = scored(&scorer, &["abstain not mine", "panic", "unavailable busy", "score 3"], Duration::ZERO);
    let found: Vec<_> = outcomes.iter().map(|outcome| said(outcome, "rank")).collect();
    let none = || Err("no verdict".to_owned());
    assert_eq!(found, [Err("abstained: not mine".to_owned()), none(), none(), Ok(0.0)]);
    assert_eq!((outcomes[1].outcome, outcomes[3].reward), (OutcomeKind::Abstained, Some(3.0)));
}

#[test]
fn a_judger_sees_nothing_of_those_that_it_does_not_come_after() {
    let quality = || plugin("quality", "obeys");
    let scorer = load(vec![
        quality(),
        plugin("other", "obeys"),
        ranks("blind", "quality", &[]),
        ranks("looks-away", "quality", &["other"]),
        ranks("sees", "quality", &["quality"]),
    ]);
    let outcomes = scored(&scorer.unwrap(), &["score 1"], Duration::ZERO);
    let nothing = || Err("nothing is shown".to_owned());
    assert_eq!(["blind", "looks-away", "sees"].map(|name| said(&outcomes[0], name)), [nothing(), nothing(), Ok(0.0)]);
    let input = |name: &str| outcomes[0].plugins[name].provenance.clone().unwrap().input;
    // Only verdicts that are seen are part of the input.
    let alone = load(vec![ranks("blind", "quality", &[])]).unwrap();
    let alone = scored(&alone, &["score 1"], Duration::ZERO);
    assert_eq!(alone[0].plugins["blind"].provenance.clone().unwrap().input, input("blind"));
    assert!(input("blind") != input("sees") && input("looks-away") != input("sees"));
}

#[test]
fn a_judger_starts_after_the_last_sample_is_scored_and_the_others_at_once() {
    const SLEEP: Duration = Duration::from_secs(6);
    const PAUSE: Duration = Duration::from_millis(100);
    let mut slow = plugin("slow", "sleepy");
    slow.spec.params.insert("milliseconds".into(), (SLEEP.as_millis() as u64).into());
    // Otherwise its sleep takes no time.
    slow.spec.grants.clock = ClockGrant::Real;
    slow.spec.limits.deadline = Duration::from_secs(60);
    let scorer = load(vec![ranks("rank", "slow", &["slow"]), ranks("again", "rank", &["rank", "slow"]), slow]).unwrap();
    let start = Instant::now();
    let outcomes = scored(&scorer, &["a", "b", "c"], PAUSE);
    let took = start.elapsed();
    // All scores are 1, and the judger after the judger sees its ranks.
    for outcome in &outcomes {
        assert_eq!(["slow", "rank", "again"].map(|name| said(outcome, name)), [Ok(1.0), Ok(0.0), Ok(0.0)]);
        assert!(outcome.plugins["again"].outcome.reason().unwrap().starts_with("scored 0, scored 1, no note"));
    }
    // The calls overlap: in sequence they would take three times as long.
    assert!(took >= 3 * PAUSE + SLEEP && took < 3 * SLEEP, "{took:?}");
}

#[test]
fn what_cannot_be_waited_for_is_refused() {
    let refused = |plugins: Vec<WeightedPlugin>| load(plugins).err().map(|error| error.to_string()).unwrap();
    let error = refused(vec![ranks("rank", "x", &["quality", "qualty"]), plugin("quality", "obeys")]);
    assert!(error.starts_with("reward `rank`: `after` names `qualty`") && error.ends_with("rank, quality"), "{error}");
    let error = refused(vec![ranks("rank", "x", &["rank"])]);
    assert!(error.ends_with(": `after` of `rank` names `rank`\nhint: remove one of these names"), "{error}");
    let circle = vec![ranks("rank", "x", &["quality"]), only_if("rank > 0", plugin("quality", "obeys"))];
    assert!(refused(circle).contains(": `after` of `rank` names `quality`, `only_if` of `quality` names `rank`\n"));
    let mut late = plugin("late", "obeys");
    late.when.after = vec!["quality".into()];
    let error = refused(vec![late, plugin("quality", "obeys")]);
    assert!(error.starts_with("reward `late`: `after` is for a plugin that judges whole groups"), "{error}");
}
