//! The rows that a step trained on are kept.

use super::*;
use gavel_config::load;
use gavel_runs::{Overview, RunState, read_metrics, read_rows};
use std::path::Path;

/// Two steps over three of four rows each, in the order of the file.
fn config(folder: &Path, more: &str) -> Config<SftTable> {
    let row = |row: u64| format!("{{\"prompt\": \"Say {row}\", \"response\": \"{}\"}}\n", "ab".repeat(row as usize));
    let rows = folder.join("rows.jsonl");
    std::fs::write(&rows, (1..=4).map(row).collect::<String>()).unwrap();
    let text = format!(
        r#"
[model]
device = "cpu"
[model.init]
vocab_size = 259
hidden_size = 16
intermediate_size = 16
num_hidden_layers = 1
num_attention_heads = 2
[data]
train = {rows:?}
shuffle = false
[train]
steps = 2
batch_size = 3
learning_rate = 1e-2
[resources]
torch_threads = 1
[log]
dir = {:?}
name = "run"
tensorboard = false
{more}
"#,
        folder.join("runs")
    );
    let path = folder.join("sft.toml");
    std::fs::write(&path, text).unwrap();
    load(&path, &[]).unwrap()
}

#[test]
fn the_rows_of_each_step_are_kept_with_their_place_text_and_loss() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let summary = sft(&config(folder, ""), Start::New, &Peers::alone(), &Control::default()).unwrap();
    let (rows, damaged) = read_rows(&summary.folder, None, |_| true).unwrap();
    assert_eq!(damaged, []);
    let file = folder.join("rows.jsonl");
    let places = |row: &TrainedRow| (row.id.clone(), row.row.clone());
    let expected = [("1.0", 1), ("1.1", 2), ("1.2", 3), ("2.0", 4), ("2.1", 1), ("2.2", 2)];
    let expected = expected.map(|(id, line)| (id.to_owned(), format!("{}, line {line}", file.display())));
    assert_eq!(rows.iter().map(places).collect::<Vec<_>>(), expected);
    let last = &rows[5];
    assert!(last.prompt_text.contains("Say 2") && last.prompt_length > 5, "{last:?}");
    assert!(last.response.starts_with("abab<|im_end|>"), "{last:?}");
    let (steps, _) = read_metrics(&summary.folder).unwrap();
    for (step, rows) in [(1, &rows[..3]), (2, &rows[3..])] {
        assert!(rows.iter().all(|row| row.trained_step == step));
        let tokens: usize = rows.iter().map(|row| row.response_length).sum();
        let loss = rows.iter().map(|row| row.loss * row.response_length as f64).sum::<f64>() / tokens as f64;
        let metrics = &steps[step as usize];
        assert_eq!(metrics.get("tokens/response"), Some(tokens as f64));
        let logged = metrics.get("loss").unwrap();
        assert!((loss - logged).abs() < 1e-5, "{loss} is not {logged}");
    }
}

#[test]
fn a_run_without_trajectories_keeps_no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), "trajectories = false");
    let summary = sft(&config, Start::New, &Peers::alone(), &Control::default()).unwrap();
    assert!(!summary.folder.join("rows").exists());
}

#[test]
fn a_run_whose_model_cannot_be_loaded_has_failed() {
    let folder = tempfile::tempdir().unwrap();
    let first = config(folder.path(), "");
    let checkpoint = sft(&first, Start::New, &Peers::alone(), &Control::default()).unwrap().checkpoint.unwrap();
    let weights = checkpoint.join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&weights, bytes).unwrap();
    let text = std::fs::read_to_string(folder.path().join("sft.toml")).unwrap();
    let (before, rest) = text.split_once("[model.init]").unwrap();
    let (_, after) = rest.split_once("[data]").unwrap();
    let path = folder.path().join("again.toml");
    std::fs::write(&path, format!("{before}path = {checkpoint:?}\n[data]{after}")).unwrap();
    let again = load(&path, &[]).unwrap();
    let error = sft(&again, Start::New, &Peers::alone(), &Control::default()).unwrap_err().to_string();
    let found = Overview::read(&folder.path().join("runs/run-2")).unwrap();
    assert_eq!((found.state, found.error.as_deref()), (RunState::Failed, Some(error.as_str())));
    let first = Overview::read(&folder.path().join("runs/run")).unwrap();
    assert_eq!((first.state, first.error), (RunState::Ended, None));
}
