//! Samples that are scored in one task have the outcomes that each has in a task of its own.

use gavel_data::{Message, Role, Sample, SampleOutcome, Task, Trajectory};
use gavel_plugin::{PluginSpec, SandboxConfig};
use gavel_scoring::{PendingGroup, ScoreRequest, Scorer, WeightedPlugin, write_line};
use serde_json::json;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

fn plugin(name: &str, file: &str, weight: f64) -> WeightedPlugin {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(file);
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    WeightedPlugin::new(PluginSpec::new(name, path), weight)
}

fn scorer(plugins: Vec<WeightedPlugin>) -> Scorer {
    Scorer::new(plugins, SandboxConfig::with_threads(NonZeroUsize::MIN).into()).unwrap()
}

/// The members of a group, each with its response.
fn group(number: usize, responses: &[String]) -> Vec<ScoreRequest> {
    let group = PendingGroup::new(responses.len());
    let columns = json!({"id": number.to_string(), "prompt": "?", "answer": "4"});
    let task = Arc::new(Task::from_row(serde_json::from_value(columns).unwrap(), number, "test").unwrap());
    let request = |(index, response): (u32, &String)| {
        let trajectory = Trajectory::of(vec![Message::new(Role::Assistant, response.as_str())]);
        let sample = Arc::new(Sample::new(task.clone(), index, vec![trajectory]));
        ScoreRequest { group: group.clone(), sample, seed: number as u64 }
    };
    (0..).zip(responses).map(request).collect()
}

/// Groups of one to four members: right and wrong answers, answers that a plugin loops over, and none.
fn groups() -> Vec<Vec<ScoreRequest>> {
    let response = |number: usize| match number % 5 {
        0 => "Answer: 4".to_owned(),
        1 => format!("Answer: 5{}", " ".repeat(number)),
        4 => String::new(),
        _ => format!("{}\nAnswer: 3", "so ".repeat(number)),
    };
    let responses = |number| (0..number % 4 + 1).map(|member| response(number + member)).collect::<Vec<_>>();
    (0..40).map(|number| group(number, &responses(number))).collect()
}

/// The outcomes as `gavel score` writes them, without times.
fn lines(requests: &[ScoreRequest], outcomes: Vec<SampleOutcome>) -> String {
    let mut lines = Vec::new();
    assert_eq!(requests.len(), outcomes.len());
    for (request, mut outcome) in requests.iter().zip(outcomes) {
        for evaluation in outcome.plugins.values_mut() {
            (evaluation.usage.elapsed_us, evaluation.usage.cpu_us) = (0, 0);
        }
        write_line(&mut lines, Some(&request.sample.task.id), &outcome).unwrap();
    }
    String::from_utf8(lines).unwrap()
}

#[test]
fn a_batch_scores_as_a_task_for_each_sample_does() {
    let mut loops = plugin("loops", "guests/loops.wasm", 1.0);
    loops.spec.limits.fuel = Some(2_000_000);
    let scorer = scorer(vec![loops, plugin("shortest", "guests/shortest.wasm", 0.5)]);
    let requests: Vec<ScoreRequest> = groups().into_iter().flatten().collect();
    let alone: Vec<_> = requests.iter().map(|each| scorer.start(&each.group, each.sample.clone(), each.seed)).collect();
    let alone = lines(&requests, alone.into_iter().map(|pending| scorer.wait(pending)).collect());
    for kind in ["scored", "out-of-budget", "abstained"] {
        assert!(alone.contains(&format!(r#""outcome":"{kind}""#)), "{kind}");
    }

    let requests: Vec<ScoreRequest> = groups().into_iter().flatten().collect();
    // In the middle of a group, which two batches then share.
    let shares = |at: &usize| Arc::ptr_eq(&requests[at - 1].sample.task, &requests[*at].sample.task);
    let (first, second) = requests.split_at((50..).find(shares).unwrap());
    let batches = [first, second].map(|batch| scorer.start_batch(batch.to_vec(), |outcomes| outcomes));
    let batched = batches.into_iter().flat_map(|batch| scorer.wait_batch(batch).unwrap()).collect();
    assert_eq!(lines(&requests, batched), alone);
}

#[test]
fn each_sample_of_a_batch_has_a_fresh_instance() {
    let scorer = scorer(vec![plugin("counts", "guests/stateful.wasm", 1.0)]);
    let requests = (0..5).flat_map(|number| group(number, &["".into()])).collect();
    let batch = scorer.start_batch(requests, |outcomes| outcomes);
    let rewards: Vec<_> = scorer.wait_batch(batch).unwrap().iter().map(|outcome| outcome.reward).collect();
    assert_eq!(rewards, [Some(1.0); 5]);
}
