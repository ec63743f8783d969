//! The tools of a run: their functions, and the sessions of a trajectory.

use crate::argument_check::check_arguments;
use crate::mcp::{McpError, McpServer};
use crate::row_settings::object;
use crate::run_tool::{RunSession, RunTool, ToolSource};
use crate::tool_failure::{CallResult, OnToolFailure};
use crate::tool_output::{self, LeftOut};
use futures::future::join_all;
use gavel_data::seed::{Purpose, derive};
use gavel_data::{
    Columns, Json, Message, Outcome, Role, RolloutFault, RolloutStage, ToolCall, ToolEnding, ToolStates, ToolUse,
};
use gavel_plugin::{Agent, LoadError, OutsideWaits, Sandbox, SessionRooms, Tool, ToolFunction, ToolReport};
use gavel_text::{MalformedCall, TextError, TextModel};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

mod of_row;

/// How tools may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolLimits {
    /// The most calls of one turn that are made; the others are answered with an error.
    pub max_parallel_calls: usize,
    /// The most tokens of one answer.
    pub max_output_tokens: usize,
    /// Which part of a longer answer is left out.
    pub left_out: LeftOut,
    /// What becomes of a sample whose tool fails.
    pub on_failure: OnToolFailure,
}

/// The tools of a run.
pub struct ToolSet {
    tools: Vec<Arc<RunTool>>,
    /// For each function that may be called, the number of its tool.
    functions: BTreeMap<String, usize>,
    /// In the order of the tools, as chat templates take them.
    definitions: Arc<[Value]>,
}

/// Tools that cannot be used together.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ToolSetError {
    /// One of them does not load.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// An MCP server cannot be used.
    #[error(transparent)]
    Mcp(#[from] McpError),
    /// A component of `gavel plugin test --quick`.
    #[error(
        "tool `{0}` is a quick build for tests: it reads its sources from a folder\nhint: run `gavel plugin build`, and name build/NAME.wasm"
    )]
    Quick(String),
    /// Two of them have a function of the same name.
    #[error("the tools `{first}` and `{second}` both have a function `{function}`\nhint: leave one of them out")]
    Twice { function: String, first: String, second: String },
}

impl ToolSet {
    /// Loads tools, which the policy sees in this order.
    ///
    /// # Errors
    /// One of them does not load, does not answer or is a quick build, or two have a function of the same name.
    pub async fn load(sandbox: &Sandbox, sources: Vec<ToolSource>) -> Result<Self, ToolSetError> {
        let (mut tools, mut functions) = (Vec::<Arc<RunTool>>::new(), BTreeMap::<String, usize>::new());
        for (number, source) in sources.into_iter().enumerate() {
            let tool = match source {
                ToolSource::Component(spec) => RunTool::Component(Tool::load(sandbox, *spec).await?),
                ToolSource::Mcp(spec) => RunTool::Mcp(Arc::new(McpServer::load(spec, sandbox).await?)),
            };
            if tool.component().is_some_and(|tool| tool.info().is_quick()) {
                return Err(ToolSetError::Quick(tool.name().to_owned()));
            }
            for function in tool.functions() {
                if let Some(earlier) = functions.insert(function.name().to_owned(), number) {
                    let first = tools.get(earlier).map_or(tool.name(), |tool| tool.name()).to_owned();
                    let (function, second) = (function.name().to_owned(), tool.name().to_owned());
                    return Err(ToolSetError::Twice { function, first, second });
                }
            }
            tools.push(Arc::new(tool));
        }
        Ok(Self::new(tools, functions))
    }

    /// No tools.
    pub fn none() -> Arc<Self> {
        Arc::new(Self::new(Vec::new(), BTreeMap::new()))
    }

    fn new(tools: Vec<Arc<RunTool>>, functions: BTreeMap<String, usize>) -> Self {
        let set = Self { tools, functions, definitions: Arc::from([]) };
        Self { definitions: set.functions().map(ToolFunction::definition).collect(), ..set }
    }

    /// Whether a function of this name may be called.
    pub(crate) fn has(&self, function: &str) -> bool {
        self.functions.contains_key(function)
    }

    /// What may be called, in the order of the tools.
    pub(crate) fn functions(&self) -> impl Iterator<Item = &ToolFunction> {
        let all = self.tools.iter().flat_map(|tool| tool.functions());
        all.filter(|function| self.functions.contains_key(function.name()))
    }

    /// Their functions, in the form that chat templates take.
    pub fn definitions(&self) -> Arc<[Value]> {
        self.definitions.clone()
    }

    /// The function that a call is for, and the number of its tool; the error is for the policy.
    fn called(&self, call: &ToolCall, place: usize, limits: &ToolLimits) -> Result<(usize, &ToolFunction), String> {
        let most = limits.max_parallel_calls;
        if place >= most {
            return Err(format!("at most {most} calls are made in one turn; ask again for this one"));
        }
        let unknown = || ToolFunction::unknown(&call.name, self.functions.keys().map(String::as_str));
        let tool = *self.functions.get(&call.name).ok_or_else(unknown)?;
        let function = self.tools[tool].functions().iter().find(|function| function.name() == call.name);
        Ok((tool, function.ok_or_else(unknown)?))
    }

    /// The tools, in their order.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &RunTool> {
        self.tools.iter().map(|tool| &**tool)
    }

    /// Refuses tools whose sessions would never have memory together, and with `agent`.
    ///
    /// # Errors
    /// Their memory limits together are above what all sessions may have.
    pub fn check_room(&self, agent: Option<&Agent>) -> Result<(), LoadError> {
        SessionRooms::check(agent, self.tools().filter_map(RunTool::component))
    }

    /// Waits for the memory of one more trajectory and of `agent`; nothing once the sandbox is shut down.
    pub(crate) async fn rooms(&self, agent: Option<&Agent>) -> Option<SessionRooms> {
        SessionRooms::wait(agent, self.tools().filter_map(RunTool::component)).await
    }

    /// Sessions for a trajectory. `settings` has what a row sets for each tool, by the tool's name or the name of one
    /// of its functions.
    pub(crate) fn open(
        self: &Arc<Self>,
        rooms: Arc<SessionRooms>,
        settings: &Columns,
        seed: u64,
        waits: &OutsideWaits,
    ) -> Sessions {
        let sessions = self.tools.iter().map(|tool| {
            let names = std::iter::once(tool.name()).chain(tool.functions().iter().map(ToolFunction::name));
            let own = names.into_iter().find_map(|name| settings.present(name)).map(of_verl);
            tool.session(rooms.clone(), object(own), waits.clone())
        });
        Sessions { sessions: sessions.collect(), set: self.clone(), seed, calls: 0 }
    }
}

/// An answer to a call that has neither an id nor a name, the `number`-th after a turn. Some chat templates refuse an
/// answer without them, and an id that is not nine characters long.
pub(crate) fn identified_answer(answer: Message, turn: usize, number: usize) -> Message {
    let id = answer.tool_call_id.unwrap_or_else(|| format!("bad{:06}", turn * 100 + number));
    let name = answer.name.unwrap_or_else(|| "unknown".to_owned());
    Message { tool_call_id: Some(id), name: Some(name), ..answer }
}

/// verl puts the arguments that create a tool below `create_kwargs`.
fn of_verl(settings: &Json) -> Json {
    settings.present("create_kwargs").unwrap_or_else(|| settings.clone())
}

/// The tools of a run, in one trajectory.
pub(crate) struct Sessions {
    set: Arc<ToolSet>,
    sessions: Vec<RunSession>,
    seed: u64,
    /// Calls so far.
    calls: u64,
}

/// A call that fits a function and is not answered yet.
struct Call<'a> {
    /// Its place among all calls of the turn.
    place: usize,
    call: &'a ToolCall,
    seed: u64,
}

/// The result of a call, and how long it took.
struct Answer {
    result: CallResult,
    seconds: f64,
}

/// The answers to the calls of a turn.
pub(crate) struct Answers {
    /// A message for each call, in the order of the calls.
    pub(crate) messages: Vec<Message>,
    /// A report for each call, in the same order.
    pub(crate) uses: Vec<ToolUse>,
    /// Why the sample cannot continue, if a tool failed.
    pub(crate) fault: Option<RolloutFault>,
}

async fn timed(call: impl Future<Output = CallResult>) -> Answer {
    let start = Instant::now();
    let result = call.await;
    Answer { result, seconds: start.elapsed().as_secs_f64() }
}

fn result(report: &ToolReport) -> CallResult {
    let budget = match &report.answer {
        Err(Outcome::OutOfBudget { which, .. }) => Some(*which),
        _ => None,
    };
    CallResult { text: report.text(), ending: report.ending(), budget }
}

/// A sample whose tool cannot report its state. It is not scored: a reward would take the state for none.
fn unfinished(tool: &str, outcome: &Outcome) -> RolloutFault {
    let what = outcome.reason().unwrap_or_default();
    RolloutFault {
        stage: RolloutStage::Tools,
        message: format!("the tool `{tool}` did not report the state in which it ended: {what}"),
        retryable: matches!(outcome, Outcome::Unavailable(_)),
        budget: match outcome {
            Outcome::OutOfBudget { which, .. } => Some(*which),
            _ => None,
        },
        diagnosis: None,
    }
}

impl Sessions {
    /// Answers the calls of a turn, including those that could not be read. `turn` counts from 0.
    pub(crate) async fn answer(
        &mut self,
        tool_calls: &[ToolCall],
        malformed: &[MalformedCall],
        turn: u32,
        limits: &ToolLimits,
        text: &TextModel,
    ) -> Result<Answers, TextError> {
        let mut answers: Vec<Option<Answer>> = Vec::new();
        answers.resize_with(tool_calls.len(), || None);
        let mut by_tool: Vec<Vec<Call<'_>>> = Vec::new();
        by_tool.resize_with(self.sessions.len(), Vec::new);
        let set = self.set.clone();
        for (place, call) in tool_calls.iter().enumerate() {
            let checked = match set.called(call, place, limits) {
                Ok((tool, function)) => check_arguments(function, &call.arguments).await.map(|()| tool),
                Err(what) => Err(what),
            };
            match checked {
                Ok(tool) => {
                    by_tool[tool].push(Call {
                        place,
                        call,
                        seed: derive(self.seed, self.calls, tool as u64, Purpose::Tool),
                    });
                }
                Err(what) => {
                    answers[place] = Some(Answer { result: result(&ToolReport::called_wrongly(what)), seconds: 0.0 });
                }
            }
            self.calls += 1;
        }
        // Tools work side by side.
        let working = self.sessions.iter_mut().zip(by_tool).map(async |(session, calls)| match session {
            // The calls of a component share its state, so they come one after the other.
            RunSession::Component(session) => {
                let mut answered = Vec::with_capacity(calls.len());
                for Call { place, call, seed } in calls {
                    let call = async { result(&session.call(&call.name, &call.arguments, seed).await) };
                    answered.push((place, timed(call).await));
                }
                answered
            }
            RunSession::Mcp(server, waits) => {
                let calls = calls.into_iter().map(async |Call { place, call, .. }| {
                    (place, timed(server.call(&call.name, &call.arguments, waits)).await)
                });
                join_all(calls).await
            }
        });
        for (place, answer) in join_all(working).await.into_iter().flatten() {
            answers[place] = Some(answer);
        }
        let (mut messages, mut uses, mut fault) = (Vec::new(), Vec::new(), None);
        for (call, answer) in tool_calls.iter().zip(answers) {
            let Some(Answer { result, seconds }) = answer else { continue };
            fault = fault.or_else(|| limits.on_failure.fault(&call.name, &result));
            let CallResult { text: answer, ending, .. } = result;
            let answer = tool_output::cut(answer, limits.max_output_tokens, limits.left_out, &text.tokenizer)?;
            let (id, name) = (Some(call.id.clone()), Some(call.name.clone()));
            let is_known = self.set.has(&call.name);
            uses.push(ToolUse { name: name.clone().filter(|_| is_known), ending, turn, seconds });
            messages.push(Message { tool_call_id: id, name, ..Message::new(Role::Tool, answer) });
        }
        for (number, MalformedCall { why, .. }) in malformed.iter().enumerate() {
            let report = ToolReport::called_wrongly(format!("the call cannot be read: {why}"));
            messages.push(identified_answer(Message::new(Role::Tool, report.text()), turn as usize, number));
            uses.push(ToolUse { name: None, ending: ToolEnding::CalledWrongly, turn, seconds: 0.0 });
        }
        Ok(Answers { messages, uses, fault })
    }

    /// Ends the sessions, and gives the states in which they ended, by the names of the tools.
    ///
    /// # Errors
    /// Why the sample is no good, if a tool failed.
    pub(crate) async fn finish(&mut self) -> Result<ToolStates, RolloutFault> {
        let (seed, calls) = (self.seed, self.calls);
        let named = (0..).zip(self.set.tools.iter().zip(&mut self.sessions));
        let finished = named.filter_map(|(number, (tool, session))| match session {
            RunSession::Component(session) => Some(async move {
                let state = session.finish(derive(seed, calls, number, Purpose::Tool)).await;
                (tool.name(), state)
            }),
            RunSession::Mcp(..) => None,
        });
        let mut states = ToolStates::new();
        for (name, state) in join_all(finished).await {
            states.extend(state.map_err(|outcome| unfinished(name, &outcome))?.map(|state| (name.to_owned(), state)));
        }
        Ok(states)
    }
}
