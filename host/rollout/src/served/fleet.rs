//! The servers of a run: which weights they have, and which of them are left out.

use super::config::ServedConfig;
use super::failure::Failure;
use super::paused::Resuming;
use super::pool::Pool;
use super::probe::Probe;
use super::run_name::RunName;
use super::server::Server;
use super::weights::{Giving, PublishedWeights};
use futures::future::join_all;
use gavel_text::TextModel;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::sleep;

/// The pause before a server that is lost is tried again, and between looks at servers that are up.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause before a server that refuses the weights is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A server that has failed so many looks in a row is lost.
const LOOKS: u32 = 3;
/// The most requests that a server has at once. `gavel serve` takes 4096 connections of a client, and its engine draws
/// fewer responses together than these.
const MOST_UNDER_WAY: usize = 1024;

/// The servers of a run.
pub(super) struct Fleet {
    pub(super) text: Arc<TextModel>,
    pub(super) config: ServedConfig,
    pub(super) servers: Vec<Server>,
    pub(super) pool: Pool,
    pub(super) run: RunName,
    /// Held while servers get new weights.
    pub(super) current: Mutex<Option<Current>>,
    /// The responses that were drawn again.
    pub(super) redrawn: AtomicU64,
    pub(super) next_conversation: AtomicU64,
    resuming: Resuming,
}

/// The newest weights.
#[derive(Clone)]
pub(super) struct Current {
    pub(super) weights: Arc<PublishedWeights>,
    /// The probe of the version before.
    pub(super) before: Option<Probe>,
}

impl Fleet {
    pub(super) fn new(
        text: Arc<TextModel>,
        config: ServedConfig,
        servers: Vec<Server>,
        run: RunName,
        first_conversation: u64,
    ) -> Self {
        Self {
            text,
            pool: Pool::new(servers.len(), MOST_UNDER_WAY),
            config,
            servers,
            run,
            current: Mutex::new(None),
            redrawn: AtomicU64::new(0),
            next_conversation: AtomicU64::new(first_conversation),
            resuming: Resuming::default(),
        }
    }

    /// Gives a server these weights. What it draws meanwhile is read once they are checked.
    pub(super) async fn give(self: &Arc<Self>, number: usize, current: &Current) -> Result<f64, Failure> {
        let giving =
            Giving { run: &self.run, before: current.before.as_ref(), config: &self.config, resuming: &self.resuming };
        self.pool.set_unchecked(number, true);
        let leave_out = |why: &str| self.leave_out(number, why, false);
        self.servers[number].take(&current.weights, &giving, leave_out).await
    }

    /// Leaves a server out until it takes the current weights, unless it is left out already.
    pub(super) fn leave_out(self: &Arc<Self>, number: usize, why: &str, is_new: bool) {
        if self.pool.lose(number, why) || is_new {
            tracing::warn!("{}: {why}; it is left out until it takes the current weights", self.servers[number].url);
            tokio::spawn(come_back(Arc::downgrade(self), number));
        }
    }

    /// Leaves a server out for good.
    pub(super) fn give_up(&self, number: usize, why: &str) {
        if self.pool.give_up(number, why) {
            tracing::warn!("{}: {why}; this run asks it no more", self.servers[number].url);
        }
    }

    /// Whether a server that is up works, has weights of this run, and draws. Only a run pauses it, and none but this one
    /// while it has the weights of this run: one that somebody else has paused gets them again.
    async fn state(&self, number: usize) -> Result<(), Failure> {
        let server = &self.servers[number];
        server.is_healthy().await?;
        // Held, so that this run does not pause it meanwhile.
        let Ok(_not_by_us) = server.getting_weights.try_lock() else { return Ok(()) };
        match server.version().await? {
            Some(name) if self.run.is_of_another(&name) => return Err(Failure::taken(&name)),
            Some(name) if self.run.version(&name).is_none() => {
                return Err(Failure::Foreign(format!(
                    "its weights have the version {name:?}, which this run did not give it: was it started again?"
                )));
            }
            _ => {}
        }
        match server.is_paused().await? {
            true => Err(Failure::Lost("somebody else has paused it".into())),
            false => Ok(()),
        }
    }

    /// Leaves out a server that failed at a request, unless it works.
    pub(super) async fn look(self: &Arc<Self>, number: usize) {
        if !self.pool.is_up(number) {
            return;
        }
        match self.state(number).await {
            Ok(()) => {}
            Err(Failure::Taken(what)) => self.give_up(number, &what),
            Err(failure) => self.leave_out(number, failure.why(), false),
        }
    }
}

/// Looks at the servers that are up, as long as there is a handle. A server that does not answer for a while is lost,
/// also if its connections stay open.
pub(super) async fn watch(fleet: Weak<Fleet>) {
    let mut failed = Vec::new();
    loop {
        sleep(PAUSE).await;
        let Some(fleet) = fleet.upgrade() else { return };
        failed.resize(fleet.servers.len(), 0);
        let up = fleet.pool.servers_up();
        let looks = join_all(up.iter().map(|number| fleet.state(*number))).await;
        for (number, look) in up.into_iter().zip(looks) {
            match look {
                Ok(()) => failed[number] = 0,
                Err(Failure::Taken(what)) => fleet.give_up(number, &what),
                Err(Failure::Foreign(what)) => fleet.leave_out(number, &what, false),
                Err(Failure::Lost(what) | Failure::Refused(what)) => {
                    failed[number] += 1;
                    if failed[number] == LOOKS {
                        failed[number] = 0;
                        fleet.leave_out(number, &what, false);
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
        if fleet.pool.is_given_up(number) {
            return;
        }
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
            Err(Failure::Taken(what)) => return fleet.give_up(number, &what),
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
