//! The episode of an attempt: a script in place of the policy and the tools.

use super::conversation::ScriptedConversation;
use super::script::Script;
use crate::expectation::Mismatch;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use gavel_data::{ContentPart, Message, Role, ToolCall};
use gavel_plugin::{AgentTurn, EpisodeLink, EpisodeOver, PolicyRefusal, ToolFunction, ToolSpec, TurnOptions};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// An episode whose policy and tools follow a script. It refuses the same requests as an episode of a run.
pub(super) struct ScriptedEpisode {
    script: Script,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    conversations: Vec<Open>,
    /// Turns of the policy so far.
    turns: usize,
    /// The policy's last message.
    said: Option<String>,
    /// Whether a turn was refused because a budget of the sample is exhausted.
    exhausted: bool,
    calls: Vec<ToolCall>,
    /// The number of answers of each function so far.
    answered: BTreeMap<String, usize>,
    /// A request without an answer in the script.
    missing: Option<Mismatch>,
}

/// A conversation, and how far the policy has read it.
#[derive(Clone)]
struct Open {
    conversation: ScriptedConversation,
    /// Messages before the first turn, once there is one.
    prompt: Option<usize>,
    /// Messages that the policy has read or written.
    read: usize,
    /// Turns of the policy in it, without those before a fork.
    turns: usize,
}

/// The result of an episode.
pub(super) struct Played {
    /// The conversations in which the policy wrote.
    pub(super) conversations: Vec<ScriptedConversation>,
    /// The calls of tools.
    pub(super) calls: Vec<ToolCall>,
    /// The policy's last message, if a budget of the sample is exhausted.
    pub(super) exhausted: Option<String>,
    /// A request without an answer in the script, or else the unused answers.
    pub(super) off_script: Vec<Mismatch>,
    /// Whether the script had no answer, so that the attempt was ended.
    pub(super) ended: bool,
}

impl ScriptedEpisode {
    pub(super) fn new(script: Script) -> Self {
        Self { script, state: Mutex::default() }
    }

    pub(super) fn end(&self) -> Played {
        let state = std::mem::take(&mut *self.state());
        let ended = state.missing.is_some();
        let off_script = match state.missing {
            Some(missing) => vec![missing],
            None => self.unused(state.turns, &state.answered),
        };
        Played {
            conversations: state
                .conversations
                .into_iter()
                .filter(|open| open.turns > 0)
                .map(|open| open.conversation)
                .collect(),
            calls: state.calls,
            exhausted: state.said.filter(|_| state.exhausted),
            off_script,
            ended,
        }
    }

    /// The answers of the script that nothing used.
    fn unused(&self, turns: usize, answered: &BTreeMap<String, usize>) -> Vec<Mismatch> {
        let of_policy = (turns < self.script.turns.len()).then(|| {
            let (expected, came) = (counted(self.script.turns.len(), "turn"), counted(turns, "turn"));
            Mismatch { what: "policy".into(), expected, came, difference: None }
        });
        let of_tools = self.script.answers.iter().filter_map(|(name, answers)| {
            let came = answered.get(name).copied().unwrap_or(0);
            (came < answers.len()).then(|| Mismatch {
                what: format!("tools.{name}"),
                expected: counted(answers.len(), "call"),
                came: counted(came, "call"),
                difference: None,
            })
        });
        of_policy.into_iter().chain(of_tools).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, number: usize, options: &TurnOptions) -> Result<Result<AgentTurn, PolicyRefusal>, EpisodeOver> {
        let mut state = self.state();
        let State { conversations, turns, said, exhausted, missing, .. } = &mut *state;
        let Some(open) = conversations.get_mut(number) else { return Ok(Err(unknown(number))) };
        if let Some(most) = self.script.max_turns.filter(|most| *turns >= *most) {
            *exhausted = true;
            let what = format!("the sample has had its {most} turns (agent.max_turns)");
            return Ok(Err(PolicyRefusal::Exhausted(what)));
        }
        let messages = &mut open.conversation.messages;
        if open.read == messages.len() {
            return Ok(Err(invalid("there is no message to answer; append one")));
        }
        let prompt = *open.prompt.get_or_insert(messages.len());
        let most = self.script.max_tokens;
        let left = most.saturating_sub(characters(&messages[prompt..]));
        if left == 0 {
            *exhausted = true;
            let what = format!("the conversation has used up its {most} tokens (rollout.max_tokens)");
            return Ok(Err(PolicyRefusal::Exhausted(what)));
        }
        let Some(scripted) = self.script.turns.get(*turns) else {
            missing.get_or_insert_with(|| Mismatch {
                what: "policy".into(),
                expected: counted(self.script.turns.len(), "turn"),
                came: format!("asked for turn {}", *turns + 1),
                difference: None,
            });
            return Err(EpisodeOver);
        };
        *turns += 1;
        let turn = scripted.drawn(*turns, left, options);
        *said = Some(turn.message.text());
        messages.push(turn.message.clone());
        open.read = messages.len();
        open.turns += 1;
        Ok(Ok(turn))
    }

    fn answer(&self, call: ToolCall) -> Result<Message, EpisodeOver> {
        let mut state = self.state();
        let State { calls, answered, missing, .. } = &mut *state;
        calls.push(call.clone());
        let text = match self.script.answers.get(&call.name) {
            None => {
                let known = self.script.answers.keys().map(String::as_str);
                format!("error: {}", ToolFunction::unknown(&call.name, known))
            }
            Some(answers) => match serde_json::from_str::<Map<String, Value>>(&call.arguments) {
                Err(error) => format!("error: the arguments are not a JSON object: {error}"),
                Ok(_) => {
                    let count = answered.entry(call.name.clone()).or_default();
                    let Some(answer) = answers.get(*count) else {
                        missing.get_or_insert_with(|| Mismatch {
                            what: format!("tools.{}", call.name),
                            expected: counted(answers.len(), "call"),
                            came: format!("call {} with {}", *count + 1, call.arguments),
                            difference: None,
                        });
                        return Err(EpisodeOver);
                    };
                    *count += 1;
                    answer.clone()
                }
            },
        };
        Ok(Message { tool_call_id: Some(call.id), name: Some(call.name), ..Message::new(Role::Tool, text) })
    }
}

impl EpisodeLink for ScriptedEpisode {
    fn open(
        &self,
        speaker: String,
        messages: Vec<Message>,
        _functions: Vec<ToolFunction>,
    ) -> Result<usize, PolicyRefusal> {
        check_text(&messages)?;
        let conversation = ScriptedConversation { speaker, messages };
        Ok(self.state().add(Open { conversation, prompt: None, read: 0, turns: 0 }))
    }

    fn append(&self, conversation: usize, messages: Vec<Message>) -> Result<(), PolicyRefusal> {
        check_text(&messages)?;
        let mut state = self.state();
        let open = state.conversations.get_mut(conversation).ok_or_else(|| unknown(conversation))?;
        open.conversation.messages.extend(messages);
        Ok(())
    }

    fn fork(&self, conversation: usize, speaker: String) -> Result<usize, PolicyRefusal> {
        let mut state = self.state();
        let mut fork = state.conversations.get(conversation).ok_or_else(|| unknown(conversation))?.clone();
        fork.conversation.speaker = speaker;
        fork.turns = 0;
        Ok(state.add(fork))
    }

    fn size(&self, conversation: usize) -> usize {
        let state = self.state();
        let open = state.conversations.get(conversation);
        open.map_or(0, |open| open.conversation.messages.iter().map(|message| message.text().len()).sum())
    }

    fn tokens_left(&self, conversation: usize) -> usize {
        let state = self.state();
        let grown = state.conversations.get(conversation).map_or(0, |open| {
            let messages = &open.conversation.messages;
            open.prompt.map_or(0, |prompt| characters(&messages[prompt..open.read]))
        });
        self.script.max_tokens.saturating_sub(grown)
    }

    fn generate(
        &self,
        conversations: Vec<usize>,
        options: TurnOptions,
    ) -> BoxFuture<'_, Result<Vec<Result<AgentTurn, PolicyRefusal>>, EpisodeOver>> {
        ready(conversations.into_iter().map(|number| self.turn(number, &options)).collect()).boxed()
    }

    fn specs(&self) -> Vec<ToolSpec> {
        let spec = |name: &String| ToolSpec {
            name: name.clone(),
            description: format!("The scripted function `{name}`."),
            parameters: json!({"type": "object"}),
        };
        self.script.answers.keys().map(spec).collect()
    }

    fn call(&self, calls: Vec<ToolCall>) -> BoxFuture<'_, Result<Vec<Message>, EpisodeOver>> {
        ready(calls.into_iter().map(|call| self.answer(call)).collect()).boxed()
    }
}

impl State {
    fn add(&mut self, open: Open) -> usize {
        self.conversations.push(open);
        self.conversations.len() - 1
    }
}

/// The policy reads text only.
fn check_text(messages: &[Message]) -> Result<(), PolicyRefusal> {
    let is_text = |part: &ContentPart| matches!(part, ContentPart::Text(_));
    match messages.iter().flat_map(|message| &message.content).all(is_text) {
        true => Ok(()),
        false => Err(invalid("the policy reads text only, and a message has an attachment")),
    }
}

fn characters(messages: &[Message]) -> usize {
    messages.iter().map(|message| message.text().chars().count()).sum()
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn invalid(what: &str) -> PolicyRefusal {
    PolicyRefusal::InvalidRequest(what.to_owned())
}

fn unknown(conversation: usize) -> PolicyRefusal {
    invalid(&format!("there is no conversation {conversation}"))
}
