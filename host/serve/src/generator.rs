//! The thread that owns the device, and how everyone else reaches it.

use crate::completion::Completion;
use crate::error::ServeError;
use crate::metrics::Metrics;
use futures::future::try_join_all;
use gavel_data::FinishReason;
use gavel_policy::{Drawn, Engine, EngineConfig, EngineStep, Model, ModelConfig, PolicyError, Request, Sampling};
use gavel_text::TextModel;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Instant;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// A model that many ask at once. Copies of the handle share one thread, which
/// ends when the last of them is gone.
#[derive(Clone)]
pub struct Generator {
    text: Arc<TextModel>,
    model: Arc<ModelConfig>,
    metrics: Arc<Metrics>,
    thread: Arc<Thread>,
    next: Arc<AtomicU64>,
    longest: usize,
}

/// The thread, which ends with the last handle: nothing of libtorch runs while
/// the process exits.
struct Thread {
    orders: Option<Sender<Order>>,
    handle: Option<JoinHandle<()>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(handle) = self.handle.take() {
            // A panic was told when it came.
            let _ = handle.join();
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Token ids of the prompt.
    pub prompt: Vec<u32>,
    /// Whether the response goes on with the prompt's text, and is none of its
    /// own: a space may then be its first character.
    pub goes_on: bool,
    /// How to draw; its `stop_ids` end the response.
    pub sampling: Sampling,
    /// Texts that end the response and are no part of it.
    pub stop: Vec<String>,
    /// Everything that is drawn follows from it.
    pub seed: u64,
    /// How many of the most probable tokens come with each token.
    pub top_logprobs: usize,
}

/// What the thread says of a request.
pub(crate) enum Event {
    Drawn(Drawn),
    Ended(FinishReason),
    Failed(String),
}

struct Order {
    request: Request,
    reply: Reply,
    /// Whether the request was taken on.
    taken: tokio::sync::oneshot::Sender<Result<(), PolicyError>>,
}

/// Who waits for a request.
struct Reply {
    events: UnboundedSender<Event>,
    /// Whether its end was found in its text.
    stopped: Arc<AtomicBool>,
    asked: Instant,
    begun: bool,
}

impl Generator {
    /// Starts the thread for `model`.
    ///
    /// # Errors
    /// The model or `config` cannot be used for decoding.
    pub fn start(model: Model, text: TextModel, config: EngineConfig) -> Result<Self, ServeError> {
        let sizes = Arc::new(model.config().clone());
        let engine = Engine::new(&model, config.clone())?;
        let longest = engine.longest();
        let metrics = Arc::new(Metrics::default());
        let (orders, taken) = mpsc::channel();
        let mut owner = Owner { model, config, engine, replies: HashMap::new(), metrics: metrics.clone() };
        let thread = std::thread::Builder::new().name("gavel-model".into());
        let handle = thread.spawn(move || owner.run(&taken)).map_err(ServeError::Thread)?;
        let thread = Arc::new(Thread { orders: Some(orders), handle: Some(handle) });
        Ok(Self { text: Arc::new(text), model: sizes, metrics, thread, next: Arc::default(), longest })
    }

    /// Its tokenizer and chat template.
    pub fn text(&self) -> &TextModel {
        &self.text
    }

    /// Its sizes.
    pub fn model(&self) -> &ModelConfig {
        &self.model
    }

    /// How many tokens may follow a prompt of `prompt` tokens; 0 where it is too
    /// long itself.
    pub fn room(&self, prompt: usize) -> usize {
        self.longest.saturating_sub(prompt)
    }

    /// Whether the thread still decodes.
    pub fn is_alive(&self) -> bool {
        self.thread.handle.as_ref().is_some_and(|handle| !handle.is_finished())
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// Asks for a response, which begins to come when its turn is there.
    ///
    /// # Errors
    /// The request is none that the model can serve.
    pub async fn ask(&self, ask: Ask) -> Result<Completion, ServeError> {
        let (events, receiver) = unbounded_channel();
        let (taken, answer) = tokio::sync::oneshot::channel();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let stop_ids = ask.sampling.stop_ids.clone();
        let decoder = self.text.tokenizer.stream(true);
        let decoder = if ask.goes_on { decoder.after(&ask.prompt) } else { decoder };
        let mut request = Request::new(id, ask.prompt, ask.sampling, ask.seed);
        request.top_logprobs = ask.top_logprobs;
        let stopped = Arc::<AtomicBool>::default();
        let reply = Reply { events, stopped: stopped.clone(), asked: Instant::now(), begun: false };
        let orders = self.thread.orders.as_ref().ok_or(ServeError::Stopped)?;
        orders.send(Order { request, reply, taken }).map_err(|_| ServeError::Stopped)?;
        answer.await.map_err(|_| ServeError::Stopped)??;
        Ok(Completion::new(receiver, decoder, ask.stop, stop_ids, stopped))
    }

    /// Asks for all of these at once, so that they begin together.
    ///
    /// # Errors
    /// One of them is none that the model can serve; the others are taken back.
    pub async fn ask_all(&self, asks: Vec<Ask>) -> Result<Vec<Completion>, ServeError> {
        try_join_all(asks.into_iter().map(|ask| self.ask(ask))).await
    }
}

/// What the thread owns.
struct Owner {
    model: Model,
    config: EngineConfig,
    engine: Engine,
    replies: HashMap<u64, Reply>,
    metrics: Arc<Metrics>,
}

impl Owner {
    /// Decodes until nobody can ask any more.
    fn run(&mut self, orders: &Receiver<Order>) {
        loop {
            if self.engine.is_idle() {
                match orders.recv() {
                    Ok(order) => self.take(order),
                    Err(_) => return,
                }
            }
            while let Ok(order) = orders.try_recv() {
                self.take(order);
            }
            let stepped = self.drop_abandoned().and_then(|()| self.engine.step(&self.model));
            let goes_on = match stepped {
                Ok(step) => {
                    // First, so that who has the last answer sees that nothing is left to do.
                    self.metrics.load(self.engine.active(), self.engine.waiting());
                    self.deliver(step);
                    true
                }
                Err(PolicyError::NonFinite { request, position }) => self.fail_one(request, position),
                Err(error) => self.fail(&error),
            };
            if !goes_on {
                return;
            }
            self.metrics.load(self.engine.active(), self.engine.waiting());
        }
    }

    fn take(&mut self, Order { request, reply, taken }: Order) {
        let (id, prompt) = (request.id, request.prompt.len());
        let submitted = self.engine.submit(request);
        if submitted.is_ok() {
            self.metrics.took(prompt);
            self.replies.insert(id, reply);
        }
        // Who does not wait for the answer any more has dropped the reply too.
        let _ = taken.send(submitted);
    }

    /// Takes back the requests whose responses nobody waits for.
    fn drop_abandoned(&mut self) -> Result<(), PolicyError> {
        for (id, reply) in self.replies.extract_if(|_, reply| reply.events.is_closed()) {
            self.engine.cancel(id)?;
            let stopped = reply.stopped.load(Ordering::Relaxed);
            if stopped {
                self.metrics.whole(reply.asked.elapsed());
            }
            self.metrics.ended(if stopped { "stop" } else { "cancelled" });
        }
        Ok(())
    }

    fn deliver(&mut self, step: EngineStep) {
        self.metrics.drew(step.drawn.len(), self.engine.preemptions());
        for drawn in step.drawn {
            if let Some(reply) = self.replies.get_mut(&drawn.id) {
                if !std::mem::replace(&mut reply.begun, true) {
                    self.metrics.first_token(reply.asked.elapsed());
                }
                // A receiver that is gone is noticed before the next step.
                let _ = reply.events.send(Event::Drawn(drawn));
            }
        }
        for finished in step.finished {
            if let Some(reply) = self.replies.remove(&finished.id) {
                self.metrics.ended(finished.finish_reason.as_str());
                self.metrics.whole(reply.asked.elapsed());
                let _ = reply.events.send(Event::Ended(finished.finish_reason));
            }
        }
    }

    /// Takes out the one request that the model computed no number for; whether
    /// the others go on.
    fn fail_one(&mut self, request: u64, position: usize) -> bool {
        let error = PolicyError::NonFinite { request, position };
        if let Some(reply) = self.replies.remove(&request) {
            self.tell(reply, &error);
        }
        match self.engine.cancel(request) {
            Ok(_) => true,
            Err(error) => self.fail(&error),
        }
    }

    /// Tells everyone, and begins anew, as the engine is not to be used again;
    /// whether that can be done.
    fn fail(&mut self, error: &PolicyError) -> bool {
        let replies = std::mem::take(&mut self.replies);
        replies.into_values().for_each(|reply| self.tell(reply, error));
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

    fn tell(&self, reply: Reply, error: &PolicyError) {
        tracing::error!("a request failed: {error}");
        self.metrics.ended("error");
        let _ = reply.events.send(Event::Failed(error.to_string()));
    }
}
