use super::*;
use crate::condition::When;
use crate::judge::Judge;
use crate::judges::{Waits, WeightedJudge};
use gavel_data::{EvaluationRecord, JudgeId, Message, OutcomeKind, Provenance, Role, Score, Task, Trajectory, Usage};
use gavel_plugin::OutsideWaits;
use std::sync::Mutex;
use tokio::sync::Semaphore;

/// A fake model that scores a response by its length, or by its place in its
/// group.
struct Model {
    name: &'static str,
    sees_groups: bool,
}

impl Judge for Model {
    fn name(&self) -> &str {
        self.name
    }

    fn sees_groups(&self) -> bool {
        self.sees_groups
    }

    fn score_range(&self) -> Option<(f64, f64)> {
        None
    }

    fn reaches_what_changes(&self) -> bool {
        false
    }

    fn judge<'a>(
        &'a self,
        samples: &'a [SampleInput],
        seed: u64,
        _: &'a OutsideWaits,
    ) -> BoxFuture<'a, Vec<Evaluation>> {
        let score = |(place, input): (usize, &SampleInput)| {
            let value = if self.sees_groups { place } else { input.sample.response().len() };
            let (params, contract) = (String::new(), String::new());
            let judge = JudgeId::Model(self.name.to_owned());
            Evaluation {
                outcome: Outcome::Scored(Score { value: value as f64, ..Score::default() }),
                usage: Usage::default(),
                provenance: Some(Provenance { judge, params, contract, seed, input: input.hash() }),
                diagnosis: None,
                caused_by: None,
            }
        };
        let evaluations = samples.iter().enumerate().map(score).collect();
        Box::pin(async move { evaluations })
    }
}

fn judge(name: &'static str, sees_groups: bool, weight: f64) -> WeightedJudge {
    WeightedJudge {
        judge: Arc::new(Model { name, sees_groups }),
        weight,
        when: When::default(),
        waits: Waits::default(),
    }
}

fn sample(index: u32, response: &str) -> Arc<Sample> {
    let task = Task::from_row(serde_json::from_str(r#"{"prompt": "q"}"#).unwrap(), 0, "train").unwrap();
    let messages = vec![Message::new(Role::Assistant, response)];
    let trajectory = Trajectory::of(messages);
    Arc::new(Sample::new(Arc::new(task), index, vec![trajectory]))
}

/// Scores the samples as a group, the last one first; returns the outcomes in
/// their order.
fn scored(judges: &Judges, samples: &[Arc<Sample>]) -> Vec<SampleOutcome> {
    let (group, none) = (PendingGroup::new(samples.len()), PriorVerdicts::new());
    let rounds =
        samples.iter().rev().map(|sample| Round::new(judges, &group, sample, 40 + u64::from(sample.index), &none));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut outcomes = runtime.block_on(join_all(rounds.map(Round::evaluate)));
    outcomes.reverse();
    outcomes
}

#[test]
fn whatever_judges_is_asked_as_a_plugin_is() {
    let mut gated = judge("rank", true, 10.0);
    gated.when.only_if = Some("length > 1".parse().unwrap());
    gated.waits.gate = Some(0);
    let judges = Judges::new(vec![judge("length", false, 1.0), gated, judge("shadow", false, 0.0)]).unwrap();
    let outcomes = scored(&judges, &[sample(0, "abc"), sample(1, ""), sample(2, "de")]);
    let rewards: Vec<_> = outcomes.iter().map(|outcome| (outcome.outcome, outcome.reward)).collect();
    // The second sample does not pass the gate, so the third is second among those that are ranked.
    let expected = [3.0, 0.0, 12.0].map(|reward| (OutcomeKind::Scored, Some(reward)));
    assert_eq!(rewards, expected);
    assert_eq!(outcomes[1].not_called["rank"], NotCalled::Gate);
    // A group is judged with the seed of its first sample.
    let seeds = |name: &str| {
        let made_of = outcomes.iter().filter_map(|outcome| outcome.plugins.get(name)?.provenance.as_ref());
        made_of.map(|provenance| provenance.seed).collect::<Vec<_>>()
    };
    assert_eq!((seeds("length"), seeds("rank")), (vec![40, 41, 42], vec![40, 40]));

    let evaluation = &outcomes[0].plugins["rank"];
    let text = serde_json::to_string(evaluation).unwrap();
    assert!(text.contains(r#""model":"rank""#), "{text}");
    assert_eq!(serde_json::from_str::<EvaluationRecord>(&text).unwrap(), EvaluationRecord::from(evaluation));
}

#[test]
fn a_judge_of_groups_may_wait_for_another() {
    let mut gated = judge("second", true, 1.0);
    gated.when.only_if = Some("first > 0".parse().unwrap());
    gated.waits.gate = Some(1);
    let judges = Judges::new(vec![gated, judge("first", true, 10.0)]).unwrap();
    let outcomes = scored(&judges, &[sample(0, "a"), sample(1, "b"), sample(2, "c")]);
    // `first` gives the first of three samples a 0, so `second` sees the other two.
    assert_eq!(outcomes.iter().map(|outcome| outcome.reward).collect::<Vec<_>>(), [Some(0.0), Some(10.0), Some(21.0)]);
}

#[test]
fn verdicts_of_others_are_for_judges_of_groups() {
    let mut late = judge("late", false, 1.0);
    late.waits.after = vec![0];
    let refused = Judges::new(vec![judge("first", true, 1.0), late]).map(|_| ()).unwrap_err().to_string();
    assert!(refused.starts_with("reward `late`: `after` is for a plugin that judges whole groups"), "{refused}");
}

/// A fake judge that answers once `turn` calls of any judge have begun, and logs
/// the begin and the end of its calls.
struct Timed {
    name: &'static str,
    sees_groups: bool,
    turn: usize,
    log: Arc<Log>,
}

struct Log {
    events: Mutex<Vec<String>>,
    begun: Semaphore,
}

impl Judge for Timed {
    fn name(&self) -> &str {
        self.name
    }

    fn sees_groups(&self) -> bool {
        self.sees_groups
    }

    fn score_range(&self) -> Option<(f64, f64)> {
        None
    }

    fn reaches_what_changes(&self) -> bool {
        false
    }

    fn judge<'a>(&'a self, samples: &'a [SampleInput], _: u64, _: &'a OutsideWaits) -> BoxFuture<'a, Vec<Evaluation>> {
        Box::pin(async move {
            self.log.events.lock().unwrap().push(format!("begin {}", self.name));
            self.log.begun.add_permits(1);
            drop(self.log.begun.acquire_many(self.turn as u32).await.unwrap());
            self.log.events.lock().unwrap().push(format!("end {}", self.name));
            let score = |input: &SampleInput| {
                let seen: f64 = input
                    .verdicts
                    .values()
                    .filter_map(|verdict| match verdict {
                        PriorVerdict::Scored(score) => Some(score.value),
                        _ => None,
                    })
                    .sum();
                Outcome::Scored(Score { value: f64::from(input.sample.index) + 10.0 * seen, ..Score::default() })
            };
            samples.iter().map(score).map(Evaluation::without_call).collect()
        })
    }
}

#[test]
fn what_comes_after_a_slow_reward_waits_for_it_and_nothing_else_does() {
    let log = Arc::new(Log { events: Mutex::default(), begun: Semaphore::new(0) });
    let timed = |name, sees_groups, turn| {
        let judge = Arc::new(Timed { name, sees_groups, turn, log: log.clone() });
        WeightedJudge { judge, weight: 1.0, when: When::default(), waits: Waits::default() }
    };
    // The slow judge ends after three calls of its own, three of the quick judge and the early one have begun. If one
    // of them waited for it, no call would end.
    let mut late = timed("late", true, 0);
    late.waits.after = vec![1, 3];
    let judges = [late, timed("slow", false, 7), timed("quick", false, 0), timed("early", true, 0)];
    let judges = Judges::new(judges.into()).unwrap();
    let outcomes = scored(&judges, &[sample(0, "a"), sample(1, "b"), sample(2, "c")]);
    let scores = |name: &str| outcomes.iter().map(|each| each.plugins[name].outcome.score()).collect::<Vec<_>>();
    assert_eq!(scores("slow"), [Some(0.0), Some(1.0), Some(2.0)]);
    // The late judge sees the scores of both judges, one of which judges groups.
    assert_eq!(scores("late"), [Some(0.0), Some(21.0), Some(42.0)]);
    let events = log.events.lock().unwrap();
    let last = |event: &str| events.iter().rposition(|other| other == event).unwrap();
    assert!(last("begin early") < last("end slow") && last("begin quick") < last("end slow"), "{events:?}");
    assert!(last("begin late") > last("end slow"), "{events:?}");
    assert_eq!(events.iter().filter(|event| *event == "begin late").count(), 1);
}
