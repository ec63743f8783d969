//! An agent that calls tools like the built-in loop. Before its context is
//! full, the policy writes a summary, with which a new conversation begins.

use gavel_sdk::policy::{Conversation, Error, Options, Turn};
use gavel_sdk::{Agent, Failure, Info, Message, Task, tools};

struct Summarize {
    reserve: u32,
}

/// The keys of `[agent.params]`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Tokens that are kept for the summary.
    #[serde(default = "quarter_thousand")]
    reserve: u32,
}

fn quarter_thousand() -> u32 {
    256
}

impl Agent for Summarize {
    type Params = Params;

    fn new(Params { reserve }: Params) -> Result<Self, String> {
        Ok(Self { reserve })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn run(&self, task: &Task) -> Result<String, Failure> {
        let functions = tools::specs();
        let mut conversation = Conversation::open("", task.prompt(), &functions)?;
        loop {
            let turn = self.turn(&conversation)?;
            let calls = turn.message().tool_calls;
            if calls.is_empty() {
                return Ok(turn.text());
            }
            let answers = tools::call(&calls);
            let observed: usize = answers.iter().map(|answer| answer.text().len()).sum();
            if (conversation.tokens_left() as usize) < observed + 2 * self.reserve as usize {
                let summary = self.summary(&conversation)?;
                let mut prompt = task.prompt();
                prompt.push(Message::user(format!("What you found out so far:\n\n{summary}")));
                conversation = Conversation::open("", prompt, &functions)?;
            } else {
                conversation.append(answers)?;
            }
        }
    }
}

gavel_sdk::export_agent!(Summarize);

impl Summarize {
    /// A turn that leaves room for a summary.
    fn turn(&self, conversation: &Conversation) -> Result<Turn, Error> {
        let room = conversation.tokens_left().saturating_sub(self.reserve).max(1);
        conversation.generate(&Options::default().max_tokens(room))
    }

    fn summary(&self, conversation: &Conversation) -> Result<String, Failure> {
        let ask = "Your context is full. Sum up what you have found out, and what is left to do.";
        conversation.append(vec![Message::user(ask)])?;
        Ok(conversation.generate(&Options::default())?.text())
    }
}
