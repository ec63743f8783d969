//! The thread that owns the device, and how everyone else reaches it.

use crate::completion::Completion;
use crate::error::ServeError;
use crate::metrics::Metrics;
use gavel_data::FinishReason;
use gavel_policy::{Drawn, Engine, EngineConfig, Model, ModelConfig, PolicyError, Request, Sampling, Step};
use gavel_text::TextModel;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Instant;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// A model that many ask at once. Copies of the handle share one thread, which
/// ends when the last of them is gone.
#[derive(Clone)]
pub struct Generator {
    text: Arc<TextModel>,
    model: Arc<ModelConfig>,
    metrics: Arc<Metrics>,
    orders: Sender<Order>,
    next: Arc<AtomicU64>,
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Token ids of the prompt.
    pub prompt: Vec<u32>,
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
        let metrics = Arc::new(Metrics::default());
        let (orders, taken) = mpsc::channel();
        let mut owner = Owner { model, config, engine, replies: HashMap::new(), metrics: metrics.clone() };
        let thread = std::thread::Builder::new().name("gavel-model".into());
        thread.spawn(move || owner.run(&taken)).map_err(ServeError::Thread)?;
        Ok(Self { text: Arc::new(text), model: sizes, metrics, orders, next: Arc::default() })
    }

    /// Its tokenizer and chat template.
    pub fn text(&self) -> &TextModel {
        &self.text
    }

    /// Its sizes.
    pub fn model(&self) -> &ModelConfig {
        &self.model
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
        let mut request = Request::new(id, ask.prompt, ask.sampling, ask.seed);
        request.top_logprobs = ask.top_logprobs;
        let stopped = Arc::<AtomicBool>::default();
        let reply = Reply { events, stopped: stopped.clone(), asked: Instant::now(), begun: false };
        self.orders.send(Order { request, reply, taken }).map_err(|_| ServeError::Stopped)?;
        answer.await.map_err(|_| ServeError::Stopped)??;
        Ok(Completion::new(receiver, self.text.tokenizer.stream(true), ask.stop, stop_ids, stopped))
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
            match stepped {
                Ok(step) => self.deliver(step),
                Err(error) => self.fail(&error),
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
            self.metrics.ended(if reply.stopped.load(Ordering::Relaxed) { "stop" } else { "cancelled" });
        }
        Ok(())
    }

    fn deliver(&mut self, step: Step) {
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
                self.metrics.ended(if finished.finish_reason == FinishReason::Stop { "stop" } else { "length" });
                self.metrics.whole(reply.asked.elapsed());
                let _ = reply.events.send(Event::Ended(finished.finish_reason));
            }
        }
    }

    /// Tells everyone, and begins anew: the engine is not to be used again.
    fn fail(&mut self, error: &PolicyError) {
        for (_, reply) in self.replies.drain() {
            self.metrics.ended("error");
            let _ = reply.events.send(Event::Failed(error.to_string()));
        }
        // It was made with these once.
        if let Ok(engine) = Engine::new(&self.model, self.config.clone()) {
            self.engine = engine;
        }
    }
}
