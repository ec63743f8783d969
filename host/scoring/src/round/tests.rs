use super::*;
use crate::condition::When;
use crate::judge::Judge;
use crate::judges::WeightedJudge;
use gavel_data::{
    EvaluationRecord, FinishReason, JudgeId, Message, OutcomeKind, Provenance, Role, Score, Task, Trajectory, Usage,
};

/// Stands in for a model that scores: by the length of the response, or by the
/// place of it in its group.
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

    fn judge<'a>(&'a self, samples: &'a [Arc<Sample>], seed: u64) -> BoxFuture<'a, Vec<Evaluation>> {
        let score = |(place, sample): (usize, &Arc<Sample>)| {
            let value = if self.sees_groups { place } else { sample.response().len() };
            let (params, contract) = (String::new(), String::new());
            let judge = JudgeId::Model(self.name.to_owned());
            Evaluation {
                outcome: Outcome::Scored(Score { value: value as f64, ..Score::default() }),
                usage: Usage::default(),
                provenance: Some(Provenance { judge, params, contract, seed, input: sample.hash() }),
                diagnosis: None,
            }
        };
        let evaluations = samples.iter().enumerate().map(score).collect();
        Box::pin(async move { evaluations })
    }
}

fn judge(name: &'static str, sees_groups: bool, weight: f64) -> WeightedJudge {
    WeightedJudge { judge: Arc::new(Model { name, sees_groups }), weight, when: When::default(), gate: None }
}

fn sample(index: u32, response: &str) -> Arc<Sample> {
    let task = Task::from_row(serde_json::from_str(r#"{"prompt": "q"}"#).unwrap(), 0, "train").unwrap();
    let messages = vec![Message::new(Role::Assistant, response)];
    let trajectory = Trajectory { messages, tokens: None, finish_reason: FinishReason::Stop };
    Arc::new(Sample { task: Arc::new(task), index, trajectories: vec![trajectory] })
}

/// Scores the samples as a group, the last one first; gives the outcomes in
/// their order.
fn scored(judges: &Judges, samples: &[Arc<Sample>]) -> Vec<SampleOutcome> {
    let group = PendingGroup::new(samples.len());
    let rounds = samples.iter().rev().map(|sample| Round::new(judges, &group, sample, 40 + u64::from(sample.index)));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut outcomes = runtime.block_on(join_all(rounds.map(Round::evaluate)));
    outcomes.reverse();
    outcomes
}

#[test]
fn whatever_judges_is_asked_as_a_plugin_is() {
    let mut gated = judge("rank", true, 10.0);
    gated.when.only_if = Some("length > 1".parse().unwrap());
    gated.gate = Some(0);
    let judges = Judges::new(vec![judge("length", false, 1.0), gated, judge("shadow", false, 0.0)]).unwrap();
    let outcomes = scored(&judges, &[sample(0, "abc"), sample(1, ""), sample(2, "de")]);
    let rewards: Vec<_> = outcomes.iter().map(|outcome| (outcome.outcome, outcome.reward)).collect();
    // The second one does not pass the gate, so that the third is second among those that are ranked.
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
fn a_judge_of_groups_does_not_wait_for_another() {
    let mut gated = judge("second", true, 1.0);
    gated.gate = Some(0);
    let refused = |judges| Judges::new(judges).map(|_| ()).unwrap_err().to_string();
    let error = refused(vec![judge("first", true, 1.0), gated]);
    assert!(error.starts_with("reward `second`: `only_if` waits for `first`, and both judge whole groups"), "{error}");
}
