//! The handle of servers that draw.

use super::config::ServedConfig;
use super::error::ServedError;
use super::failure::Failure;
use super::fleet::{Current, Fleet, watch};
use super::pool::GivenUp;
use super::run_name::RunName;
use super::server::Server;
use super::weights::PublishedWeights;
use crate::error::RolloutError;
use crate::request::{GenerateRequest, Response};
use futures::future::join_all;
use gavel_endpoint::tls_client_config;
use gavel_text::TextModel;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;

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
        // Another run may use the same servers.
        Ok(Self(Arc::new(Fleet::new(text, config, servers, RunName::new(salt), salt << 16))))
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
        self.0.run.as_str()
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

    /// Gives all servers these weights. A server that is lost gets them when it comes back. One that does not take them is
    /// left out, if another one takes them. Returns the mean difference of log-probabilities that servers report from the
    /// policy's own, of the server where it is largest; `None` if no server has taken them yet.
    ///
    /// # Errors
    /// Servers do not draw from the policy's distribution with them, and none does; or no server takes the first weights.
    pub async fn publish(&self, weights: PublishedWeights) -> Result<Option<f64>, ServedError> {
        let fleet = &self.0;
        let mut current = fleet.current.lock().await;
        let before = current.as_ref().map(|current| current.weights.probe.clone());
        let now = Current { weights: Arc::new(weights), before };
        let is_first = current.replace(now.clone()).is_none();
        let numbers = if is_first { (0..fleet.servers.len()).collect() } else { fleet.pool.servers_up() };
        let taken = join_all(numbers.iter().map(|number| fleet.give(*number, &now))).await;
        let (mut mismatch, mut refused, mut lost) = (None, None, Vec::new());
        for (number, taken) in numbers.into_iter().zip(taken) {
            match taken {
                Ok(found) => {
                    mismatch = Some(mismatch.map_or(found, |most: f64| most.max(found)));
                    // Later, one that was lost meanwhile is raised by the task that waits for it.
                    match is_first {
                        true => fleet.pool.raise(number),
                        false => fleet.pool.set_unchecked(number, false),
                    }
                }
                Err(Failure::Taken(what)) => fleet.give_up(number, &what),
                Err(Failure::Lost(what) | Failure::Foreign(what)) => lost.push((number, what)),
                Err(Failure::Refused(what)) => {
                    lost.push((number, what.clone()));
                    refused.get_or_insert((number, what));
                }
            }
        }
        let why = |(number, what): &(usize, String)| format!("{}: {what}", fleet.servers[*number].url);
        let all = lost.iter().map(why).collect::<Vec<_>>().join("; ");
        for (number, what) in lost {
            fleet.leave_out(number, &what, is_first);
        }
        if is_first {
            tokio::spawn(watch(Arc::downgrade(fleet)));
        }
        if let Some(GivenUp { server, why }) = fleet.pool.given_up() {
            return Err(ServedError::Refused { url: fleet.servers[server].url.clone(), what: why });
        }
        match (mismatch, refused) {
            (None, Some((number, what))) => {
                let (url, version) = (fleet.servers[number].url.clone(), now.weights.version);
                Err(ServedError::Weights { url, version, what })
            }
            (None, None) if is_first => Err(ServedError::Unreachable(all)),
            (mismatch, _) => Ok(mismatch),
        }
    }
}
