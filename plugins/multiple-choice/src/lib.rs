//! Scores 1 where the response decides on the right choice, and 0 where it
//! decides on another, on several or on none.

mod answer;
mod change;
mod closing;
mod languages;
mod letters;
mod patterns;
mod question;
mod stance;
mod statement;
mod thinking;
mod verdicts;
mod voice;

use answer::Reader;
use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use serde::Deserialize;

struct MultipleChoice {
    reader: Reader,
    key: Key,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The letters of the choices, in their order.
    #[serde(default = "default_choices")]
    choices: String,
    /// The form of the ground truth.
    #[serde(default)]
    key: Key,
}

#[derive(Deserialize, Default, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum Key {
    /// A letter.
    #[default]
    Letter,
    /// A number, 0 for the first choice.
    Index,
}

fn default_choices() -> String {
    "ABCD".into()
}

impl Reward for MultipleChoice {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        let choices: Vec<char> = params.choices.chars().collect();
        let distinct = choices.iter().enumerate().all(|(at, choice)| !choices[..at].contains(choice));
        if choices.len() < 2 || !distinct || !choices.iter().all(char::is_ascii_uppercase) {
            return Err(format!(
                "`choices` is {:?}: give two or more different capital letters, such as \"ABCD\"",
                params.choices
            ));
        }
        let reader =
            Reader::new(choices).map_err(|error| format!("a pattern of the rule does not compile: {error}"))?;
        Ok(Self { reader, key: params.key })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let truth = self.truth(&reference.require_ground_truth()?)?;
        let answer = self.reader.answer(&sample.response());
        let correct = answer == Ok(truth);
        let score = Score::new(f64::from(correct)).metric("answered", f64::from(answer.is_ok()));
        let note = answer.map_or_else(|reason| reason.to_string(), String::from);
        Ok(score.note(note).into())
    }
}

gavel_sdk::export_reward!(MultipleChoice);

impl MultipleChoice {
    fn truth(&self, truth: &str) -> Result<char, Failure> {
        let choices = self.reader.choices();
        let found = match self.key {
            Key::Letter => self.reader.only(truth),
            Key::Index => truth.trim().parse::<usize>().ok().and_then(|index| choices.get(index).copied()),
        };
        found.ok_or_else(|| {
            let all = choices.iter().collect::<String>();
            Failure::invalid_input(match self.key {
                Key::Letter => format!(
                    "the ground truth {truth:?} is not one of the letters {all:?}; \
                     if it is the number of a choice, set `key = \"index\"`"
                ),
                Key::Index => format!(
                    "the ground truth {truth:?} is not the number of one of the choices {all:?}, 0 for the first"
                ),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(choices: &str, key: Key) -> Result<MultipleChoice, String> {
        MultipleChoice::new(Params { choices: choices.into(), key })
    }

    #[test]
    fn the_key_is_a_letter_or_a_number() {
        let letters = plugin("ABCD", Key::Letter).unwrap();
        for truth in ["B", " (b) ", "B.", r"\text{B}"] {
            assert_eq!(letters.truth(truth).unwrap(), 'B', "{truth}");
        }
        let numbers = plugin("ABCD", Key::Index).unwrap();
        assert_eq!(numbers.truth("0").unwrap(), 'A');
        for (plugin, truth) in
            [(&letters, "1"), (&letters, "E"), (&letters, ""), (&letters, "A, B"), (&numbers, "4"), (&numbers, "B")]
        {
            assert!(matches!(plugin.truth(truth), Err(Failure::InvalidInput(_))), "{truth}");
        }
    }

    #[test]
    fn choices_are_different_capital_letters() {
        assert!(plugin("AB", Key::Letter).is_ok());
        for choices in ["", "A", "AA", "ab", "A,B", "1234"] {
            assert!(plugin(choices, Key::Letter).is_err(), "{choices}");
        }
    }
}
