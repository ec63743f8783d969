//! Judgers: a whole group in one call, with a verdict for each sample.

use crate::common::{guest, sandbox};
use gavel_data::{Blame, Message, Outcome, OutcomeKind, Role, Sample, Task, Trajectory};
use gavel_plugin::{LoadError, Plugin, PluginSpec};
use serde_json::json;
use std::sync::Arc;

fn group(truth: &str, responses: &[&str]) -> Vec<Arc<Sample>> {
    let columns = serde_json::from_value(json!({"prompt": "?", "answer": truth})).unwrap();
    let task = Arc::new(Task::from_row(columns, 0, "train").unwrap());
    let sample = |(index, response): (usize, &&str)| {
        let messages = vec![Message::new(Role::Assistant, *response)];
        let trajectories = vec![Trajectory::of(messages)];
        Arc::new(Sample::new(task.clone(), index as u32, trajectories))
    };
    responses.iter().enumerate().map(sample).collect()
}

#[test]
fn verdicts_are_in_the_order_of_the_samples() {
    let sandbox = sandbox();
    sandbox.handle().block_on(async {
        let plugin = Plugin::load(&sandbox, PluginSpec::new("shortest", guest("shortest"))).await.unwrap();
        assert!(plugin.is_judger() && !plugin.is_reward());
        let evaluations = plugin.judge(&group("x", &["long", "", "ab", "cd"]), 7).await;
        let scores: Vec<_> = evaluations.iter().map(|evaluation| evaluation.outcome.score()).collect();
        assert_eq!(scores, [Some(0.0), None, Some(1.0), Some(1.0)]);
        assert_eq!(evaluations[1].outcome.kind(), OutcomeKind::Abstained);
        let indices = evaluations.iter().filter_map(|evaluation| match &evaluation.outcome {
            Outcome::Scored(score) => Some(score.metrics[0].value),
            _ => None,
        });
        assert_eq!(indices.collect::<Vec<_>>(), [0.0, 2.0, 3.0]);
        // One call, whose input is the group.
        let made_of = |evaluations: &[gavel_data::Evaluation]| evaluations[0].provenance.clone().unwrap();
        assert!(evaluations.iter().all(|evaluation| evaluation.provenance == Some(made_of(&evaluations))));
        let other = plugin.judge(&group("x", &["long", "", "ab", "ef"]), 7).await;
        assert_ne!(made_of(&other).input, made_of(&evaluations).input);
        assert!(plugin.judge([] as [Arc<Sample>; 0], 7).await.is_empty());
    });
}

#[test]
fn a_group_is_as_large_as_it_likes_beside_what_the_judger_holds() {
    let sandbox = sandbox();
    sandbox.handle().block_on(async {
        let mut spec = PluginSpec::new("shortest", guest("shortest"));
        spec.limits.handles = 10;
        let plugin = Plugin::load(&sandbox, spec).await.unwrap();
        let evaluations = plugin.judge(&group("x", &["ab"; 999]), 7).await;
        assert_eq!(evaluations.len(), 999);
        for evaluation in evaluations {
            assert_eq!(evaluation.outcome.score(), Some(1.0), "{evaluation:?}");
        }
    });
}

#[test]
fn a_group_that_cannot_be_judged_has_no_score_at_all() {
    let sandbox = sandbox();
    sandbox.handle().block_on(async {
        let plugin = Plugin::load(&sandbox, PluginSpec::new("shortest", guest("shortest"))).await.unwrap();
        let evaluations = plugin.judge(&group("none", &["a", "b"]), 7).await;
        let expected = Outcome::Fault { whose: Blame::Input, what: "there is nothing to judge".into() };
        assert!(evaluations.iter().all(|evaluation| evaluation.outcome == expected) && evaluations.len() == 2);
    });
}

#[test]
fn rows_of_a_taskset_follow_from_index_and_seed() {
    let sandbox = sandbox();
    sandbox.handle().block_on(async {
        let mut spec = PluginSpec::new("sums", guest("sums"));
        spec.params = serde_json::from_value(json!({"length": 20, "source": "sums"})).unwrap();
        let plugin = Plugin::load(&sandbox, spec).await.unwrap();
        assert!(plugin.is_taskset() && !plugin.is_reward());
        assert_eq!(plugin.rows().await.unwrap(), Some(20));
        let row = json!({"prompt": "3 + 5?", "answer": 8, "data_source": "sums"});
        assert_eq!(serde_json::to_value(plugin.row(3, 205).await.unwrap()).unwrap(), row);
        assert_eq!(plugin.row(3, 205).await.unwrap(), plugin.row(3, 205).await.unwrap());
        let error = plugin.row(13, 5).await.unwrap_err().to_string();
        assert_eq!(error, "the taskset `sums` did not return row 13: invalid input: 13 is not summed");
        let error = plugin.row(14, 5).await.unwrap_err().to_string();
        assert!(error.contains("14 brings this taskset down"), "{error}");
        let endless = Plugin::load(&sandbox, PluginSpec::new("sums", guest("sums"))).await.unwrap();
        assert_eq!(endless.rows().await.unwrap(), None);
    });
}

#[test]
fn a_judger_without_a_judgement_does_not_load() {
    let sandbox = sandbox();
    let hostile = guest("shortest").parent().unwrap().join("../hostile/missing-export.wasm");
    let loaded = sandbox.handle().block_on(Plugin::load(&sandbox, PluginSpec::new("x", hostile)));
    assert!(matches!(loaded.err(), Some(LoadError::MissingExport { .. })));
}
