//! Scores whether a tool answered with the ground truth, and gives credit to each turn that called tools.

use gavel_sdk::{Credit, Failure, Info, Message, Reference, Reward, Role, Sample, Score, Verdict};
use serde::Deserialize;

/// The most turns with credit of a sample.
const MOST_CREDITS: usize = 16_384;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Whether the score is 1 where a tool answered with the ground truth; otherwise it is always 0.
    #[serde(default = "yes")]
    score: bool,
    /// The credit of a turn whose tools answered with the ground truth.
    #[serde(default)]
    found: f64,
    /// The credit of another turn that called tools.
    #[serde(default)]
    missed: f64,
}

fn yes() -> bool {
    true
}

struct ToolCredit(Params);

impl Reward for ToolCredit {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        for (name, credit) in [("found", params.found), ("missed", params.missed)] {
            if !credit.is_finite() {
                return Err(format!("`{name}` must be a finite number, not {credit}"));
            }
        }
        Ok(Self(params))
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let truth = reference.require_ground_truth()?;
        let truth = truth.trim();
        if truth.is_empty() {
            return Err(Failure::invalid_input("the ground truth is blank: every answer of a tool would have it"));
        }
        let mut turns = Vec::new();
        for (trajectory, each) in (0..).zip(sample.trajectories()) {
            turns.extend(calling_turns(each.messages(), truth).map(|(message, found)| (trajectory, message, found)));
        }
        let found = turns.iter().filter(|(_, _, found)| *found).count();
        let score = Score::new(if self.0.score && found > 0 { 1.0 } else { 0.0 });
        let mut score = score.metric("found", found as f64).metric("calling_turns", turns.len() as f64);
        let credit = |(trajectory, message, found): (u32, u32, bool)| {
            let value = if found { self.0.found } else { self.0.missed };
            // A turn has its credit whatever its bytes are: it may be a call alone, which has no text.
            Credit { trajectory, message, start: 0, end: 0, value }
        };
        score.credit = turns.into_iter().map(credit).filter(|credit| credit.value != 0.0).take(MOST_CREDITS).collect();
        Ok(score.into())
    }
}

gavel_sdk::export_reward!(ToolCredit);

/// The number of each message of the assistant that tools answered, and whether one of them answered with the ground
/// truth.
fn calling_turns(messages: impl Iterator<Item = Message>, truth: &str) -> impl Iterator<Item = (u32, bool)> {
    let (mut turns, mut last) = (Vec::<(u32, bool)>::new(), None);
    for (number, message) in (0..).zip(messages) {
        match (message.role, last) {
            (Role::Assistant, _) => last = Some(number),
            (Role::Tool, Some(turn)) => {
                let is_found = has_words(&message.text(), truth);
                match turns.last_mut().filter(|(number, _)| *number == turn) {
                    Some((_, found)) => *found |= is_found,
                    None => turns.push((turn, is_found)),
                }
            }
            _ => {}
        }
    }
    turns.into_iter()
}

/// Whether `words` stand in the text, and not as a part of a longer word or number.
fn has_words(text: &str, words: &str) -> bool {
    let is_inside = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(words).any(|(at, _)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + words.len()..].chars().next());
        !is_inside(before) && !is_inside(after)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_has_the_answers_up_to_the_next_turn() {
        let messages = [
            Message::new(Role::Tool, "7"),
            Message::new(Role::Assistant, ""),
            Message::new(Role::Tool, "6"),
            Message::new(Role::Tool, "= 7."),
            Message::new(Role::User, "go on"),
            Message::new(Role::Assistant, ""),
            Message::new(Role::Tool, "77"),
            Message::new(Role::Assistant, "7"),
        ];
        let found: Vec<_> = calling_turns(messages.into_iter(), "7").collect();
        assert_eq!(found, [(1, true), (5, false)]);
    }

    #[test]
    fn words_are_whole() {
        for (text, words, expected) in [
            ("3 é 7", "é", true),
            ("éa", "é", false),
            ("1 1234 234", "234", true),
            ("1234", "234", false),
            ("", "1", false),
        ] {
            assert_eq!(has_words(text, words), expected, "{text:?}, {words:?}");
        }
    }

    #[test]
    fn parameters_are_checked() {
        let params = |found| Params { score: true, found, missed: 0.0 };
        assert!(ToolCredit::new(params(1.0)).is_ok());
        assert!(ToolCredit::new(params(f64::NAN)).err().unwrap().starts_with("`found` must be"));
    }
}
