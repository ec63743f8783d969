//! An agent that answers, checks its answer, and answers again where it was wrong.

use gavel_sdk::policy::{Conversation, Options};
use gavel_sdk::{Agent, Answer, Failure, Info, Message, Task, tools};

/// What the policy says of an answer that is right.
const RIGHT: &str = "RIGHT";

/// The agent, with its parameters checked.
struct Checking {
    params: Params,
}

/// The keys of `[agent.params]` in a run's configuration.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Params {
    /// How often the policy checks its answer, at most.
    checks: u32,
}

impl Default for Params {
    fn default() -> Self {
        Self { checks: 1 }
    }
}

impl Agent for Checking {
    type Params = Params;

    // Once, before any attempt; an error stops a run before it starts.
    fn new(params: Params) -> Result<Self, String> {
        match params.checks {
            0..=10 => Ok(Self { params }),
            many => Err(format!("`checks` must be from 0 to 10, not {many}")),
        }
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    // Once an attempt. The text is the response that rewards read.
    fn run(&self, task: &Task) -> Result<Answer, Failure> {
        let conversation = Conversation::open("", task.prompt(), &tools::specs())?;
        let mut answer = say(&conversation)?;
        for _ in 0..self.params.checks {
            let check =
                format!("Check your answer. If it is right, say {RIGHT}, and nothing else. If not, answer again.");
            conversation.append(vec![Message::user(check)])?;
            let checked = say(&conversation)?;
            if is_right(&checked) {
                break;
            }
            answer = checked;
        }
        Ok(answer.into())
    }
}

gavel_sdk::export_agent!(Checking);

/// What the policy says, after the calls of tools that it asks for.
fn say(conversation: &Conversation) -> Result<String, Failure> {
    loop {
        let turn = conversation.generate(&Options::default())?;
        let answers = tools::answer(&turn);
        if answers.is_empty() {
            return Ok(turn.text());
        }
        conversation.append(answers)?;
    }
}

fn is_right(checked: &str) -> bool {
    checked.trim() == RIGHT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_says_that_an_answer_is_right() {
        assert!(is_right(" RIGHT\n"));
        assert!(!is_right("RIGHT: 5") && !is_right("right"));
    }

    #[test]
    fn too_many_checks_are_refused() {
        assert!(Checking::new(Params { checks: 11 }).is_err());
    }
}
