//! The calls of one trajectory to one tool.

use super::component::Tool;
use super::report::ToolReport;
use crate::bindings::gavel::plugin::types::Failure;
use crate::call::{
    CallReport, CallSetup, GuestResult, Loaded, Question, ask, beside, kept_store, make_ready, used_fuel, verdict,
};
use crate::engine::SessionRooms;
use crate::engine::{Exports, FreshStore, ReadyInstance};
use crate::imports::{State, Traces};
use crate::outside::OutsideWaits;
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_data::{Blame, Json, Outcome};
use std::sync::Arc;
use wasmtime::component::ResourceAny;
use wasmtime::{Result, Store};

/// A tool in one trajectory. Its state begins with the first call. After a call that a budget or a fault ended, the
/// next call begins with a new state.
pub struct ToolSession {
    tool: Arc<Loaded>,
    settings: String,
    waits: OutsideWaits,
    calls: u64,
    open: Option<OpenSession>,
    /// The last field, so that it outlives the instance.
    rooms: Arc<SessionRooms>,
}

/// An instance that a trajectory keeps, and its session there.
struct OpenSession {
    instance: ReadyInstance,
    session: ResourceAny,
}

/// The result of a call in a kept instance.
struct Called {
    answer: std::result::Result<String, Outcome>,
    /// Absent if the session could not be opened.
    open: Option<OpenSession>,
    _rooms: Arc<SessionRooms>,
}

impl Tool {
    /// A session for a trajectory that has these rooms. `settings` is a JSON object that the policy does not see;
    /// `waits` shows what the calls wait for outside.
    pub fn session(&self, rooms: Arc<SessionRooms>, settings: String, waits: OutsideWaits) -> ToolSession {
        ToolSession { tool: self.loaded.clone(), settings, waits, calls: 0, open: None, rooms }
    }
}

impl ToolSession {
    /// Calls the function `name` with `arguments`, a JSON object. The random numbers of the call follow from `seed`.
    pub fn call<'a>(&'a mut self, name: &'a str, arguments: &'a str, seed: u64) -> BoxFuture<'a, ToolReport> {
        self.report(name, arguments, seed).boxed()
    }

    async fn report(&mut self, name: &str, arguments: &str, seed: u64) -> ToolReport {
        let input = format!("call {} {name} {arguments}", self.calls);
        self.calls += 1;
        let setup = CallSetup { input: &input, seed, waits: self.waits.clone() };
        let call = Call { settings: self.settings.clone(), name: name.into(), arguments: arguments.into() };
        let CallReport { answer, details } = match self.tool.info.pure {
            true => ask(&self.tool, call, &setup).await,
            false => self.call_kept(call, &setup).await,
        };
        let granted = &self.tool.granted;
        let answer = answer.and_then(|answer| answer);
        ToolReport {
            answer: match answer {
                Ok(text) => Ok(granted.redact(text)),
                Err(outcome) => Err(granted.loggable(outcome, &details.refusals)),
            },
            usage: details.usage,
            diagnosis: details.diagnosis,
        }
    }

    /// Ends the session, and gives the state in which it ended; `None` if the tool keeps or reports none, or was not
    /// called. The random numbers of the call follow from `seed`.
    ///
    /// # Errors
    /// The tool failed to report it.
    pub fn finish(&mut self, seed: u64) -> BoxFuture<'_, std::result::Result<Option<Json>, Outcome>> {
        async move {
            let Some(open) = self.open.take().filter(|_| self.tool.linked.has_finish()) else { return Ok(None) };
            let setup = CallSetup { input: "finish", seed, waits: self.waits.clone() };
            let CallReport { answer, details } = self.finish_open(open, &setup).await;
            let granted = &self.tool.granted;
            let answer = answer.and_then(|answer| answer).and_then(|state| beside::state(granted, state));
            answer.map_err(|outcome| granted.loggable(outcome, &details.refusals))
        }
        .boxed()
    }

    async fn finish_open(
        &mut self,
        mut open: OpenSession,
        setup: &CallSetup<'_>,
    ) -> CallReport<std::result::Result<Option<String>, Outcome>> {
        let tool = &self.tool;
        let traces = match open.begin_again(tool, setup.seed, setup.traces(tool)) {
            Ok(traces) => traces,
            Err(error) => return CallReport::lost(&format!("no fuel for a call: {error:#}")),
        };
        let work = finished(tool.clone(), open, self.rooms.clone());
        let (end, time) = tool.shared.lanes.run(work, tool.limits, traces.pauses.clone(), &tool.history).await;
        CallReport::new(tool, end, time, &traces)
    }

    async fn call_kept(
        &mut self,
        call: Call,
        setup: &CallSetup<'_>,
    ) -> CallReport<std::result::Result<String, Outcome>> {
        let tool = &self.tool;
        let (limits, rooms, seed) = (tool.limits, self.rooms.clone(), setup.seed);
        let fresh = setup.traces(tool);
        let (traces, (end, time)) = match self.open.take() {
            Some(mut open) => {
                let traces = match open.begin_again(tool, seed, fresh) {
                    Ok(traces) => traces,
                    Err(error) => return CallReport::lost(&format!("no fuel for a call: {error:#}")),
                };
                let work = continued(tool.clone(), open, call, rooms);
                (traces.clone(), tool.shared.lanes.run(work, limits, traces.pauses.clone(), &tool.history).await)
            }
            None => {
                let store = match kept_store(tool, seed, &fresh) {
                    Ok(store) => store,
                    Err(error) => return CallReport::lost(&format!("no store for a session: {error:#}")),
                };
                let work = started(tool.clone(), FreshStore { store, permit: None }, call, seed, rooms);
                (fresh.clone(), tool.shared.lanes.run(work, limits, fresh.pauses.clone(), &tool.history).await)
            }
        };
        let CallReport { answer, details } = CallReport::new(&self.tool, end, time, &traces);
        let answer = answer.map(|called| {
            self.open = called.open;
            called.answer
        });
        CallReport { answer, details }
    }
}

impl OpenSession {
    /// Begins a further call, which has its own budgets.
    fn begin_again(&mut self, tool: &Loaded, seed: u64, fresh: Traces) -> Result<Traces> {
        let store = &mut self.instance.store;
        let traces = store.data_mut().begin_again(&tool.granted, seed, fresh);
        store.set_epoch_deadline(1);
        tool.limits.fuel.map_or(Ok(()), |fuel| store.set_fuel(fuel))?;
        Ok(traces)
    }
}

/// The end of an open session.
async fn finished(
    tool: Arc<Loaded>,
    mut open: OpenSession,
    _rooms: Arc<SessionRooms>,
) -> GuestResult<std::result::Result<Option<String>, Outcome>> {
    let OpenSession { instance, session } = &mut open;
    let answer = instance.exports.finish(&mut instance.store, *session).await;
    let fuel = used_fuel(&tool, &instance.store);
    GuestResult { answer: answer.map(|answer| answer.map_err(verdict::failed)), fuel }
}

/// The first call of a session.
async fn started(
    tool: Arc<Loaded>,
    mut fresh: FreshStore,
    call: Call,
    seed: u64,
    rooms: Arc<SessionRooms>,
) -> GuestResult<Called> {
    let exports = match make_ready(&tool, &mut fresh.store, seed).await {
        Ok(Ok(exports)) => exports,
        Ok(Err(outcome)) => {
            let answer = Ok(Called { answer: Err(outcome), open: None, _rooms: rooms });
            return GuestResult { answer, fuel: used_fuel(&tool, &fresh.store) };
        }
        Err(error) => return GuestResult { answer: Err(error), fuel: used_fuel(&tool, &fresh.store) },
    };
    let mut instance = fresh.ready(exports, tool.limits.fuel.is_some());
    match open(&instance.exports, &mut instance.store, &call.settings).await {
        Ok(Ok(session)) => continued(tool, OpenSession { instance, session }, call, rooms).await,
        Ok(Err(outcome)) => {
            let answer = Ok(Called { answer: Err(outcome), open: None, _rooms: rooms });
            GuestResult { answer, fuel: used_fuel(&tool, &instance.store) }
        }
        Err(error) => GuestResult { answer: Err(error), fuel: used_fuel(&tool, &instance.store) },
    }
}

/// A further call of an open session.
async fn continued(
    tool: Arc<Loaded>,
    mut open: OpenSession,
    call: Call,
    rooms: Arc<SessionRooms>,
) -> GuestResult<Called> {
    let OpenSession { instance, session } = &mut open;
    let answer = call.ask_session(&instance.exports, &mut instance.store, *session).await;
    let fuel = used_fuel(&tool, &open.instance.store);
    GuestResult { answer: answer.map(|answer| Called { answer, open: Some(open), _rooms: rooms }), fuel }
}

/// Opens a session. The outer error is a trap.
async fn open(
    exports: &Exports,
    store: &mut Store<State>,
    settings: &str,
) -> Result<std::result::Result<ResourceAny, Outcome>> {
    let opened = exports.open(store, settings).await?;
    // The refused settings are the row's, not the policy's.
    Ok(opened.map_err(|failure| match failure {
        Failure::InvalidInput(what) => {
            verdict::failed(Failure::Internal(format!("the settings of this row are refused: {what}")))
        }
        failure => verdict::failed(failure),
    }))
}

/// A call that opens its own session, if no session is kept.
#[derive(Clone)]
struct Call {
    settings: String,
    name: String,
    arguments: String,
}

impl Call {
    async fn ask_session(
        &self,
        exports: &Exports,
        store: &mut Store<State>,
        session: ResourceAny,
    ) -> Result<std::result::Result<String, Outcome>> {
        let answer = exports.call(store, session, &self.name, &self.arguments).await?;
        Ok(answer.map_err(verdict::failed))
    }
}

impl Question for Call {
    type Answer = std::result::Result<String, Outcome>;

    fn input(&self) -> String {
        format!("{} {}", self.name, self.arguments)
    }

    fn handles(&self) -> usize {
        0
    }

    async fn ask(self, _: Arc<Loaded>, exports: &Exports, store: &mut Store<State>) -> Result<Self::Answer> {
        let session = match open(exports, store, &self.settings).await? {
            Ok(session) => session,
            Err(outcome) => return Ok(Err(outcome)),
        };
        let answer = self.ask_session(exports, store, session).await?;
        session.resource_drop_async(store).await?;
        Ok(answer)
    }

    /// A refusal of the policy's arguments is an answer too.
    fn is_sound(answer: &Self::Answer) -> bool {
        matches!(answer, Ok(_) | Err(Outcome::Fault { whose: Blame::Input, .. }))
    }
}
