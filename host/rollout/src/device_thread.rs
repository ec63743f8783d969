//! The thread that owns a device: its model, and the engine that decodes for everyone who asks.

use crate::completion::{Event, Piece};
use crate::device_turns::DeviceTurns;
use crate::error::RolloutError;
use crate::observer::Observer;
use crate::stop_reader::StopReader;
use gavel_data::FinishReason;
use gavel_policy::{Drawn, Engine, EngineConfig, EngineStep, Finished, Model, PolicyError, Request};
use gavel_text::TextError;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// The thread's handle. The thread ends with it: nothing of libtorch runs while the process exits.
pub(crate) struct DeviceThread {
    orders: Option<Sender<Order>>,
    handle: Option<JoinHandle<()>>,
}

/// An order to the thread.
pub(crate) enum Order {
    /// Draw these responses; `accepted` receives whether all of them can be drawn.
    Generate { queued: Vec<Queued>, accepted: oneshot::Sender<Result<(), PolicyError>> },
    /// The weights are those of this version from now on.
    SetVersion(u64),
    /// A conversation has no further turn.
    Forget(u64),
    /// Do this between two steps.
    Run(Box<dyn FnOnce(&Model) + Send>),
}

/// A request to submit.
pub(crate) struct Queued {
    pub(crate) request: Request,
    /// Absent if the text is not needed before the response is whole.
    pub(crate) reader: Option<StopReader>,
    pub(crate) reply: Reply,
}

/// Who waits for a response.
pub(crate) enum Reply {
    Whole(oneshot::Sender<Result<Finished, RolloutError>>),
    Stream(UnboundedSender<Event>),
}

impl DeviceThread {
    /// Starts it; also gives the longest sequence that there is room for, in tokens.
    pub(crate) fn start(
        model: Model,
        config: EngineConfig,
        observer: Arc<dyn Observer>,
        turns: Arc<DeviceTurns>,
    ) -> Result<(Self, usize), RolloutError> {
        let engine = Engine::new(&model, config.clone())?;
        let longest = engine.longest();
        let (orders, received) = mpsc::channel();
        let mut owner = Owner { model, config, engine, active: HashMap::new(), observer };
        let thread = std::thread::Builder::new().name("gavel-device".into());
        let handle = thread.spawn(move || owner.run(&received, &turns)).map_err(RolloutError::Thread)?;
        Ok((Self { orders: Some(orders), handle: Some(handle) }, longest))
    }

    pub(crate) fn send(&self, order: Order) -> Result<(), RolloutError> {
        let orders = self.orders.as_ref().ok_or(RolloutError::Stopped)?;
        orders.send(order).map_err(|_| RolloutError::Stopped)
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.handle.as_ref().is_some_and(|handle| !handle.is_finished())
    }
}

impl Drop for DeviceThread {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(handle) = self.handle.take() {
            // A panic was printed when it came.
            let _ = handle.join();
        }
    }
}

/// A response under way.
struct Active {
    reader: Option<StopReader>,
    reply: Reply,
    requested: Instant,
    has_begun: bool,
}

impl Active {
    /// Reads the next token. Returns whether it completes a stop text.
    fn push(&mut self, drawn: Drawn) -> Result<bool, TextError> {
        let Some(reader) = &mut self.reader else { return Ok(false) };
        let certain = reader.push(drawn.token)?;
        if let Reply::Stream(events) = &self.reply {
            let token = (!reader.is_stop(drawn.token)).then_some(drawn);
            // A receiver that is gone is noticed before the next step.
            let _ = events.send(Event::Piece(Piece { text: certain.text, token }));
        }
        Ok(certain.stopped)
    }

    /// Reads the text that was held back until the end of a response. Returns whether it completes a stop text.
    fn finish(&mut self) -> Result<(String, bool), TextError> {
        let Some(reader) = &mut self.reader else { return Ok((String::new(), false)) };
        reader.finish().map(|certain| (certain.text, certain.stopped))
    }

    fn is_abandoned(&self) -> bool {
        match &self.reply {
            Reply::Whole(reply) => reply.is_closed(),
            Reply::Stream(events) => events.is_closed(),
        }
    }

    /// Sends the end of the response. Whoever asked may have stopped waiting.
    fn complete(self, finished: Finished, rest: String) {
        match self.reply {
            Reply::Whole(reply) => drop(reply.send(Ok(finished))),
            Reply::Stream(events) => drop(events.send(Event::End { rest, finish_reason: finished.finish_reason })),
        }
    }

    fn fail(self, error: RolloutError) {
        match self.reply {
            Reply::Whole(reply) => drop(reply.send(Err(error))),
            Reply::Stream(events) => drop(events.send(Event::Failed(error))),
        }
    }
}

/// What the thread owns.
struct Owner {
    model: Model,
    config: EngineConfig,
    engine: Engine,
    active: HashMap<u64, Active>,
    observer: Arc<dyn Observer>,
}

impl Owner {
    /// Works until the last handle is gone. While there is nothing to do, reward models have the device.
    fn run(&mut self, orders: &Receiver<Order>, turns: &DeviceTurns) {
        let mut turn = None;
        loop {
            if self.engine.is_idle() {
                drop(turn.take());
                match orders.recv() {
                    Ok(order) => {
                        turn = Some(turns.take());
                        self.take(order);
                    }
                    Err(_) => return,
                }
            }
            while let Ok(order) = orders.try_recv() {
                self.take(order);
            }
            let stepped = self.step();
            if let Err(error) = stepped
                && !self.recover(error)
            {
                return;
            }
            self.report_load();
        }
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Generate { queued, accepted } => {
                let submitted = self.submit(queued);
                // Whoever does not wait for the answer has dropped the responses too.
                let _ = accepted.send(submitted);
            }
            Order::SetVersion(version) => self.engine.set_version(version),
            Order::Forget(conversation) => self.engine.forget(conversation),
            Order::Run(work) => work(&self.model),
        }
    }

    /// Submits all of them, or none.
    fn submit(&mut self, queued: Vec<Queued>) -> Result<(), PolicyError> {
        let mut submitted = Vec::new();
        for Queued { request, reader, reply } in queued {
            let (id, prompt) = (request.id, request.prompt.len());
            if let Err(error) = self.engine.submit(request) {
                for id in submitted {
                    self.active.remove(&id);
                    self.engine.cancel(id)?;
                    self.observer.cancelled();
                }
                return Err(error);
            }
            submitted.push(id);
            self.observer.accepted(prompt);
            self.active.insert(id, Active { reader, reply, requested: Instant::now(), has_begun: false });
        }
        Ok(())
    }

    /// Draws one token of every response, and sends those that end with theirs.
    fn step(&mut self) -> Result<(), PolicyError> {
        self.drop_abandoned()?;
        let EngineStep { drawn, mut finished } = self.engine.step(&self.model)?;
        self.observer.stepped(drawn.len(), self.engine.preemptions());
        for drawn in drawn {
            let id = drawn.id;
            let Some(active) = self.active.get_mut(&id) else { continue };
            if !std::mem::replace(&mut active.has_begun, true) {
                self.observer.first_token(active.requested.elapsed());
            }
            match active.push(drawn) {
                Ok(false) => {}
                Ok(true) => match finished.iter_mut().find(|finished| finished.id == id) {
                    // The last token that it may have completes a stop text.
                    Some(finished) => finished.finish_reason = FinishReason::Stop,
                    None => finished.extend(self.engine.finish(id)?),
                },
                Err(error) => self.fail_one(id, error.into())?,
            }
        }
        // First, so that whoever has the last response sees that nothing is left to do.
        self.report_load();
        finished.into_iter().for_each(|finished| self.complete(finished));
        Ok(())
    }

    fn complete(&mut self, mut finished: Finished) {
        let Some(mut active) = self.active.remove(&finished.id) else { return };
        let rest = match active.finish() {
            Ok((rest, stopped)) => {
                if stopped {
                    finished.finish_reason = FinishReason::Stop;
                }
                rest
            }
            Err(error) => return self.report_failure(active, error.into()),
        };
        self.observer.completed(finished.finish_reason, active.requested.elapsed());
        active.complete(finished, rest);
    }

    fn report_load(&self) {
        self.observer.load(self.engine.active(), self.engine.waiting());
    }

    /// Cancels the requests whose responses nobody waits for.
    fn drop_abandoned(&mut self) -> Result<(), PolicyError> {
        for (id, _) in self.active.extract_if(|_, active| active.is_abandoned()) {
            self.engine.cancel(id)?;
            self.observer.cancelled();
        }
        Ok(())
    }

    /// Ends the responses that a failed step affects. Returns whether the thread can continue.
    fn recover(&mut self, error: PolicyError) -> bool {
        let failed = match error {
            PolicyError::NonFinite { request, .. } => self.fail_one(request, RolloutError::Step(Arc::new(error))),
            other => Err(other),
        };
        match failed {
            Ok(()) => true,
            Err(error) => self.fail_all(error),
        }
    }

    fn fail_one(&mut self, id: u64, error: RolloutError) -> Result<(), PolicyError> {
        if let Some(active) = self.active.remove(&id) {
            self.report_failure(active, error);
        }
        self.engine.cancel(id).map(drop)
    }

    /// Fails every response and makes a new engine, since the old one must not be used again. Returns whether there is
    /// a new one.
    fn fail_all(&mut self, error: PolicyError) -> bool {
        let error = Arc::new(error);
        let active = std::mem::take(&mut self.active);
        active.into_values().for_each(|active| self.report_failure(active, RolloutError::Step(error.clone())));
        match Engine::new(&self.model, self.config.clone()) {
            Ok(engine) => {
                self.engine = engine;
                true
            }
            Err(error) => {
                tracing::error!("the model is stopped: {error}");
                false
            }
        }
    }

    fn report_failure(&self, active: Active, error: RolloutError) {
        self.observer.failed(&error);
        active.fail(error);
    }
}
