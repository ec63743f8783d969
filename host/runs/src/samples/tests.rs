use super::*;
use crate::tasks::TaskStore;
use gavel_data::{
    Evaluation, EvaluationRecord, FinishReason, KnownTokens, Message, NotCalled, Outcome, OutcomeKind, Role,
    RolloutFault, RolloutReport, RolloutStage, Sample, SampleOutcome, SamplingMasks, Score, Task, TokenCounts, Tokens,
    ToolEnding, ToolUse, Trajectory,
};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The advantages of its trajectories.
const ADVANTAGES: [Option<f64>; 2] = [Some(-0.7), None];

/// A sample of two trajectories with one token each that the policy did not
/// write.
fn sample() -> Sample {
    let task = Task::from_row(serde_json::from_str(r#"{"prompt": "q"}"#).unwrap(), 0, "train").unwrap();
    let trajectory = |text: &str, version| {
        let tokens = Tokens {
            prompt: vec![1, 2],
            response: vec![7, 8, 9],
            loss_mask: vec![true, false, true],
            logprobs: vec![-0.1, 0.0, f32::MIN],
            versions: vec![version, version, version + 1],
            masks: SamplingMasks::new(),
        };
        let messages = vec![Message::new(Role::Assistant, text)];
        Trajectory {
            opening: None,
            report: Default::default(),
            messages,
            by_agent: Vec::new(),
            tokens: Some(tokens.into()),
            finish_reason: FinishReason::Stop,
            trace: Default::default(),
        }
    };
    Sample::new(Arc::new(task), 3, vec![trajectory("a", 4), trajectory("b", 5)])
}

fn outcome() -> SampleOutcome {
    let score = Score { value: 0.1 + 0.2, note: Some("why".into()), ..Score::default() };
    SampleOutcome {
        reward: Some(0.1 + 0.2),
        outcome: OutcomeKind::Scored,
        reason: None,
        plugins: [("a".to_owned(), Evaluation::without_call(Outcome::Scored(score)))].into(),
        not_called: [("b".to_owned(), NotCalled::Gate)].into(),
        ..SampleOutcome::without_calls(OutcomeKind::Scored, "")
    }
}

/// Writes the sample as the only one of step 1 and gives the file.
fn written(run: &Path, token_ids: bool) -> PathBuf {
    written_of(&sample(), run, token_ids)
}

fn written_of(sample: &Sample, run: &Path, token_ids: bool) -> PathBuf {
    let mut tasks = TaskStore::open(run).unwrap();
    let mut writer = SampleWriter::create(run, 1).unwrap().token_ids(token_ids);
    let (outcome, advantages) = (&outcome(), &ADVANTAGES);
    let scored = ScoredSample { step: 1, group: 2, trained_step: Some(4), sample, outcome, advantages };
    let prompt_text = |ids: &[u32]| token_ids.then(|| format!("{ids:?}").into());
    writer.write_with_prompts(&mut tasks, &scored, prompt_text).unwrap();
    writer.finish(&mut tasks).unwrap()
}

/// The samples of step 1, and the lines that could not be read.
fn read(run: &Path) -> (Vec<RecordedSample>, Vec<String>) {
    let reader = SampleReader::open(run).unwrap();
    let samples = reader.samples(1).unwrap().map(|sample| sample.unwrap()).collect();
    (samples, reader.damage().into_iter().map(|line| line.what).collect())
}

#[test]
fn all_that_is_written_is_read_again() {
    let run = tempfile::tempdir().unwrap();
    for token_ids in [false, true] {
        let text = fs::read_to_string(written(run.path(), token_ids)).unwrap();
        assert_eq!(text.contains("token_ids"), token_ids, "{text}");
        let (samples, damage) = read(run.path());
        let [read] = &samples[..] else { panic!("{samples:?}, {damage:?}") };
        assert_eq!(
            (read.id.as_str(), read.step, read.trained_step, read.line, read.group),
            ("1.2.3", 1, Some(4), 1, 2)
        );
        assert_eq!((read.reward, read.outcome, &read.reason), (Some(0.1 + 0.2), OutcomeKind::Scored, &None));
        assert_eq!((&read.advantages[..], &read.response_lengths[..]), (&ADVANTAGES[..], &[3, 3][..]));
        assert_eq!(read.plugins["a"], EvaluationRecord::from(&outcome().plugins["a"]));
        assert_eq!(read.not_called, outcome().not_called);
        assert_eq!(read.sample.hash(), sample().hash());
        match token_ids {
            true => assert_eq!(*read.sample, sample()),
            false => assert!(read.sample.trajectories.iter().all(|trajectory| trajectory.tokens().is_none())),
        }
    }
}

#[test]
fn a_line_of_one_turn_without_token_ids_has_these_keys() {
    let run = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(written(run.path(), false)).unwrap();
    let line: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let keys: Vec<&str> = line.keys().map(String::as_str).collect();
    let expected = [
        "id",
        "task",
        "task_id",
        "data_source",
        "step",
        "trained_step",
        "group",
        "sample",
        "trajectory",
        "prompt",
        "status",
        "messages",
        "finish_reason",
        "tokens",
        "response",
        "turns",
        "tool_turns",
        "prompt_length",
        "response_length",
        "advantage",
        "reward",
        "outcome",
        "reason",
        "plugins",
        "not_called",
        "line",
    ];
    assert_eq!(keys, expected);
}

#[test]
fn a_line_has_the_ground_truth_which_older_lines_lack() {
    let run = tempfile::tempdir().unwrap();
    let row = serde_json::from_value(json!({"prompt": "q", "reward_model": {"ground_truth": [4, 5]}})).unwrap();
    let sample = Sample { task: Arc::new(Task::from_row(row, 0, "train").unwrap()), ..sample() };
    let path = written_of(&sample, run.path(), false);
    let mut older = lines(&path);
    for line in &mut older {
        assert_eq!(line.as_object_mut().unwrap().remove("ground_truth"), Some(json!("[4,5]")));
    }
    fs::write(&path, older.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let (samples, damage) = read(run.path());
    assert_eq!((damage, samples[0].sample.hash()), (vec![], sample.hash()));
}

/// Writes two groups of two samples of two trajectories each as `step`, and gives the lines.
fn groups(run: &Path, step: u64) -> Vec<String> {
    let mut tasks = TaskStore::open(run).unwrap();
    let mut writer = SampleWriter::create(run, step).unwrap();
    for (group, index) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
        let sample = Sample { index, ..sample() };
        let outcome = outcome();
        let scored =
            ScoredSample { step, group, trained_step: None, sample: &sample, outcome: &outcome, advantages: &[] };
        writer.write(&mut tasks, &scored).unwrap();
    }
    let path = writer.finish(&mut tasks).unwrap();
    fs::read_to_string(path).unwrap().lines().map(str::to_owned).collect()
}

/// The ids of the samples in these files of steps, and the damage with its file and line.
fn read_files(run: &Path, files: &[(&str, &[&str])]) -> (Vec<String>, Vec<String>) {
    for (name, lines) in files {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(layout::trajectories(run).join(name), text).unwrap();
    }
    let reader = SampleReader::open(run).unwrap();
    let steps: Vec<u64> = reader.steps().collect();
    let samples = steps.into_iter().flat_map(|step| reader.samples(step).unwrap());
    let ids = samples.map(|sample| sample.unwrap()).map(|sample| format!("{}*{}", sample.id, trajectories(&sample)));
    let ids = ids.collect();
    let folder = format!("{}/", layout::trajectories(run).display());
    (ids, reader.damage().iter().map(|line| line.to_string().replace(&folder, "")).collect())
}

fn trajectories(sample: &RecordedSample) -> usize {
    sample.sample.trajectories.len()
}

const FILE: &str = "step-000001.jsonl";

#[test]
fn a_line_that_is_there_twice_is_left_out_and_named() {
    let run = tempfile::tempdir().unwrap();
    let lines = groups(run.path(), 1);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let [a, b, c, d, e, f, g, h] = &lines[..] else { panic!("{lines:?}") };
    let all = ["1.0.0*2", "1.0.1*2", "1.1.0*2", "1.1.1*2"];
    for (text, says) in [
        (&[*a, b, c, d, e, f, g, h][..], vec![]),
        // Beside itself, where it would be another trajectory of its sample; elsewhere in its group; after its group.
        (&[*a, b, b, c, d, e, f, g, h], vec![format!("{FILE}, line 3: trajectory 1 of sample 1.0.0 is on line 2 too")]),
        (&[*a, b, c, d, a, e, f, g, h], vec![format!("{FILE}, line 5: sample 1.0.0 is on line 1 too")]),
        (&[*a, b, c, d, e, f, g, h, c], vec![format!("{FILE}, line 9: sample 1.0.1 is on line 3 too")]),
        (&[*a, b, c, d, e, f, g, h, h], vec![format!("{FILE}, line 9: trajectory 1 of sample 1.1.1 is on line 8 too")]),
    ] {
        let (ids, damage) = read_files(run.path(), &[(FILE, text)]);
        assert_eq!((ids, damage), (all.map(str::to_owned).to_vec(), says));
    }
    // In recordings whose lines have no numbers too.
    let old = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let fields = line.as_object_mut().unwrap();
        fields.retain(|name, _| !["line", "last"].contains(&name.as_str()));
        line.to_string()
    };
    let old: Vec<String> = [a, b, c, d, a, b].map(|line| old(line)).to_vec();
    let (ids, damage) = read_files(run.path(), &[(FILE, &old.iter().map(String::as_str).collect::<Vec<_>>())]);
    assert_eq!(ids, all[..2]);
    let says = ["sample 1.0.0 is on line 1 too", "trajectory 1 of sample 1.0.0 is on line 2 too"];
    assert_eq!(damage, [format!("{FILE}, line 5: {}", says[0]), format!("{FILE}, line 6: {}", says[1])]);
}

#[test]
fn a_file_that_is_there_twice_is_left_out_and_named() {
    let run = tempfile::tempdir().unwrap();
    let lines = groups(run.path(), 1);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (ids, damage) = read_files(run.path(), &[("step-000002.jsonl", &lines[..2])]);
    assert_eq!(ids.len(), 4);
    let first = layout::samples(run.path(), 1, 0);
    let says = |line| format!("step-000002.jsonl, line {line}: sample 1.0.0 is in {} too", first.display());
    let folder = format!("{}/", layout::trajectories(run.path()).display());
    assert_eq!(damage, [1, 2].map(says).map(|says| says.replace(&folder, "")));
    // Names that the run does not give.
    fs::remove_file(layout::samples(run.path(), 2, 0)).unwrap();
    for name in ["step-1.jsonl", "step-0000001.jsonl", "step-000001.rank-01.jsonl", "step-000001 (copy).jsonl"] {
        let (ids, damage) = read_files(run.path(), &[(name, &lines)]);
        assert_eq!((ids.len(), damage), (4, vec![]), "{name}");
    }
}

#[test]
fn lines_that_are_missing_or_in_another_order_are_noticed() {
    let run = tempfile::tempdir().unwrap();
    let lines = groups(run.path(), 1);
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let [a, b, c, d, e, f, g, h] = &lines[..] else { panic!("{lines:?}") };
    let torn = &d[..90];
    for (text, says) in [
        (&[*b, c, d, e, f, g, h][..], &["line 1: a line before it is missing"][..]),
        (&[*a, b, e, f, g, h], &["line 3: 2 lines before it are missing"]),
        (&[*a, b, c, d, e, f, g], &["line 7: the lines after it are missing"]),
        (&[*a, b, c, d], &["line 4: the lines after it are missing"]),
        (
            &[*e, f, g, h, a, b, c, d],
            &[
                "line 1: 4 lines before it are missing",
                "line 5: it was line 1 when it was written",
                "line 6: it was line 2 when it was written",
                "line 7: it was line 3 when it was written",
                "line 8: it was line 4 when it was written",
            ],
        ),
        (&[*a, b, c, torn, e, f, g, h], &["line 4: EOF while parsing"]),
        // A line that was cut off is the last.
        (&[*a, b, c, torn], &["line 4: EOF while parsing"]),
        (&[*a, b, c, torn, f, g, h], &["line 4: EOF while parsing", "line 5: a line before it is missing"]),
    ] {
        let (_, damage) = read_files(run.path(), &[(FILE, text)]);
        assert_eq!(damage.len(), says.len(), "{damage:?}");
        for (found, says) in damage.iter().zip(says) {
            assert!(found.starts_with(&format!("{FILE}, {says}")), "{damage:?}");
        }
    }
}

/// The lines of a file as JSON.
fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_line_has_how_the_trajectory_came_about() {
    let run = tempfile::tempdir().unwrap();
    let mut sample = sample();
    let [called, failed] = &mut sample.trajectories[..] else { panic!("two trajectories") };
    let tool_use = ToolUse { name: Some("add".into()), ending: ToolEnding::Answered, turn: 0, seconds: 0.5 };
    // Like a trajectory of `agent.history = "split"`: one turn, which calls a tool.
    called.report = RolloutReport {
        generating: vec![0.25],
        in_tools: vec![0.5],
        tool_uses: vec![tool_use.clone()],
        ..RolloutReport::default()
    };
    called.messages.push(Message::new(Role::Tool, "5"));
    let fault = RolloutFault {
        stage: RolloutStage::Tools,
        message: "too late".into(),
        retryable: true,
        budget: None,
        diagnosis: None,
    };
    failed.finish_reason = FinishReason::Timeout;
    failed.report = RolloutReport { generating: vec![0.75], error: Some(fault.clone()), ..RolloutReport::default() };

    let path = written_of(&sample, run.path(), true);
    let [called, failed] = &lines(&path)[..] else { panic!("two lines") };
    assert_eq!(
        (&called["status"], &called["turns"], &called["tool_turns"]),
        (&json!("completed"), &json!(1), &json!(1))
    );
    assert_eq!((&called["prompt_text"], called.get("error")), (&json!("[1, 2]"), None));
    let uses = json!([{"name": "add", "ending": "answered", "turn": 0, "seconds": 0.5}]);
    assert_eq!(called["rollout"], json!({"generating": [0.25], "in_tools": [0.5], "tool_uses": uses}));
    assert_eq!((&failed["status"], &failed["tool_turns"]), (&json!("expired"), &json!(0)));
    let error = json!({"kind": "timeout", "stage": "tools", "message": "too late", "retryable": true});
    assert_eq!((&failed["error"], &failed["rollout"]["generating"]), (&error, &json!([0.75])));

    let is_back = || {
        let (samples, damage) = read(run.path());
        assert_eq!(damage, Vec::<String>::new());
        let [called, failed] = &samples[0].sample.trajectories[..] else { panic!("{samples:?}") };
        assert_eq!(called.report.tool_uses, std::slice::from_ref(&tool_use));
        assert_eq!(failed.report.error.as_ref(), Some(&fault));
    };
    is_back();
    // Older recordings have the error in the report, and lack the fields that follow from the others.
    let mut older = lines(&path);
    for line in &mut older {
        let line = line.as_object_mut().unwrap();
        for key in ["status", "turns", "tool_turns", "prompt_text"] {
            line.remove(key).unwrap();
        }
        if let Some(mut error) = line.remove("error") {
            error.as_object_mut().unwrap().remove("kind").unwrap();
            line["rollout"]["error"] = error;
        }
    }
    fs::write(&path, older.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    is_back();
}

#[test]
fn counts_take_no_memory_however_large_they_are() {
    let run = tempfile::tempdir().unwrap();
    let path = written(run.path(), false);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace(r#""tokens":{"prompt":2,"#, r#""tokens":{"prompt":4294967295,"#)).unwrap();
    let (samples, damage) = read(run.path());
    assert_eq!(damage, Vec::<String>::new());
    let counts = TokenCounts { prompt: u32::MAX, response: 2, policy_version: Some(4) };
    assert_eq!(samples[0].sample.trajectories[0].tokens, Some(KnownTokens::Counts(counts)));
}

#[test]
fn token_ids_that_are_not_those_that_were_counted_are_damage() {
    let run = tempfile::tempdir().unwrap();
    let path = written(run.path(), true);
    let text = fs::read_to_string(&path).unwrap();
    for (from, to, says) in [
        ("[1,1,1]", "[1,1,9]", "sample 1.2.3: `token_ids.loss_mask` does not fit the 3 tokens of the response"),
        ("[1,1,1]", "[2,1]", ""),
        ("[1,1,1]", "[3]", "sample 1.2.3: `token_ids` does not fit the counts in `tokens`"),
    ] {
        assert_eq!(text.matches(from).count(), 2, "{text}");
        fs::write(&path, text.replace(from, to)).unwrap();
        let (samples, damage) = read(run.path());
        match says {
            "" => assert_eq!((samples.len(), damage.len()), (1, 0)),
            says => assert_eq!((samples.len(), damage), (0, vec![says.to_owned(); 2])),
        }
    }
}

/// A file of a run: the step and the rank that recorded it, and the step and number of each of its groups.
type File<'a> = (u64, usize, &'a [(u64, u64)]);

/// A run whose groups have `count` samples each with the same text, of two trajectories.
fn run_of(files: &[File<'_>], count: u32) -> tempfile::TempDir {
    let run = tempfile::tempdir().unwrap();
    for (recorded, rank, draws) in files {
        let mut tasks = TaskStore::of_rank(run.path(), *rank).unwrap();
        let mut writer = SampleWriter::of_rank(run.path(), *recorded, *rank).unwrap();
        for (step, group) in *draws {
            for index in 0..count {
                let sample = Sample { index, ..sample() };
                let (outcome, advantages) = (&outcome(), &ADVANTAGES);
                let (step, group, trained_step) = (*step, *group, Some(*recorded));
                let scored = ScoredSample { step, group, trained_step, sample: &sample, outcome, advantages };
                writer.write(&mut tasks, &scored).unwrap();
            }
        }
        writer.finish(&mut tasks).unwrap();
    }
    run
}

#[test]
fn a_sample_is_found_by_its_id_as_it_is_read() {
    // Enough for an index that is kept. Step 2 was recorded by two ranks, one of them later than it was drawn.
    let run = run_of(&[(2, 0, &[(2, 0), (2, 2)]), (2, 1, &[(1, 7), (2, 1)]), (3, 0, &[(2, 3)])], 300);
    let all = SampleReader::open(run.path()).unwrap();
    let found = |step: Option<u64>, id: &str| {
        let few = SampleReader::open_for_few(run.path()).unwrap();
        let found = few.find(id, step).unwrap();
        assert_eq!(few.damage(), []);
        found.map(|(step, sample)| (step, format!("{sample:?}")))
    };
    for step in [2, 3] {
        for sample in all.samples(step).unwrap().step_by(97) {
            let sample = sample.unwrap();
            assert_eq!(sample.sample.trajectories.len(), 2);
            let whole = Some((step, format!("{sample:?}")));
            assert_eq!((found(None, &sample.id), found(Some(step), &sample.id)), (whole.clone(), whole));
            assert_eq!(found(Some(5 - step), &sample.id), None);
        }
    }
    for id in ["2.0.300", "2.9.0", "4.0.0", "x", "", "\"", "2.0"] {
        assert_eq!(found(None, id), None, "{id}");
    }
    assert!(layout::samples_index(run.path(), 2, 1).is_file());
    let few = SampleReader::open_for_few(run.path()).unwrap();
    let nth = |step, number| few.nth(step, number).unwrap().map(|sample| sample.id);
    let ids = [nth(2, 0), nth(2, 599), nth(2, 600), nth(2, 1199), nth(3, 2)].map(|id| id.unwrap());
    assert_eq!(ids, ["2.0.0", "2.2.299", "1.7.0", "2.1.299", "2.3.2"]);
    assert_eq!((nth(2, 1200), nth(4, 0), few.count(2).unwrap(), few.count(4).unwrap()), (None, None, 1200, 0));
    // The step is dropped, with what is known of its lines.
    forget_samples_after(run.path(), 2).unwrap();
    assert!(!layout::samples_index(run.path(), 3, 0).exists() && found(None, "2.3.0").is_none());
}

#[test]
fn a_damaged_line_beside_a_sample_does_not_hide_it() {
    let run = run_of(&[(2, 0, &[(2, 0)])], 400);
    let path = layout::samples(run.path(), 2, 0);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[201] = r#"{"id":"2.0.101","torn"#.into();
    // In place of the second trajectory of sample 100.
    fs::write(&path, lines.join("\n")).unwrap();
    let few = SampleReader::open_for_few(run.path()).unwrap();
    let length = |id: &str| few.find(id, None).unwrap().map(|(_, sample)| sample.sample.trajectories.len());
    assert_eq!((length("2.0.99"), length("2.0.100"), length("2.0.102")), (Some(2), Some(1), Some(2)));
    assert_eq!(length("2.0.101"), None, "its first line is damaged");
    // A task that is missing.
    fs::write(layout::tasks(run.path(), 0), "").unwrap();
    let few = SampleReader::open_for_few(run.path()).unwrap();
    assert!(few.find("2.0.99", None).unwrap().is_none());
    assert!(few.damage()[0].what.contains("which tasks.jsonl does not have"), "{:?}", few.damage());
}

#[test]
fn a_line_with_the_highest_numbers_is_damage_and_no_crash() {
    let run = tempfile::tempdir().unwrap();
    let path = written(run.path(), false);
    let text = fs::read_to_string(&path).unwrap();
    let mut line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    (line["line"], line["trajectory"]) = (u64::MAX.into(), u64::MAX.into());
    fs::write(&path, format!("{line}\n{}", text.lines().last().unwrap())).unwrap();
    let (samples, damage) = read(run.path());
    assert_eq!(samples.len(), 1);
    let missing = format!("{} lines before it are missing", u64::MAX - 1);
    let expected = [missing.as_str(), "it was line 2 when it was written", "the lines after it are missing"];
    assert_eq!(damage, expected);
}
