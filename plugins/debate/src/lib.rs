//! An agent in which the policy argues with itself. Two speakers answer in
//! turns, each after it has read the other's answer.

use gavel_sdk::policy::{self, Conversation, Options};
use gavel_sdk::{Agent, Answer, Failure, Info, Message, Task};
use std::num::NonZeroU32;

struct Debate {
    rounds: usize,
    options: Options,
}

/// The keys of `[agent.params]`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The number of rounds, in which both speak.
    #[serde(default = "two")]
    rounds: usize,
    /// The most tokens of a turn.
    max_tokens: Option<NonZeroU32>,
}

fn two() -> usize {
    2
}

impl Agent for Debate {
    type Params = Params;

    fn new(Params { rounds, max_tokens }: Params) -> Result<Self, String> {
        let options = Options::default();
        let options = max_tokens.map_or(options.clone(), |most| options.max_tokens(most.get()));
        match rounds {
            1.. => Ok(Self { rounds, options }),
            0 => Err("rounds must be at least 1, not 0".into()),
        }
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn run(&self, task: &Task) -> Result<Answer, Failure> {
        let first = Conversation::open("first", task.prompt(), &[])?;
        let second = Conversation::open("second", task.prompt(), &[])?;
        let mut said = self.speak(&first, &second)?;
        for _ in 1..self.rounds {
            first.append(vec![Message::user(heard(&said[1]))])?;
            second.append(vec![Message::user(heard(&said[0]))])?;
            said = self.speak(&first, &second)?;
        }
        let [answer, _] = said;
        Ok(answer.into())
    }
}

impl Debate {
    /// Lets both speak at the same time.
    fn speak(&self, first: &Conversation, second: &Conversation) -> Result<[String; 2], Failure> {
        let mut turns = policy::generate(&[first, second], &self.options).into_iter();
        let mut next = || turns.next().ok_or_else(|| Failure::internal("a turn is missing"));
        Ok([next()??.text(), next()??.text()])
    }
}

gavel_sdk::export_agent!(Debate);

fn heard(said: &str) -> String {
    format!("Somebody else answers:\n\n{said}\n\nSay where they are wrong or you were, and answer again.")
}
