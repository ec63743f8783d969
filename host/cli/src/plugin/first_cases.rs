//! The golden cases of a new plugin, from the first rows of a dataset.

use anyhow::{Context, Result, bail};
use gavel_data::{Columns, DatasetReader, Json, Task};
use gavel_scoring::has_completion;
use serde_json::json;
use std::path::Path;

/// Rows that become cases.
const ROWS: usize = 3;

/// Columns that mean something else in a case.
const OF_CASES: [&str; 7] = ["case", "expect", "params", "replies", "verdicts", "extra", "states"];

/// Cases, and what their author must know about them.
pub struct FirstCases {
    /// The text of `cases.jsonl`.
    pub text: String,
    /// How many there are.
    pub count: usize,
    /// The differences from the dataset, a sentence each.
    pub problems: Vec<String>,
}

/// A case of each of the first rows of `data`: its own response, or its ground truth as a right one.
pub fn first_cases(data: &Path) -> Result<FirstCases> {
    let files = gavel_hub::dataset(data)?;
    let (mut text, mut problems) = (String::new(), Vec::new());
    let mut count = 0;
    for row in DatasetReader::open(&files)?.take(ROWS) {
        let row = row?.row;
        let place = row.place;
        if count == 0 {
            let taken = OF_CASES.into_iter().filter(|name| row.columns.get(name).is_some());
            problems.extend(taken.map(|name| {
                format!("the column `{name}` of {} is not in cases.jsonl, where it has another meaning", data.display())
            }));
        }
        let task = Task::from_row(row.columns.clone(), row.position, "data");
        let (what, response) = match has_completion(&row.columns) {
            true => ("its response", None),
            false => {
                let task = task.with_context(|| format!("{}, {place}", data.display()))?;
                match task.reference.ground_truth.as_deref().and_then(right_response) {
                    Some(right) => ("the ground truth as the response", Some(right)),
                    None => ("write a response", Some("write a response here".to_owned())),
                }
            }
        };
        text += &case(&format!("{place}: {what}"), row.columns, response);
        count += 1;
    }
    if count == 0 {
        bail!("{} has no row", data.display());
    }
    Ok(FirstCases { text, count, problems })
}

/// A line of `cases.jsonl`: any score will do until its author states one.
fn case(name: &str, row: Columns, response: Option<String>) -> String {
    let mut case = Columns::default();
    case.insert("case", name);
    for name in row.names().filter(|name| !OF_CASES.contains(name)) {
        if let Some(value) = row.get(name) {
            case.insert(name, value.clone());
        }
    }
    if let Some(response) = response {
        case.insert("response", response.as_str());
    }
    case.insert("expect", json!({"outcome": "scored"}));
    format!("{}\n", Json::from(case).as_text())
}

/// A response that gives the ground truth as the answer, in the forms that most rules look for: `\boxed{}` and `####`.
/// `None` if it is not an answer but the key of a rule, such as the tests of a program.
fn right_response(truth: &str) -> Option<String> {
    let truth = truth.trim();
    if truth.is_empty() || truth.starts_with(['{', '[']) {
        return None;
    }
    let is_response = truth.contains(['\n']) || ["####", "\\boxed"].iter().any(|form| truth.contains(form));
    Some(if is_response { truth.to_owned() } else { format!("The answer is \\boxed{{{truth}}}.\n#### {truth}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ground_truth_is_a_response_where_it_is_an_answer() {
        assert_eq!(right_response(" 72 ").unwrap(), "The answer is \\boxed{72}.\n#### 72");
        assert_eq!(right_response("6 * 12 = 72\n#### 72").unwrap(), "6 * 12 = 72\n#### 72");
        assert_eq!(right_response(r#"{"inputs": ["1"], "outputs": ["2"]}"#), None);
        assert_eq!(right_response("  "), None);
    }
}
