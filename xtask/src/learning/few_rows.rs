//! The first questions of the demo's training set: so few that a run draws each of them several times.

use crate::failure::{Failure, Result};
use crate::setup::cannot;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

/// Their file.
pub const FILE: &str = "target/demo/few-rows.jsonl";
/// How many there are.
const ROWS: usize = 256;
/// The questions of the training set with a right and a wrong answer, in the same order.
const PAIRS: &str = "target/demo/pairs-train.jsonl";

/// Writes the file.
pub fn write(root: &Path) -> Result<()> {
    let pairs = root.join(PAIRS);
    let text = fs::read_to_string(&pairs).map_err(|error| cannot("read", &pairs, &error))?;
    let wrong = |number: usize| {
        Failure::new(format!("line {} of {PAIRS} is not a pair of answers", number + 1))
            .hint("remove target/demo: the next run writes the demo's datasets again")
    };
    let lines = text.lines().enumerate().take(ROWS);
    let rows = lines.map(|(number, line)| row(line).ok_or_else(|| wrong(number))).collect::<Result<String>>()?;
    let path = root.join(FILE);
    fs::write(&path, rows).map_err(|error| cannot("write", &path, &error))
}

/// The line of a question, from its line with two answers.
fn row(pair: &str) -> Option<String> {
    let pair: Value = serde_json::from_str(pair).ok()?;
    let truth = pair.get("chosen")?.as_str()?.strip_prefix("Answer: ")?;
    Some(format!("{}\n", json!({"prompt": pair.get("prompt")?, "ground_truth": truth})))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_questions_are_written_with_their_answers() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("target/demo")).unwrap();
        let pair = |number: usize| format!("{{\"prompt\": \"{number}\", \"chosen\": \"Answer: 1 {number}\"}}\n");
        fs::write(place.path().join(PAIRS), (0..300).map(pair).collect::<String>()).unwrap();
        write(place.path()).unwrap();
        let rows = fs::read_to_string(place.path().join(FILE)).unwrap();
        let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
        assert_eq!((rows.len(), &rows[7]), (ROWS, &json!({"prompt": "7", "ground_truth": "1 7"})));
        fs::write(place.path().join(PAIRS), "{}\n").unwrap();
        let error = write(place.path()).unwrap_err().to_string();
        assert!(error.contains("line 1 of target/demo/pairs-train.jsonl"), "{error}");
    }
}
