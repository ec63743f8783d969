//! An agent that calls tools like the built-in loop. Before its context is
//! full, the policy writes a summary, with which a new conversation begins.

use gavel_sdk::policy::{Conversation, Error, Options, Turn};
use gavel_sdk::{Agent, Answer, Failure, Info, Message, Task, tools};

const ASK: &str = "Your context is full. Sum up what you have found out, and what is left to do.";
const LEFT_OUT: &str = "The context is full. This answer follows in the next one.";

struct Summarize {
    reserve: usize,
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
        Ok(Self { reserve: reserve as usize })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn run(&self, task: &Task) -> Result<Answer, Failure> {
        let functions = tools::specs();
        let mut conversation = Conversation::open("", task.prompt(), &functions)?;
        let mut unread = 0;
        loop {
            let turn = self.turn(&conversation, unread)?;
            let answers = tools::answer(&turn);
            if answers.is_empty() {
                return Ok(turn.text().into());
            }
            // A token has at least one byte.
            unread = answers.iter().map(|answer| answer.text().len()).sum();
            let left = conversation.tokens_left() as usize;
            if left >= unread + 2 * self.reserve {
                conversation.append(answers)?;
            } else {
                let fits = left >= unread + self.reserve;
                let mut prompt = task.prompt();
                prompt.push(Message::user(summary(&conversation, answers, fits)?));
                conversation = Conversation::open("", prompt, &functions)?;
                unread = 0;
            }
        }
    }
}

gavel_sdk::export_agent!(Summarize);

impl Summarize {
    /// A turn after `unread` tokens that leaves room for a summary.
    fn turn(&self, conversation: &Conversation, unread: usize) -> Result<Turn, Error> {
        let room = (conversation.tokens_left() as usize).saturating_sub(unread + self.reserve).max(1);
        conversation.generate(&Options::default().max_tokens(u32::try_from(room).unwrap_or(u32::MAX)))
    }
}

/// The text with which the new conversation begins. Answers that do not fit into this one follow the summary.
fn summary(conversation: &Conversation, answers: Vec<Message>, fits: bool) -> Result<String, Failure> {
    let mut carried = Vec::new();
    if fits {
        conversation.append(answers)?;
    } else {
        carried.extend(answers.iter().map(Message::text));
        let left_out = answers.into_iter().map(|answer| Message { content: Message::user(LEFT_OUT).content, ..answer });
        conversation.append(left_out.collect())?;
    }
    conversation.append(vec![Message::user(ASK)])?;
    let found = conversation.generate(&Options::default())?.text();
    let carried = carried.iter().map(|answer| format!("\n\nA tool answered:\n\n{answer}"));
    Ok(format!("What you found out so far:\n\n{found}{}", carried.collect::<String>()))
}
