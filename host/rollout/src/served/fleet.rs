//! The handle of servers that draw.

use super::config::ServedConfig;
use super::error::ServedError;
use super::failure::Failure;
use super::messages::{body, response};
use super::pool::{Place, Placing, Pool};
use super::probe::Probe;
use super::server::Server;
use super::weights::PublishedWeights;
use crate::error::RolloutError;
use crate::request::{GenerateRequest, Response};
use crate::stop_reader::StopReader;
use futures::future::join_all;
use gavel_data::FinishReason;
use gavel_endpoint::tls_client_config;
use gavel_policy::Finished;
use gavel_text::TextModel;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{Mutex, oneshot};
use tokio::time::{sleep, timeout};

/// The pause before a server that is lost is tried again, and between looks at servers that are up.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause before a server that refuses the weights is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A server that has failed so many looks in a row is lost.
const LOOKS: u32 = 3;
/// The most requests that a server has at once. `gavel serve` takes 4096 connections of a client, and its engine draws
/// fewer responses together than these.
const MOST_UNDER_WAY: usize = 1024;
/// How often a server that works may fail at a request.
const ATTEMPTS: u32 = 8;
/// The first pause after such a failure, and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The handle of servers that draw. Clones are handles of the same servers.
#[derive(Clone)]
pub struct ServedEngine(Arc<Fleet>);

/// What happened at the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FleetCounts {
    /// The servers that may be asked at the moment.
    pub up: u64,
    /// The responses that were drawn again, because their server was lost or failed.
    pub redrawn: u64,
}

struct Fleet {
    text: Arc<TextModel>,
    config: ServedConfig,
    servers: Vec<Server>,
    pool: Pool,
    /// The beginning of the names of this run's versions. A server that was started again has none of them.
    prefix: String,
    /// Held while servers get new weights.
    current: Mutex<Option<Current>>,
    redrawn: AtomicU64,
    next_conversation: AtomicU64,
}

/// The newest weights.
#[derive(Clone)]
struct Current {
    weights: Arc<PublishedWeights>,
    /// The probe of the version before.
    before: Option<Probe>,
}

impl ServedEngine {
    /// The handle of servers of a model with the tokenizer `text`. Nothing is sent yet: the servers are asked from the
    /// first [`publish`](Self::publish) on.
    ///
    /// # Errors
    /// There can be no HTTP client.
    pub fn new(config: ServedConfig, text: Arc<TextModel>) -> Result<Self, ServedError> {
        let tls = tls_client_config().map_err(|error| ServedError::Client(error.to_string()))?;
        let server = |url: &String| Server::new(url, config.kind, &tls).map_err(ServedError::Client);
        let servers: Vec<Server> = config.url.all().iter().map(server).collect::<Result<_, _>>()?;
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let salt = since_1970.as_nanos() as u64 ^ u64::from(std::process::id()).rotate_left(40);
        Ok(Self(Arc::new(Fleet {
            text,
            pool: Pool::new(servers.len(), MOST_UNDER_WAY),
            config,
            servers,
            prefix: format!("gavel-{salt:016x}-"),
            current: Mutex::new(None),
            redrawn: AtomicU64::new(0),
            // Another run may use the same servers.
            next_conversation: AtomicU64::new(salt << 16),
        })))
    }

    /// The tokenizer and chat template.
    pub fn text(&self) -> &TextModel {
        &self.0.text
    }

    /// What happened at the servers since this was called last.
    pub fn take_counts(&self) -> FleetCounts {
        let Fleet { pool, redrawn, .. } = &*self.0;
        FleetCounts { up: pool.servers_up().len() as u64, redrawn: redrawn.swap(0, Ordering::Relaxed) }
    }

    /// A name that no other run has, for the folder of its weights.
    pub fn run_name(&self) -> &str {
        self.0.prefix.trim_end_matches('-')
    }

    /// The number of a conversation that begins. It is [forgotten](Self::forget) when it has no further turn.
    pub fn conversation(&self) -> u64 {
        self.0.next_conversation.fetch_add(1, Ordering::Relaxed)
    }

    /// Forgets at which server a conversation is.
    pub fn forget(&self, conversation: u64) {
        self.0.pool.forget(conversation);
    }

    /// Asks for these responses. Dropping one ends its request.
    pub fn generate(&self, requests: Vec<GenerateRequest>) -> Vec<Response> {
        let draw = |request: GenerateRequest| {
            let (mut reply, response) = oneshot::channel();
            let fleet = self.0.clone();
            tokio::spawn(async move {
                let drawn = tokio::select! {
                    drawn = fleet.draw(&request) => drawn,
                    () = reply.closed() => return,
                };
                // The caller may have stopped waiting.
                let _ = reply.send(drawn.map_err(RolloutError::from));
            });
            Response(response)
        };
        requests.into_iter().map(draw).collect()
    }

    /// The version of the weights that servers have.
    pub async fn version(&self) -> Option<u64> {
        self.0.current.lock().await.as_ref().map(|current| current.weights.version)
    }

    /// Gives all servers these weights. A server that is lost gets them when it comes back. Returns the mean difference
    /// of log-probabilities that servers report from the policy's own, of the server where it is largest; `None` if no
    /// server has taken them yet.
    ///
    /// # Errors
    /// A server does not draw from the policy's distribution with them, or none of them takes the first weights.
    pub async fn publish(&self, weights: PublishedWeights) -> Result<Option<f64>, ServedError> {
        let fleet = &self.0;
        let mut current = fleet.current.lock().await;
        let before = current.as_ref().map(|current| current.weights.probe.clone());
        let now = Current { weights: Arc::new(weights), before };
        let is_first = current.replace(now.clone()).is_none();
        let numbers = if is_first { (0..fleet.servers.len()).collect() } else { fleet.pool.servers_up() };
        let taken = join_all(numbers.iter().map(|number| fleet.give(*number, &now))).await;
        let (mut lost, mut mismatch) = (Vec::new(), None);
        for (number, taken) in numbers.into_iter().zip(taken) {
            match taken {
                Ok(found) => {
                    mismatch = Some(mismatch.map_or(found, |most: f64| most.max(found)));
                    // Later, one that was lost meanwhile is raised by the task that waits for it.
                    if is_first {
                        fleet.pool.raise(number);
                    }
                }
                Err(Failure::Lost(what) | Failure::Foreign(what)) => lost.push((number, what)),
                Err(Failure::Refused(what)) => {
                    let (url, version) = (fleet.servers[number].url.clone(), now.weights.version);
                    return Err(ServedError::Weights { url, version, what });
                }
            }
        }
        if is_first && fleet.pool.servers_up().is_empty() {
            let all = lost.iter().map(|(number, what)| format!("{}: {what}", fleet.servers[*number].url));
            return Err(ServedError::Unreachable(all.collect::<Vec<_>>().join("; ")));
        }
        for (number, what) in lost {
            fleet.leave_out(number, &what, is_first);
        }
        if is_first {
            tokio::spawn(watch(Arc::downgrade(fleet)));
        }
        Ok(mismatch)
    }
}

impl Fleet {
    /// The name of a version.
    fn name(&self, version: u64) -> String {
        format!("{}{version}", self.prefix)
    }

    /// The number of the version of a name, if this run gave it.
    fn number(&self, name: &str) -> Option<u64> {
        name.strip_prefix(&self.prefix)?.parse().ok()
    }

    async fn give(self: &Arc<Self>, number: usize, current: &Current) -> Result<f64, Failure> {
        let Current { weights, before } = current;
        let (server, name) = (&self.servers[number], self.name(weights.version));
        let leave_out = |why: &str| self.leave_out(number, why, false);
        server.take(weights, &name, before.as_ref(), &self.config, leave_out).await
    }

    /// Leaves a server out until it takes the current weights, unless it is left out already.
    fn leave_out(self: &Arc<Self>, number: usize, why: &str, is_new: bool) {
        if self.pool.lose(number, why) || is_new {
            tracing::warn!("{}: {why}; it is left out until it takes the current weights", self.servers[number].url);
            tokio::spawn(come_back(Arc::downgrade(self), number));
        }
    }

    /// Draws a response, at another server if the first one is lost.
    async fn draw(self: &Arc<Self>, request: &GenerateRequest) -> Result<Finished, ServedError> {
        if request.sampling.constraint.is_some() || request.sampling.masked {
            return Err(ServedError::Unsupported);
        }
        let (mut failures, mut pause) = (0, PAUSES.0);
        loop {
            let mut place = self.place(request.conversation).await?;
            let server = &self.servers[place.server];
            let answer = tokio::select! {
                biased;
                // First: the answer may have been drawn after the server was lost, with weights under another name.
                () = place.lost() => Err(Failure::Lost("it was lost".into())),
                answer = server.generate(body(request, server.kind)) => answer,
            };
            let number = place.server;
            drop(place);
            let refused = |what| ServedError::Refused { url: server.url.clone(), what };
            let (why, counts) = match answer.and_then(|answer| response(&answer, |name| self.number(name))) {
                Ok(finished) => return self.cut(request, finished).map_err(|error| refused(error.to_string())),
                Err(Failure::Refused(what)) => return Err(refused(what)),
                Err(Failure::Lost(why)) => {
                    self.look(number, &why).await;
                    (why, self.pool.is_up(number))
                }
                Err(Failure::Foreign(why)) => {
                    // What it says of its version is not what it draws with.
                    self.leave_out(number, &why, false);
                    (why, true)
                }
            };
            self.redrawn.fetch_add(1, Ordering::Relaxed);
            if !counts {
                continue;
            }
            failures += 1;
            if failures == ATTEMPTS {
                return Err(refused(why));
            }
            sleep(pause).await;
            pause = (2 * pause).min(PAUSES.1);
        }
    }

    /// Waits for a place at a server.
    async fn place(&self, conversation: Option<u64>) -> Result<Place<'_>, ServedError> {
        let mut down = None;
        loop {
            let mut changed = std::pin::pin!(self.pool.changed());
            changed.as_mut().enable();
            let start = match self.pool.place(conversation) {
                Placing::Found(place) => return Ok(place),
                Placing::Full => {
                    down = None;
                    changed.await;
                    continue;
                }
                Placing::Down => *down.get_or_insert_with(Instant::now),
            };
            match self.config.max_pause {
                None => changed.await,
                Some(most) => timeout(most.saturating_sub(start.elapsed()), changed).await.map_err(|_| {
                    ServedError::Down { seconds: start.elapsed().as_secs_f64(), last: self.pool.last_failure() }
                })?,
            }
        }
    }

    /// Whether a server that is up works and draws. Only a run pauses it, and none but this one while it has the weights of
    /// this run: one that somebody else has paused gets them again.
    async fn look_at(&self, number: usize) -> Result<(), Failure> {
        let server = &self.servers[number];
        server.is_healthy().await?;
        // Held, so that this run does not pause it meanwhile.
        let Ok(_not_by_us) = server.getting_weights.try_lock() else { return Ok(()) };
        match server.is_paused().await? {
            true => Err(Failure::Lost("somebody else has paused it".into())),
            false => Ok(()),
        }
    }

    /// Leaves out a server that failed at a request, unless it works and still has weights of this run.
    async fn look(self: &Arc<Self>, number: usize, why: &str) {
        if !self.pool.is_up(number) {
            return;
        }
        match self.servers[number].version().await {
            Ok(None) => {}
            Ok(Some(name)) if self.number(&name).is_some() => {}
            Ok(Some(_)) => self.leave_out(number, "it was started again", false),
            Err(_) => self.leave_out(number, why, false),
        }
    }

    /// Ends a response where the engine of this process would: at a stop text, with the token that completes it.
    fn cut(&self, request: &GenerateRequest, mut finished: Finished) -> Result<Finished, RolloutError> {
        if request.stop.is_empty() {
            return Ok(finished);
        }
        let decoder = self.text.tokenizer.stream(true);
        let decoder = if request.continues_prompt { decoder.after(&request.prompt) } else { decoder };
        let mut reader = StopReader::new(decoder, request.stop.clone(), request.sampling.clone());
        for at in 0..finished.response.len() {
            if reader.push(finished.response[at])?.stopped {
                finished.response.truncate(at + 1);
                finished.logprobs.truncate(at + 1);
                finished.versions.truncate(at + 1);
                finished.finish_reason = FinishReason::Stop;
                return Ok(finished);
            }
        }
        if reader.finish()?.stopped {
            finished.finish_reason = FinishReason::Stop;
        }
        Ok(finished)
    }
}

/// Looks at the servers that are up, as long as there is a handle. A server that does not answer for a while is lost,
/// also if its connections stay open.
async fn watch(fleet: Weak<Fleet>) {
    let mut failed = Vec::new();
    loop {
        sleep(PAUSE).await;
        let Some(fleet) = fleet.upgrade() else { return };
        failed.resize(fleet.servers.len(), 0);
        let up = fleet.pool.servers_up();
        let looks = join_all(up.iter().map(|number| fleet.look_at(*number))).await;
        for (number, look) in up.into_iter().zip(looks) {
            match look {
                Ok(()) => failed[number] = 0,
                Err(failure) => {
                    failed[number] += 1;
                    if failed[number] == LOOKS {
                        failed[number] = 0;
                        fleet.leave_out(number, failure.why(), false);
                    }
                }
            }
        }
    }
}

/// Waits until a server that was lost takes the current weights.
async fn come_back(fleet: Weak<Fleet>, number: usize) {
    let (mut reported, mut pause) = (String::new(), PAUSE);
    loop {
        sleep(pause).await;
        let Some(fleet) = fleet.upgrade() else { return };
        let Some(now) = fleet.current.lock().await.clone() else { continue };
        match fleet.give(number, &now).await {
            Ok(_) => {
                let current = fleet.current.lock().await;
                // Others may have been published meanwhile.
                if current.as_ref().is_some_and(|current| Arc::ptr_eq(&current.weights, &now.weights)) {
                    fleet.pool.raise(number);
                    tracing::info!("{} has the current weights, and is asked again", fleet.servers[number].url);
                    return;
                }
            }
            Err(Failure::Lost(_) | Failure::Foreign(_)) => pause = PAUSE,
            Err(Failure::Refused(what)) => {
                pause = (2 * pause).min(LONGEST_PAUSE);
                if reported != what {
                    tracing::warn!("{} stays left out: {what}", fleet.servers[number].url);
                }
                reported = what;
            }
        }
    }
}
