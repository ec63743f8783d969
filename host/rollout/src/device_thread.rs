//! The thread that owns a device: its model, and the engine that decodes for everyone who asks.

use crate::completion::{Event, Piece};
use crate::device_turns::DeviceTurns;
use crate::error::RolloutError;
use crate::observer::Observer;
use crate::stop_reader::StopReader;
use crate::thread_end::{Probe, ThreadEnd, ThreadWatch, use_here};
use gavel_data::FinishReason;
use gavel_policy::{DrawnToken, Engine, EngineConfig, EngineStep, Finished, Model, PolicyError, Request};
use gavel_text::TextError;
use std::collections::{HashMap, VecDeque};
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
    watch: ThreadWatch,
}

/// An order to the thread.
pub(crate) enum Order {
    /// Draw these responses; `accepted` receives whether all of them can be drawn.
    Generate { queued: Vec<Queued>, turn: QueueTurn, accepted: oneshot::Sender<Result<(), PolicyError>> },
    /// The weights have this version from now on.
    SetVersion(u64),
    /// A conversation has no further turn.
    Forget(u64),
    /// Draw nothing; `paused` learns when nothing is drawn any more.
    Pause { under_way: UnderWay, paused: oneshot::Sender<()> },
    /// Draw again.
    Resume,
    /// Do this between two steps; `after` says what became of the weights.
    Run { cache: CacheDuring, after: Weights, work: Work },
}

/// Other work with the model, or why it cannot be done.
pub(crate) type Work = Box<dyn FnOnce(Result<&Model, RolloutError>) + Send>;

/// What becomes of keys and values while other work has the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CacheDuring {
    /// They stay.
    #[default]
    Kept,
    /// Their memory is freed. Responses under way are computed again afterwards.
    Released,
}

/// What becomes of the weights in other work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Weights {
    /// They stay.
    #[default]
    Unchanged,
    /// They change within their version, as in each update of a step but the last.
    Changed,
    /// They become the weights of this version.
    OfVersion(u64),
}

/// What becomes of responses under way when nothing may be drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnderWay {
    /// They wait, and go on afterwards.
    Kept,
    /// They are drawn to their ends first.
    Finished,
    /// They end with the tokens that they have; their finish reason is `Length`.
    Ended,
}

/// When requests have their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueTurn {
    /// After those that wait.
    Last,
    /// Before those that wait.
    First,
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
    /// Starts it; also gives the longest sequence that there is room for, in tokens. After an error, `probe` finds
    /// whether the device still works.
    pub(crate) fn start(
        model: Model,
        config: EngineConfig,
        observer: Arc<dyn Observer>,
        turns: Arc<DeviceTurns>,
        probe: Probe,
    ) -> Result<(Self, usize), RolloutError> {
        let engine = Engine::new(&model, config.clone())?;
        let longest = engine.longest();
        let (orders, received) = mpsc::channel();
        let (end, watch) = ThreadEnd::new(probe);
        let (active, begun, unbegun, pausing) = Default::default();
        let (version, is_paused, refused) = (0, false, None);
        let mut owner = Owner {
            model,
            config,
            engine,
            version,
            active,
            begun,
            unbegun,
            pausing,
            is_paused,
            observer,
            refused,
            end,
        };
        let thread = std::thread::Builder::new().name("gavel-device".into());
        let work = move || {
            use_here(owner.model.device());
            owner.run(&received, &turns);
            // Before the owner, so that nobody who sees the end can still send an order.
            drop(received);
        };
        let handle = thread.spawn(work).map_err(RolloutError::Thread)?;
        Ok((Self { orders: Some(orders), handle: Some(handle), watch }, longest))
    }

    pub(crate) fn send(&self, order: Order) -> Result<(), RolloutError> {
        let orders = self.orders.as_ref().ok_or(RolloutError::Stopped)?;
        orders.send(order).map_err(|_| self.stopped())
    }

    pub(crate) fn is_alive(&self) -> bool {
        self.watch.is_alive()
    }

    /// The error that a request gets after the thread's end.
    pub(crate) fn stopped(&self) -> RolloutError {
        self.watch.cause().into()
    }

    /// Waits for the end of the thread, and gives its reason.
    pub(crate) async fn ended(&self) -> RolloutError {
        self.watch.ended().await.into()
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
    /// The tokens that were read.
    tokens: usize,
    /// Whether a stop text was found.
    is_stopped: bool,
}

impl Active {
    fn has_begun(&self) -> bool {
        self.tokens > 0
    }

    /// Reads the next token. Returns whether it completes a stop text.
    fn push(&mut self, drawn: DrawnToken) -> Result<bool, TextError> {
        self.tokens += 1;
        let Some(reader) = &mut self.reader else { return Ok(false) };
        let certain = reader.push(drawn.token)?;
        if let Reply::Stream(events) = &self.reply {
            let token = (!reader.is_stop(drawn.token)).then_some(drawn);
            // A receiver that is gone is noticed before the next step.
            let _ = events.send(Event::Piece(Piece { text: certain.text, token }));
        }
        self.is_stopped = certain.stopped;
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

    /// Sends the end of the response. The caller may have stopped waiting.
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
    /// The version of the weights, also for an engine that replaces one that failed.
    version: u64,
    active: HashMap<u64, Active>,
    /// The responses that got a token in the last step.
    begun: Vec<u64>,
    /// The responses that had none when they were last looked at, those that wait longest for the next look first.
    unbegun: VecDeque<u64>,
    /// Who waits until no response is under way, for a pause.
    pausing: Vec<oneshot::Sender<()>>,
    /// Whether nothing may be drawn.
    is_paused: bool,
    observer: Arc<dyn Observer>,
    /// Work that waits for the reason why it cannot be done.
    refused: Option<Work>,
    end: ThreadEnd,
}

impl Owner {
    /// Works until the last handle is gone. While there is nothing to do, reward models have the device.
    fn run(&mut self, orders: &Receiver<Order>, turns: &DeviceTurns) {
        let mut turn = None;
        loop {
            self.pause_if_idle();
            if self.engine.is_idle() || self.is_paused {
                drop(turn.take());
                match orders.recv() {
                    Ok(order) => {
                        turn = Some(turns.take());
                        if let Err(error) = self.take(order)
                            && !self.recover(error)
                        {
                            return;
                        }
                    }
                    Err(_) => return,
                }
            }
            if let Err(error) = self.take_all(orders).and_then(|()| self.step())
                && !self.recover(error)
            {
                return;
            }
            self.report_load();
        }
    }

    fn take_all(&mut self, orders: &Receiver<Order>) -> Result<(), PolicyError> {
        orders.try_iter().try_for_each(|order| self.take(order))
    }

    fn take(&mut self, order: Order) -> Result<(), PolicyError> {
        match order {
            Order::Generate { queued, turn, accepted } => {
                let submitted = self.submit(queued, turn);
                // A caller that does not wait for the answer has dropped the responses too.
                let _ = accepted.send(submitted);
            }
            Order::SetVersion(version) => self.set_version(version),
            Order::Forget(conversation) => self.engine.forget(conversation),
            Order::Pause { under_way, paused } => {
                match under_way {
                    UnderWay::Finished => {
                        // What waits in another pause goes on to its end.
                        self.is_paused = false;
                        self.pausing.push(paused);
                        return Ok(());
                    }
                    UnderWay::Ended => self.end_all()?,
                    UnderWay::Kept => {}
                }
                self.is_paused = true;
                // The caller may have stopped waiting.
                let _ = paused.send(());
            }
            Order::Resume => {
                self.is_paused = false;
                self.pausing.clear();
            }
            Order::Run { cache, after, work } => {
                if cache == CacheDuring::Released
                    && let Err(error) = self.engine.release_cache()
                {
                    self.refused = Some(work);
                    return Err(error);
                }
                if after != Weights::Unchanged {
                    self.engine.release_quantized();
                }
                work(Ok(&self.model));
                // In the same order, so that no token is drawn in between.
                match after {
                    Weights::Unchanged => {}
                    Weights::Changed => self.engine.weights_changed(),
                    Weights::OfVersion(version) => self.set_version(version),
                }
            }
        }
        Ok(())
    }

    fn set_version(&mut self, version: u64) {
        self.version = version;
        self.engine.set_version(version);
    }

    /// Submits all of them, or none.
    fn submit(&mut self, queued: Vec<Queued>, turn: QueueTurn) -> Result<(), PolicyError> {
        let mut submitted = Vec::new();
        for Queued { request, reader, reply } in queued {
            let (id, prompt) = (request.id, request.prompt.len());
            let accepted = match turn {
                QueueTurn::Last => self.engine.submit(request),
                QueueTurn::First => self.engine.submit_first(request),
            };
            if let Err(error) = accepted {
                for id in submitted {
                    self.active.remove(&id);
                    self.engine.cancel(id)?;
                    self.observer.cancelled();
                }
                return Err(error);
            }
            submitted.push(id);
            self.observer.accepted(prompt);
            self.active.insert(id, Active { reader, reply, requested: Instant::now(), tokens: 0, is_stopped: false });
            self.unbegun.push_back(id);
        }
        Ok(())
    }

    /// Begins a pause that waited until no response is under way.
    fn pause_if_idle(&mut self) {
        if self.engine.is_idle() && !self.pausing.is_empty() {
            self.is_paused = true;
            for paused in self.pausing.drain(..) {
                // The caller may have stopped waiting.
                let _ = paused.send(());
            }
        }
    }

    /// Ends all responses with the tokens that they have.
    fn end_all(&mut self) -> Result<(), PolicyError> {
        let mut under_way: Vec<u64> = self.active.keys().copied().collect();
        under_way.sort_unstable();
        for id in under_way {
            if let Some(finished) = self.engine.finish(id)? {
                self.complete(Finished { finish_reason: FinishReason::Length, ..finished });
            }
        }
        Ok(())
    }

    /// Draws one token of every response, or more where tokens are proposed, and sends those that end with theirs.
    fn step(&mut self) -> Result<(), PolicyError> {
        self.drop_abandoned()?;
        if self.is_paused {
            return Ok(());
        }
        let EngineStep { drawn, mut finished } = self.engine.step(&self.model)?;
        self.observer.stepped(drawn.len(), self.engine.preemptions());
        self.begun.extend(drawn.iter().map(|drawn| drawn.id));
        for drawn in drawn {
            let id = drawn.id;
            // Nothing comes after a stop text, even if it was drawn.
            let Some(active) = self.active.get_mut(&id).filter(|active| !active.is_stopped) else { continue };
            if !active.has_begun() {
                self.observer.first_token(active.requested.elapsed());
            }
            match active.push(drawn) {
                Ok(false) => {}
                Ok(true) => match finished.iter_mut().find(|finished| finished.id == id) {
                    // One of the last tokens that it may have completes a stop text.
                    Some(finished) => finished.stop_after(active.tokens),
                    None => finished.extend(self.engine.finish_after(id, active.tokens)?),
                },
                Err(error) => self.fail_one(id, error.into())?,
            }
        }
        // First, so that the caller who has the last response sees that nothing is left to do.
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

    /// Cancels requests whose responses nobody waits for: those that draw, and of those that wait as many as a step may
    /// draw. So a step takes no longer because more requests wait.
    fn drop_abandoned(&mut self) -> Result<(), PolicyError> {
        let most = self.unbegun.len().min(self.config.max_batch);
        let waiting: Vec<u64> = self.unbegun.drain(..most).collect();
        let waits = |id: &u64| self.active.get(id).is_some_and(|active| !active.has_begun());
        let waiting: Vec<u64> = waiting.into_iter().filter(waits).collect();
        for id in std::mem::take(&mut self.begun).into_iter().chain(waiting.iter().copied()) {
            if self.active.get(&id).is_some_and(Active::is_abandoned) {
                self.active.remove(&id);
                self.engine.cancel(id)?;
                self.observer.cancelled();
            }
        }
        self.unbegun.extend(waiting);
        Ok(())
    }

    /// Ends the responses that a failed step affects. Returns whether the thread can continue.
    fn recover(&mut self, error: PolicyError) -> bool {
        let failed = match error {
            PolicyError::NonFinite { request, .. } => self.fail_one(request, RolloutError::Step(Arc::new(error))),
            PolicyError::Constraint { request, .. } => self.end_one(request, error),
            other => Err(other),
        };
        match failed {
            Ok(()) => true,
            Err(error) => self.fail_all(error),
        }
    }

    /// Ends a response that cannot go on. A caller that waits for the whole response gets what there is of it; one that
    /// reads it as it comes gets the error.
    fn end_one(&mut self, id: u64, error: PolicyError) -> Result<(), PolicyError> {
        if !self.active.get(&id).is_some_and(|active| matches!(active.reply, Reply::Whole(_))) {
            return self.fail_one(id, RolloutError::Step(Arc::new(error)));
        }
        tracing::warn!("a response ends early: {error}");
        if let Some(finished) = self.engine.finish(id)? {
            self.complete(Finished { finish_reason: FinishReason::Error, ..finished });
        }
        Ok(())
    }

    fn fail_one(&mut self, id: u64, error: RolloutError) -> Result<(), PolicyError> {
        if let Some(active) = self.active.remove(&id) {
            self.report_failure(active, error);
        }
        self.engine.cancel(id).map(drop)
    }

    /// Fails every response and makes a new engine, since the old one must not be used again. Returns whether there is
    /// a new one: not on a device that has failed.
    fn fail_all(&mut self, error: PolicyError) -> bool {
        let error = Arc::new(error);
        let active = std::mem::take(&mut self.active);
        let refused = self.refused.take();
        let during = if refused.is_some() { "keys and values were freed" } else { "responses were drawn" };
        let failure = self.end.failure(&error, during, self.model.device());
        let reason = || failure.clone().map_or_else(|| RolloutError::Step(error.clone()), RolloutError::Device);
        if let Some(work) = refused {
            work(Err(reason()));
        }
        for active in active.into_values() {
            self.report_failure(active, reason());
        }
        if failure.is_some() {
            return false;
        }
        match Engine::new(&self.model, self.config.clone()) {
            Ok(engine) => {
                self.engine = engine;
                self.engine.set_version(self.version);
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

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_policy::{Device, ModelConfig, Sampling, Tensor, device};
    use tokio::runtime::Runtime;

    fn start(probe: Probe) -> DeviceThread {
        let sizes = r#"{"vocab_size":50,"hidden_size":16,"intermediate_size":16,"num_hidden_layers":2,"num_attention_heads":2}"#;
        let config: ModelConfig = serde_json::from_str(sizes).unwrap();
        let model = Model::random(config, 3, Device::Cpu).unwrap();
        DeviceThread::start(model, EngineConfig::default(), Arc::new(()), Arc::default(), probe).unwrap().0
    }

    /// Replaces the weights of the last norm by `count` ones.
    fn set_norm(thread: &DeviceThread, count: i64) {
        let work = move |model: Result<&Model, RolloutError>| {
            let (_, mut norm) =
                model.unwrap().parameters().into_iter().find(|(name, _)| name == "model.norm.weight").unwrap();
            norm.set_data(&Tensor::ones([count], (norm.kind(), norm.device())));
        };
        thread.send(Order::Run { cache: CacheDuring::Kept, after: Weights::Changed, work: Box::new(work) }).unwrap();
    }

    /// The results of two requests that are submitted together.
    fn draw(runtime: &Runtime, thread: &DeviceThread) -> Vec<Result<Finished, RolloutError>> {
        let (mut queued, mut replies) = (Vec::new(), Vec::new());
        for id in 0..2 {
            let (reply, response) = oneshot::channel();
            let request = Request::new(id, vec![1, 2, 3], Sampling::new(4, Vec::new()), id);
            queued.push(Queued { request, reader: None, reply: Reply::Whole(reply) });
            replies.push(response);
        }
        let (accepted, _) = oneshot::channel();
        thread.send(Order::Generate { queued, turn: QueueTurn::Last, accepted }).unwrap();
        replies.into_iter().map(|reply| runtime.block_on(reply).unwrap()).collect()
    }

    #[test]
    fn a_device_that_works_after_an_error_continues() {
        let (runtime, thread) = (Runtime::new().unwrap(), start(device::probe));
        thread.send(Order::SetVersion(7)).unwrap();
        set_norm(&thread, 15);
        for failed in draw(&runtime, &thread) {
            assert!(matches!(failed, Err(RolloutError::Step(_))), "{failed:?}");
        }
        set_norm(&thread, 16);
        assert!(thread.is_alive());
        for drawn in draw(&runtime, &thread) {
            // The weights have the version that they had.
            assert_eq!(drawn.unwrap().versions, [7; 4]);
        }
    }

    fn pause(runtime: &Runtime, thread: &DeviceThread, under_way: UnderWay) {
        let (paused, waits) = oneshot::channel();
        thread.send(Order::Pause { under_way, paused }).unwrap();
        runtime.block_on(waits).unwrap();
    }

    /// Submits a request for `tokens` tokens, and waits until the thread has it.
    fn submit(runtime: &Runtime, thread: &DeviceThread, tokens: usize) -> Reception {
        let ((reply, response), (accepted, waits)) = (oneshot::channel(), oneshot::channel());
        let request = Request::new(tokens as u64, vec![1, 2, 3], Sampling::new(tokens, Vec::new()), 5);
        let queued = vec![Queued { request, reader: None, reply: Reply::Whole(reply) }];
        thread.send(Order::Generate { queued, turn: QueueTurn::Last, accepted }).unwrap();
        runtime.block_on(waits).unwrap().unwrap();
        response
    }

    type Reception = oneshot::Receiver<Result<Finished, RolloutError>>;

    /// Waits until the thread has done what it was asked before.
    fn settle(runtime: &Runtime, thread: &DeviceThread) {
        let (done, waits) = oneshot::channel();
        let work = move |_: Result<&Model, RolloutError>| {
            // The test waits.
            let _ = done.send(());
        };
        thread.send(Order::Run { cache: CacheDuring::Kept, after: Weights::Unchanged, work: Box::new(work) }).unwrap();
        runtime.block_on(waits).unwrap();
    }

    #[test]
    fn nothing_is_drawn_in_a_pause() {
        let (runtime, thread) = (Runtime::new().unwrap(), start(device::probe));
        pause(&runtime, &thread, UnderWay::Kept);
        let mut response = submit(&runtime, &thread, 4);
        settle(&runtime, &thread);
        assert!(response.try_recv().is_err());
        thread.send(Order::SetVersion(7)).unwrap();
        thread.send(Order::Resume).unwrap();
        assert_eq!(runtime.block_on(response).unwrap().unwrap().versions, [7; 4]);
    }

    #[test]
    fn a_pause_that_is_ended_before_it_begins_is_none() {
        let (runtime, thread) = (Runtime::new().unwrap(), start(device::probe));
        pause(&runtime, &thread, UnderWay::Kept);
        let response = submit(&runtime, &thread, 4);
        // One thread gives both orders before the other has drawn: the device waits for `held`.
        let (held, hold) = std::sync::mpsc::channel::<()>();
        let work = move |_: Result<&Model, RolloutError>| {
            // It ends when the test goes on.
            let _ = hold.recv();
        };
        thread.send(Order::Run { cache: CacheDuring::Kept, after: Weights::Unchanged, work: Box::new(work) }).unwrap();
        let (paused, waits) = oneshot::channel();
        thread.send(Order::Pause { under_way: UnderWay::Finished, paused }).unwrap();
        thread.send(Order::Resume).unwrap();
        drop(held);
        assert!(runtime.block_on(waits).is_err());
        assert_eq!(runtime.block_on(response).unwrap().unwrap().response.len(), 4);
        // Nor is it paused later.
        assert!(draw(&runtime, &thread).iter().all(Result::is_ok));
    }

    #[test]
    fn responses_under_way_end_before_a_pause_or_with_it() {
        let (runtime, thread) = (Runtime::new().unwrap(), start(device::probe));
        let response = submit(&runtime, &thread, 6);
        pause(&runtime, &thread, UnderWay::Finished);
        thread.send(Order::SetVersion(7)).unwrap();
        assert_eq!(runtime.block_on(response).unwrap().unwrap().versions, [0; 6]);
        thread.send(Order::Resume).unwrap();
        // It has no token yet.
        pause(&runtime, &thread, UnderWay::Kept);
        let response = submit(&runtime, &thread, 5);
        pause(&runtime, &thread, UnderWay::Finished);
        assert_eq!(runtime.block_on(response).unwrap().unwrap().response.len(), 5);
        pause(&runtime, &thread, UnderWay::Kept);
        let response = submit(&runtime, &thread, 4);
        pause(&runtime, &thread, UnderWay::Ended);
        let ended = runtime.block_on(response).unwrap().unwrap();
        assert_eq!((ended.response.len(), ended.finish_reason), (0, FinishReason::Length));
        thread.send(Order::Resume).unwrap();
        assert!(draw(&runtime, &thread).iter().all(Result::is_ok));
    }

    #[test]
    fn a_device_that_failed_ends_the_thread_and_everyone_learns_why() {
        let (runtime, thread) = (Runtime::new().unwrap(), start(|_| Err(PolicyError::Torch("CUDA error".into()))));
        assert!(draw(&runtime, &thread).iter().all(Result::is_ok));
        set_norm(&thread, 15);
        for failed in draw(&runtime, &thread) {
            assert!(matches!(failed, Err(RolloutError::Device(_))), "{failed:?}");
        }
        let ended = runtime.block_on(thread.ended()).to_string();
        assert!(ended.starts_with("cpu failed while responses were drawn"), "{ended}");
        assert!(!thread.is_alive());
        let later = thread.send(Order::SetVersion(1)).unwrap_err().to_string();
        assert_eq!(later, ended);
    }
}
