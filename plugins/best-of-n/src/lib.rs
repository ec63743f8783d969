//! An agent that draws several answers at once, and lets the policy choose the
//! best of them.

use gavel_sdk::policy::{self, Conversation, Options, Turn};
use gavel_sdk::{Agent, Answer, Failure, Info, Message, Task};

struct BestOfN {
    n: usize,
}

/// The keys of `[agent.params]`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The number of answers.
    #[serde(default = "four")]
    n: usize,
}

fn four() -> usize {
    4
}

impl Agent for BestOfN {
    type Params = Params;

    fn new(Params { n }: Params) -> Result<Self, String> {
        match n {
            2.. => Ok(Self { n }),
            _ => Err(format!("n must be at least 2, not {n}")),
        }
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn run(&self, task: &Task) -> Result<Answer, Failure> {
        let answering = (0..self.n).map(|_| Conversation::open("answer", task.prompt(), &[]));
        let answering = answering.collect::<Result<Vec<_>, _>>()?;
        let turns = policy::generate(&answering.iter().collect::<Vec<_>>(), &Options::default());
        let mut answers: Vec<String> = turns.iter().flatten().map(Turn::text).collect();
        if answers.len() < 2 {
            return answers.pop().map(Answer::from).ok_or_else(|| Failure::internal("the policy gave no answer"));
        }
        let mut prompt = task.prompt();
        prompt.push(Message::user(question(&answers)));
        let verdict = Conversation::open("verify", prompt, &[])?.generate(&Options::default());
        let best = match verdict {
            Ok(verdict) => choice(&verdict.text(), answers.len()),
            Err(why) => {
                // The sample's report shows this output.
                eprintln!("the first of {} answers is taken, since none was chosen: {}", answers.len(), why.what());
                0
            }
        };
        Ok(answers.swap_remove(best).into())
    }
}

gavel_sdk::export_agent!(BestOfN);

fn question(answers: &[String]) -> String {
    let mut text = String::from("These answers were given:\n\n");
    for (number, answer) in (1..).zip(answers) {
        text.push_str(&format!("Answer {number}:\n{answer}\n\n"));
    }
    text + "Check each of them. End with the number of the best one."
}

/// The index of the answer that the last number in `verdict` names; the first
/// answer if it names none.
fn choice(verdict: &str, answers: usize) -> usize {
    let mut numbers =
        verdict.split(|char: char| !char.is_ascii_digit()).filter_map(|digits| digits.parse::<usize>().ok());
    numbers.rfind(|number| (1..=answers).contains(number)).map_or(0, |number| number - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_is_the_choice() {
        assert_eq!(choice("Answer 1 adds wrongly. Answer 3 is best: 3.", 4), 2);
        assert_eq!(choice("The best one is 2, of 99.", 4), 1);
        assert_eq!(choice("None of them.", 4), 0);
    }
}
