//! The standard plugins against verl: the rows of `tests/parity/verl`, which
//! `tests/parity/verl_rewards.py` writes with verl's own scores, each scored by
//! the component in its sandbox.

use gavel_data::{
    Blame, EvaluationRecord, Json, Outcome, OutcomeKind, Row, RowReader, Sample, SampleOutcome, SamplingMasks, Tokens,
};
use gavel_plugin::{Limits, PluginSpec, SandboxConfig};
use gavel_scoring::{Scorer, WeightedPlugin, completion};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A kind of row on which a plugin deliberately differs from verl.
struct Difference {
    /// The name in the fixture.
    kind: &'static str,
    /// The plugin's verdict on each row that differs.
    ours: Ours,
    /// The number of rows of the kind that differ.
    rows: usize,
}

#[derive(Clone, Copy)]
enum Ours {
    Score(f64),
    /// A score that is this much below verl's.
    Below(f64),
    /// A fault of the row.
    Fault,
}

/// A row of a fixture and verl's score of it.
struct Case {
    kind: String,
    row: Row,
    /// Absent if verl raised an exception.
    score: Option<f64>,
    pred: Option<String>,
}

/// A right answer that verl scores 0, or raises an exception for, because of the
/// form of the ground truth.
const fn right(kind: &'static str, rows: usize) -> Difference {
    Difference { kind, ours: Ours::Score(1.0), rows }
}

/// A row without a ground truth. verl gives a 0, raises an exception, or accepts
/// an empty answer. Here it is a fault of the row: its samples have no reward,
/// and the run counts them.
const fn fault(kind: &'static str, rows: usize) -> Difference {
    Difference { kind, ours: Ours::Fault, rows }
}

#[test]
fn gsm8k_agrees() {
    let differences = [
        right("key is a number", 25),
        right("key is written with commas, a dollar sign or white space", 25),
        right("key is a whole solution", 25),
        fault("key is missing", 25),
        fault("key is blank", 25),
    ];
    compare("gsm8k", vec![plugin("gsm8k", 1.0, json!({}))], &differences);
}

#[test]
fn math_agrees() {
    let differences = [right("key is a number", 25), fault("key is missing", 25), fault("key is blank", 40)];
    compare("math", vec![plugin("math", 1.0, json!({}))], &differences);
}

#[test]
fn dapo_math_agrees() {
    let differences = [
        right("key is a number", 25),
        fault("key is missing", 25),
        fault("key is blank", 26),
        // verl gives 1 to a response without an answer.
        fault("key is what verl writes for no answer", 25),
    ];
    compare("dapo-math", vec![plugin("dapo-math", 1.0, json!({}))], &differences);
}

#[test]
fn f1_agrees_where_it_scores_exact_matches() {
    let differences = [
        right("key is a text or a list, without target", 25),
        right("key is a number", 25),
        fault("key is missing", 25),
        fault("key has no answer", 25),
        fault("key is blank", 25),
        // verl gives 1 to a blank answer.
        Difference { kind: "key is articles alone", ours: Ours::Score(0.0), rows: 25 },
        Difference { kind: "a symbol beside an article", ours: Ours::Below(1.0), rows: 9 },
    ];
    compare("f1", vec![plugin("f1", 1.0, json!({"score": "exact-match"}))], &differences);
}

/// verl adds 0.9 for the answer and 0.1 for the form. Its answers are compared
/// by mathruler, with sympy; `math` compares text, and does not see that 36.0
/// is 36.
#[test]
fn geometry3k_is_math_and_format() {
    let form = json!({"pattern": r"(?s)<think>.*</think>.*\\boxed\{.*\}.*"});
    let differences = [Difference { kind: "another form", ours: Ours::Below(0.9), rows: 180 }];
    compare("geometry3k", vec![plugin("math", 0.9, json!({})), plugin("format", 0.1, form)], &differences);
}

/// verl's `DAPORewardManager` adds
/// `min(-(length - (max - buffer)) / buffer * factor, 0)`. A response is never
/// longer than `max` there; here the penalty does not grow beyond `max`.
#[test]
fn the_penalty_of_length_is_that_of_dapo() {
    let overlong = json!({"max_response": 100, "buffer": 20, "factor": 0.5});
    let plugins =
        vec![plugin("dapo-math", 1.0, json!({"overlong": overlong})), plugin("length", 0.0, overlong.clone())];
    let scorer = Scorer::new(plugins, SandboxConfig::with_threads(NonZeroUsize::new(2).unwrap()).into()).unwrap();
    for length in [0, 1, 79, 80, 81, 90, 99, 100, 130] {
        let penalty = -(length.min(100) as f64 - 80.0) / 20.0 * 0.5;
        let outcome = scorer.wait(scorer.start_alone(of_tokens(length), 0));
        let score = |plugin: &str| EvaluationRecord::from(&outcome.plugins[plugin]).score.unwrap();
        assert!((score("length") - penalty.min(0.0)).abs() < 1e-9, "{length}: {}", score("length"));
        assert!((outcome.reward.unwrap() - (1.0 + penalty.min(0.0))).abs() < 1e-9, "{length}: {:?}", outcome.reward);
    }
}

/// A right answer with `length` tokens of the policy after as many of a tool, and
/// a shorter trajectory beside it.
fn of_tokens(length: usize) -> Sample {
    let columns = serde_json::from_value(json!({"response": "Answer: 34", "ground_truth": "34"})).unwrap();
    let mut sample = completion(Row { position: 0, place: String::new(), columns }, "length").unwrap();
    let tokens = |length: usize| Tokens {
        prompt: vec![1],
        response: vec![2; 2 * length],
        loss_mask: [vec![false; length], vec![true; length]].concat(),
        logprobs: vec![0.0; 2 * length],
        versions: vec![0; 2 * length],
        masks: SamplingMasks::new(),
    };
    let mut shorter = sample.trajectories[0].clone();
    sample.trajectories[0].tokens = Some(tokens(length).into());
    shorter.tokens = Some(tokens(length / 2).into());
    sample.trajectories.push(shorter);
    sample
}

/// Scores every row of a fixture and compares. `differences` must list every row
/// that differs.
#[track_caller]
fn compare(task: &str, plugins: Vec<WeightedPlugin>, differences: &[Difference]) {
    let scorer = Scorer::new(plugins, SandboxConfig::with_threads(NonZeroUsize::new(2).unwrap()).into()).unwrap();
    let cases = read(task);
    assert!(cases.len() > 5000, "the fixture has only {} rows", cases.len());
    let pending: Vec<_> =
        cases.iter().map(|case| scorer.start_alone(completion(case.row.clone(), task).unwrap(), 0)).collect();
    let mut counts: BTreeMap<&str, usize> = differences.iter().map(|difference| (difference.kind, 0)).collect();
    let mut wrong = Vec::new();
    for (case, pending) in cases.iter().zip(pending) {
        let outcome = scorer.wait(pending);
        if agree(case, &outcome) {
            continue;
        }
        match differences.iter().find(|difference| difference.kind == case.kind) {
            Some(difference) if says(&outcome, difference.ours, case) => *counts.get_mut(difference.kind).unwrap() += 1,
            _ => wrong.push(describe(case, &outcome)),
        }
    }
    let first = wrong[..wrong.len().min(20)].join("\n");
    assert!(wrong.is_empty(), "{} of {} rows differ:\n{first}", wrong.len(), cases.len());
    let stated = differences.iter().map(|difference| (difference.kind, difference.rows)).collect();
    assert_eq!(counts, stated, "rows that differ by their kind");
}

fn agree(case: &Case, outcome: &SampleOutcome) -> bool {
    let same_score = matches!((case.score, outcome.reward), (Some(verl), Some(ours)) if (verl - ours).abs() < 1e-9);
    // Without an answer, verl's `pred` is a word for that, and the note a sentence.
    same_score && case.pred.as_ref().is_none_or(|pred| pred == "[INVALID]" || note(outcome) == Some(pred))
}

fn says(outcome: &SampleOutcome, expected: Ours, case: &Case) -> bool {
    let scored = |score: f64| outcome.reward.is_some_and(|ours| (ours - score).abs() < 1e-9);
    match expected {
        Ours::Score(score) => scored(score),
        Ours::Below(by) => case.score.is_some_and(|verl| scored(verl - by)),
        Ours::Fault => {
            let of_input = |outcome: &Outcome| matches!(outcome, Outcome::Fault { whose: Blame::Input, .. });
            outcome.outcome == OutcomeKind::Fault && outcome.plugins.values().all(|each| of_input(&each.outcome))
        }
    }
}

/// The note of the first plugin: the answer that it read.
fn note(outcome: &SampleOutcome) -> Option<&String> {
    match &outcome.plugins.values().next()?.outcome {
        Outcome::Scored(score) => score.note.as_ref(),
        _ => None,
    }
}

fn describe(case: &Case, outcome: &SampleOutcome) -> String {
    let Case { kind, row, score, pred } = case;
    let response = row.columns.get("response").unwrap().string().unwrap();
    let end = &response[response.floor_char_boundary(response.len().saturating_sub(120))..];
    let (truth, reason) =
        (row.columns.get("ground_truth").unwrap().as_text(), outcome.reason.as_deref().unwrap_or_default());
    format!(
        "{} ({kind}): …{end:?}, ground truth {truth}: verl {score:?} {pred:?}, ours {:?} {:?} {reason}",
        row.place,
        outcome.reward,
        note(outcome)
    )
}

fn plugin(name: &str, weight: f64, params: Value) -> WeightedPlugin {
    let path = root().join(format!("target/plugins/{name}.wasm"));
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    // All rows start at once, on a machine that may be busy.
    let limits = Limits { deadline: Duration::from_secs(600), ..Limits::default() };
    let spec = PluginSpec { params: params.as_object().unwrap().clone(), limits, ..PluginSpec::new(name, path) };
    WeightedPlugin::new(spec, weight)
}

fn read(task: &str) -> Vec<Case> {
    let path = root().join(format!("tests/parity/verl/{task}.parquet"));
    let case = |mut row: Row| {
        let mut take = |name: &str| row.columns.remove(name).unwrap();
        let (score, pred) = (take("score").parse().unwrap(), take("pred").string());
        let kind = take("kind").string().unwrap();
        let truth: Json = serde_json::from_str(&take("ground_truth").string().unwrap()).unwrap();
        row.columns.insert("ground_truth", truth);
        Case { kind, row, score, pred }
    };
    RowReader::open(&path).unwrap().map(|row| case(row.unwrap())).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
