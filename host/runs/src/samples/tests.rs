use super::*;
use crate::tasks::TaskStore;
use gavel_data::{
    Evaluation, EvaluationRecord, FinishReason, KnownTokens, Message, NotCalled, Outcome, OutcomeKind, Role, Sample,
    SampleOutcome, Score, Task, TokenCounts, Tokens, Trajectory,
};
use std::path::Path;
use std::sync::Arc;

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
        };
        let messages = vec![Message::new(Role::Assistant, text)];
        Trajectory {
            opening: None,
            report: Default::default(),
            messages,
            tokens: Some(tokens.into()),
            finish_reason: FinishReason::Stop,
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
    let mut tasks = TaskStore::open(run).unwrap();
    let mut writer = SampleWriter::create(run, 1).unwrap().token_ids(token_ids);
    let scored = ScoredSample {
        step: 1,
        group: 2,
        trained_step: Some(4),
        sample: &sample(),
        outcome: &outcome(),
        advantage: Some(-0.7),
    };
    writer.write(&mut tasks, &scored).unwrap();
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
        assert_eq!((read.advantage, &read.response_lengths[..]), (Some(-0.7), &[3, 3][..]));
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
fn a_line_without_token_ids_has_the_keys_that_it_always_had() {
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
        "messages",
        "finish_reason",
        "tokens",
        "response",
        "prompt_length",
        "response_length",
        "advantage",
        "reward",
        "outcome",
        "reason",
        "plugins",
        "not_called",
    ];
    assert_eq!(keys, expected);
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
