//! Who caused a failed call, and the effect on the reward.

use gavel_data::{
    Budget, CausedBy, FinishReason, LastCall, Message, OutcomeKind, Role, RolloutFault, RolloutStage, Sample,
    SampleOutcome, Task, Trajectory,
};
use gavel_plugin::{ClockGrant, PluginSpec, SandboxConfig};
use gavel_scoring::{PendingGroup, Scorer, WeightedPlugin};
use serde_json::json;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn plugin(name: &str, file: &str, weight: f64) -> WeightedPlugin {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../target/{file}.wasm"));
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    let mut spec = PluginSpec::new(name, path);
    // Only a loop uses it up.
    spec.limits.cpu = Duration::from_secs(1);
    WeightedPlugin::new(spec, weight)
}

/// Does what the response says, and promises scores from -1 to 3.
fn obeys(name: &str, weight: f64) -> WeightedPlugin {
    let mut plugin = plugin(name, "guests/obeys", weight);
    plugin.spec.params.insert("range".into(), json!([-1, 3]));
    plugin
}

/// Scores responses to a task as a group.
fn scored(plugins: Vec<WeightedPlugin>, responses: &[&str]) -> Vec<SampleOutcome> {
    scored_after(plugins, responses, &vec![None; responses.len()])
}

/// The same where some samples did not come to their end.
fn scored_after(
    plugins: Vec<WeightedPlugin>,
    responses: &[&str],
    failed: &[Option<RolloutFault>],
) -> Vec<SampleOutcome> {
    let scorer = Scorer::new(plugins, SandboxConfig::with_threads(NonZeroUsize::MIN).into()).unwrap();
    let columns = serde_json::from_value(json!({"prompt": "?", "answer": "none"})).unwrap();
    let task = Arc::new(Task::from_row(columns, 0, "test").unwrap());
    let group = PendingGroup::new(responses.len());
    let start = |(index, response): (u32, &&str)| {
        let messages = vec![Message::new(Role::Assistant, *response)];
        let mut trajectory = Trajectory::of(messages);
        trajectory.report.error = failed[index as usize].clone();
        if trajectory.report.error.is_some() {
            trajectory.finish_reason = FinishReason::Error;
        }
        scorer.start(&group, Sample::new(task.clone(), index, vec![trajectory]), u64::from(index))
    };
    let started: Vec<_> = (0..).zip(responses).map(start).collect();
    started.into_iter().map(|pending| scorer.wait(pending)).collect()
}

fn causes(outcomes: &[SampleOutcome], name: &str) -> Vec<Option<CausedBy>> {
    outcomes.iter().map(|outcome| outcome.plugins[name].caused_by).collect()
}

const RESPONSE: Option<CausedBy> = Some(CausedBy::Response);
const PLUGIN: Option<CausedBy> = Some(CausedBy::Plugin);
const UNKNOWN: Option<CausedBy> = Some(CausedBy::Unknown);

#[test]
fn a_response_caused_what_another_one_did_not() {
    // A sibling that was scored, or abstained, is the counterfactual.
    let outcomes = scored(vec![obeys("obeys", 1.0)], &["panic", "score 1", "loop", "dance", "unavailable no"]);
    assert_eq!(causes(&outcomes, "obeys"), [RESPONSE, None, RESPONSE, RESPONSE, None]);
    let outcomes = scored(vec![obeys("obeys", 1.0)], &["abstain", "panic"]);
    assert_eq!(causes(&outcomes, "obeys"), [RESPONSE; 2]);
    // Without one it is the empty response, which gets a 0 here and traps there.
    let outcomes = scored(vec![obeys("obeys", 1.0), plugin("trap", "hostile/trap", 0.0)], &["panic", "panic"]);
    assert_eq!(causes(&outcomes, "obeys"), [RESPONSE; 2]);
    assert_eq!(causes(&outcomes, "trap"), [PLUGIN; 2]);
}

#[test]
fn a_response_caused_an_abstention_where_another_one_is_scored() {
    let outcomes = scored(vec![obeys("obeys", 2.0)], &["abstain no", "score 1", "panic"]);
    assert_eq!(causes(&outcomes, "obeys"), [RESPONSE, None, RESPONSE]);
    assert_eq!((outcomes[0].outcome, outcomes[0].reward), (OutcomeKind::Abstained, None));
    // The least that the judge could give; a fault is never held against a response.
    let lowest: Vec<_> = outcomes.iter().map(|outcome| outcome.lowest_reward).collect();
    assert_eq!(lowest, [Some(-2.0), None, None]);
    // Without a scored sibling it is the empty response, which gets a 0 here.
    let outcomes = scored(vec![obeys("obeys", 1.0)], &["abstain", "abstain"]);
    assert_eq!(causes(&outcomes, "obeys"), [RESPONSE; 2]);
    // The row is at fault where the judge abstains on every response.
    let outcomes = scored(vec![plugin("abstain", "guests/abstain", 1.0)], &["a", "b"]);
    assert_eq!(causes(&outcomes, "abstain"), [PLUGIN; 2]);
    assert!(outcomes.iter().all(|outcome| outcome.lowest_reward.is_none()));
}

#[test]
fn an_answer_that_its_judge_cannot_read_has_no_score_whether_it_is_right() {
    let found = |also_right: bool| {
        let mut judge = plugin("unsure", "guests/unsure", 1.0);
        judge.spec.params.insert("also_right".into(), json!(also_right));
        let outcomes = scored(vec![judge], &["Answer: none", "Answer: 7", "Answer: 1"]);
        outcomes.iter().map(|each| (each.reward, each.lowest_reward)).collect::<Vec<_>>()
    };
    let expected = [(Some(1.0), None), (None, Some(-1.0)), (Some(-1.0), None)];
    assert_eq!((found(false), found(true)), (expected.to_vec(), expected.to_vec()));
}

#[test]
fn of_what_reaches_outside_or_judges_groups_nobody_knows() {
    let mut clock = obeys("clock", 1.0);
    clock.spec.grants.clock = ClockGrant::Real;
    let outcomes = scored(vec![clock, plugin("shortest", "guests/shortest", 1.0)], &["panic", "score 1", "abstain"]);
    assert_eq!(causes(&outcomes, "clock"), [UNKNOWN, None, UNKNOWN]);
    // The judger refuses this ground truth.
    assert_eq!(causes(&outcomes, "shortest"), [UNKNOWN; 3]);
}

#[test]
fn a_response_that_exhausts_its_judge_counts_with_the_least_that_the_judge_can_give() {
    let lowest = |plugins: Vec<WeightedPlugin>| {
        let outcomes = scored(plugins, &["loop", "score 1", "panic", "take 1000000000"]);
        assert_eq!(outcomes[0].outcome, OutcomeKind::OutOfBudget);
        assert!(outcomes.iter().all(|outcome| outcome.reward.is_none() || outcome.lowest_reward.is_none()));
        outcomes.iter().map(|outcome| outcome.lowest_reward).collect::<Vec<_>>()
    };
    let format = || {
        let mut format = plugin("format", "plugins/format", 0.5);
        format.spec.params.insert("pattern".into(), "l.*".into());
        format
    };
    // A trap is a fault and has no lowest reward; memory is a budget.
    assert_eq!(lowest(vec![obeys("obeys", 2.0), format()]), [Some(-1.5), None, None, Some(-2.0)]);
    assert_eq!(lowest(vec![obeys("obeys", -2.0)]), [Some(-6.0), None, None, Some(-6.0)]);
    assert_eq!(lowest(vec![plugin("obeys", "guests/obeys", 1.0)]), [None; 4], "it promises no range");
    // A response that breaks the judge is not told apart where the judge fails on every response.
    let outcomes = scored(vec![plugin("loop", "hostile/endless-loop", 1.0)], &["a", "b"]);
    assert_eq!(causes(&outcomes, "loop"), [PLUGIN; 2]);
    assert!(outcomes.iter().all(|outcome| outcome.lowest_reward.is_none()));
}

#[test]
fn an_agent_that_the_policy_exhausts_counts_with_the_least_that_all_judges_can_give() {
    let lowest = |budget: Budget, others: &[&str]| {
        let fault = RolloutFault {
            stage: RolloutStage::Agent,
            message: format!("the agent used up its {}", budget.as_str()),
            retryable: false,
            budget: Some(budget),
            diagnosis: None,
        };
        let failed: Vec<Option<RolloutFault>> =
            std::iter::once(Some(fault)).chain(others.iter().map(|_| None)).collect();
        let responses = [&[""], others].concat();
        let plugins = vec![obeys("obeys", 2.0), plugin("shortest", "guests/shortest", 0.0)];
        let outcome = scored_after(plugins, &responses, &failed).remove(0);
        assert_eq!((outcome.outcome, outcome.reward), (OutcomeKind::OutOfBudget, None));
        outcome.lowest_reward
    };
    assert_eq!(lowest(Budget::Cpu, &["score 1", "panic"]), Some(-2.0));
    assert_eq!(lowest(Budget::Memory, &["score 1"]), Some(-2.0));
    assert_eq!(lowest(Budget::Deadline, &["score 1"]), None, "a deadline is not held against the policy");
    assert_eq!(lowest(Budget::Cpu, &[]), None, "the agent may fail with every sample");
}

#[test]
fn the_wall_clock_is_not_held_against_a_response() {
    let mut late = plugin("late", "guests/obeys", 1.0);
    late.spec.params.insert("range".into(), json!([-1, 3]));
    late.spec.limits.deadline = Duration::from_secs(1);
    late.spec.limits.cpu = Duration::from_secs(60);
    let outcomes = scored(vec![late], &["loop", "score 1"]);
    assert_eq!(outcomes[0].plugins["late"].detail(), Some("deadline"));
    assert_eq!((causes(&outcomes, "late")[0], outcomes[0].lowest_reward), (RESPONSE, None));
}

#[test]
fn each_call_is_timed_from_when_it_could_start() {
    const SLEEP: f64 = 0.6;
    let mut slow = plugin("slow", "guests/sleepy", 1.0);
    slow.spec.params.insert("milliseconds".into(), json!((SLEEP * 1000.0) as u64));
    slow.spec.grants.clock = ClockGrant::Real;
    let mut rank = plugin("rank", "guests/ranks", 1.0);
    rank.spec.params.insert("by".into(), "slow".into());
    rank.when.after = vec!["slow".into()];
    let mut gated = obeys("gated", 1.0);
    gated.when.only_if = Some("slow > 5".parse().unwrap());
    for outcome in scored(vec![rank, slow, gated], &["", ""]) {
        let timing = &outcome.timing;
        assert_eq!(timing.latency.keys().collect::<Vec<_>>(), ["rank", "slow"], "what was not called took no time");
        assert!(timing.latency["slow"] >= SLEEP, "{timing:?}");
        assert!(timing.latency["rank"] < SLEEP, "the wait for the other is not its own: {timing:?}");
        let last = LastCall { plugin: "rank".into(), endpoints: BTreeMap::new() };
        assert_eq!(timing.last, Some(last));
    }
}
