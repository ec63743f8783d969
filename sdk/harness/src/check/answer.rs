//! The right answer of a row, and wrong ones.

use crate::rows::DataRow;
use gavel_data::Json;

/// The right answers of all rows.
pub(super) struct Answers(Vec<String>);

impl Answers {
    pub(super) fn of(rows: &[DataRow]) -> Self {
        let mut keys: Vec<String> = rows.iter().filter_map(answer).collect();
        keys.sort();
        keys.dedup();
        Self(keys)
    }

    /// A list of candidates, as from a policy that does not know which answer
    /// is right. The right one is neither the first nor the last.
    pub(super) fn candidates(&self, right: &str) -> Vec<String> {
        if let Ok(number) = right.parse::<i64>() {
            return (-3..=3).map(|step| number.saturating_add(step).to_string()).collect();
        }
        if is_letter(right) {
            let letters = ["A", "B", "C", "D", "E", "F"].map(str::to_owned).into_iter();
            let mut others: Vec<String> = letters.filter(|letter| letter != right).take(4).collect();
            others.insert(2, right.to_owned());
            return others;
        }
        let mut others: Vec<String> = self.0.iter().filter(|other| *other != right).take(8).cloned().collect();
        others.extend(["0", "1", "none of these"].map(str::to_owned));
        others.insert(others.len() / 2, right.to_owned());
        others
    }
}

/// The right answer of a row in short: the text after `####`, the first of
/// several, or the whole ground truth.
pub(super) fn answer(row: &DataRow) -> Option<String> {
    let truth = row.task.reference.ground_truth.as_deref()?;
    if let Some((_, last)) = truth.rsplit_once("####") {
        return Some(last.trim().to_owned()).filter(|answer| !answer.is_empty());
    }
    let first = match serde_json::from_str::<Vec<Json>>(truth) {
        Ok(values) => values.first()?.plain_text(),
        Err(_) => truth.to_owned(),
    };
    let first = first.trim();
    (!first.is_empty()).then(|| first.to_owned())
}

/// A wrong answer of the same kind.
pub(super) fn wrong(right: &str) -> String {
    if let Ok(number) = right.replace(',', "").parse::<i64>() {
        return number.saturating_add(1).to_string();
    }
    if let Ok(number) = right.parse::<f64>()
        && number.is_finite()
    {
        return (number + 1.0).to_string();
    }
    if is_letter(right) {
        return if right == "A" { "B".to_owned() } else { "A".to_owned() };
    }
    // In the form of the right one, so that every parser accepts it.
    "zebra".to_owned()
}

/// A letter that names a choice.
fn is_letter(text: &str) -> bool {
    text.len() == 1 && text.starts_with(|c: char| c.is_ascii_uppercase())
}

/// The last place of the answer in `text`; `step 10` does not contain the
/// answer 1.
pub(super) fn last_answer(text: &str, right: &str) -> Option<usize> {
    let mut places = text.rmatch_indices(right).map(|(at, _)| at);
    places.find(|at| {
        let (before, after) = (&text[..*at], &text[at + right.len()..]);
        !goes_on(right.chars().next(), before.chars().rev()) && !goes_on(right.chars().next_back(), after.chars())
    })
}

/// Whether the text next to the edge of an answer belongs to the same word or
/// number.
fn goes_on(edge: Option<char>, mut beside: impl Iterator<Item = char>) -> bool {
    match (edge, beside.next()) {
        (Some('0'..='9'), Some('.' | ',')) => beside.next().is_some_and(|next| next.is_ascii_digit()),
        // Some scripts have no spaces.
        (Some('0'..='9'), Some(next)) => next.is_ascii_alphanumeric() || next == '_',
        (Some(edge), Some(next)) => edge.is_alphanumeric() && (next.is_alphanumeric() || next == '_'),
        _ => false,
    }
}

/// `text` with its last answer replaced.
pub(super) fn with_answer(text: &str, right: &str, other: &str) -> Option<String> {
    let at = last_answer(text, right)?;
    Some(format!("{}{other}{}", &text[..at], &text[at + right.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_answer_is_of_the_same_kind() {
        for (right, other) in
            [("4", "5"), ("1,000", "1001"), ("-0.5", "0.5"), ("A", "B"), ("C", "A"), ("Paris", "zebra")]
        {
            assert_eq!(wrong(right), other);
        }
    }

    #[test]
    fn the_right_candidate_is_in_the_middle() {
        let answers = Answers(["Lyon", "Nice", "Paris"].map(str::to_owned).to_vec());
        for right in ["7", "B", "Paris", "x^2"] {
            let candidates = answers.candidates(right);
            let at = candidates.iter().position(|candidate| candidate == right).unwrap();
            assert!(at > 0 && at + 1 < candidates.len(), "{candidates:?}");
            assert_eq!(candidates.iter().filter(|candidate| *candidate == right).count(), 1);
        }
    }

    #[test]
    fn the_last_answer_is_replaced() {
        assert_eq!(with_answer("4 and #### 4.", "4", "5").as_deref(), Some("4 and #### 5."));
        assert_eq!(with_answer("x", "4", "5"), None);
        assert_eq!(with_answer("答案是4。", "4", "5").as_deref(), Some("答案是5。"));
        assert_eq!(with_answer("-0.5", "-0.5", "0.5").as_deref(), Some("0.5"));
    }

    #[test]
    fn a_part_of_a_word_or_number_is_no_answer() {
        assert_eq!(with_answer("Answer: 1 (see step 10)", "1", "2").as_deref(), Some("Answer: 2 (see step 10)"));
        for (text, right) in [("x1", "1"), ("2.1", "1"), ("1,000", "1"), ("Paris-Parisian", "Parisi"), ("", "1")] {
            assert_eq!(with_answer(text, right, "?"), None, "{text}");
        }
        assert_eq!(with_answer("Paris or Parisian", "Paris", "Rome").as_deref(), Some("Rome or Parisian"));
    }

    #[test]
    fn a_mark_with_nothing_behind_it_is_no_answer() {
        let row = |truth: &str| {
            let columns = serde_json::from_value(serde_json::json!({"prompt": "?", "answer": truth})).unwrap();
            let task = gavel_data::Task::from_row(columns, 0, "data").unwrap().into();
            DataRow {
                place: String::new(),
                task,
                sample: None,
                seed: 0,
                params: None,
                replies: Default::default(),
                verdicts: Default::default(),
                expects_no_score: false,
            }
        };
        assert_eq!(answer(&row("so #### 4 ")).as_deref(), Some("4"));
        assert_eq!(answer(&row("so #### ")), None);
    }
}
