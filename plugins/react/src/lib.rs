//! An agent that thinks, acts and observes in plain text, as in ReAct
//! (https://arxiv.org/abs/2210.03629), for policies without a format for tool
//! calls.

use gavel_sdk::policy::{Conversation, Options};
use gavel_sdk::{Agent, Answer, Failure, Info, Message, NoParams, Task, ToolCall, ToolSpec, tools};

/// The labels in a turn. A turn stops at the observation.
const ACTION: &str = "Action:";
const INPUT: &str = "Action Input:";
const OBSERVATION: &str = "Observation:";
const ANSWER: &str = "Final Answer:";

struct React;

impl Agent for React {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn run(&self, task: &Task) -> Result<Answer, Failure> {
        let mut prompt = vec![Message::system(instructions(&tools::specs()))];
        prompt.extend(task.prompt());
        let conversation = Conversation::begin(prompt)?;
        let options = Options::default().stop(OBSERVATION);
        for number in 0.. {
            let text = conversation.generate(&options)?.text();
            match Step::read(&text) {
                Step::Answer(answer) => return Ok(answer.into()),
                Step::Action { name, input } => {
                    let id = format!("action-{number}");
                    let call = ToolCall { id, name: name.to_owned(), arguments: input.to_owned() };
                    let observed: String = tools::call(&[call]).iter().map(Message::text).collect();
                    conversation.append(vec![Message::user(format!("{OBSERVATION} {observed}"))])?;
                }
                Step::Unclear => {
                    let what = format!("{OBSERVATION} that was neither an action nor a final answer");
                    conversation.append(vec![Message::user(what)])?;
                }
            }
        }
        Err(Failure::internal("the numbers have ended"))
    }
}

gavel_sdk::export_agent!(React);

fn instructions(functions: &[ToolSpec]) -> String {
    let mut text = String::from("Answer the question. You may use these tools:\n");
    for ToolSpec { name, description, parameters } in functions {
        text.push_str(&format!("- {name}: {description} Its input is JSON of this schema: {parameters}\n"));
    }
    text.push_str(&format!(
        "\nWrite in this form, and stop after each input:\n\nThought: what to do next\n{ACTION} a tool\n{INPUT} its input\n{OBSERVATION} what the tool answers\n\nOnce you know the answer, write:\n\n{ANSWER} the answer"
    ));
    text
}

/// The request of a turn.
#[derive(Debug, PartialEq)]
enum Step<'a> {
    Answer(&'a str),
    Action { name: &'a str, input: &'a str },
    Unclear,
}

impl<'a> Step<'a> {
    /// A final answer, or else the first action.
    fn read(text: &'a str) -> Self {
        if let Some((_, answer)) = text.rsplit_once(ANSWER) {
            return Self::Answer(answer.trim());
        }
        let action = text.split_once(ACTION).and_then(|(_, rest)| rest.split_once(INPUT));
        let Some((name, input)) = action else { return Self::Unclear };
        let input = input.split_once(OBSERVATION).map_or(input, |(input, _)| input);
        Self::Action { name: name.trim(), input: input.trim() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_an_action_or_an_answer() {
        let text = "Thought: I add.\nAction: calculator\nAction Input: {\"expression\": \"1 + 1\"}\nObservation:";
        assert_eq!(Step::read(text), Step::Action { name: "calculator", input: r#"{"expression": "1 + 1"}"# });
        assert_eq!(Step::read("Thought: done.\nFinal Answer: 2\n"), Step::Answer("2"));
        assert_eq!(Step::read("Action: calculator"), Step::Unclear);
        assert_eq!(Step::read("It is 2."), Step::Unclear);
    }
}
