//! Records the answers that plugins get from outside, so that a call can be
//! repeated without a network.
//!
//! A [`Tape`] belongs to a sandbox. Each call has a [`CallTape`] of it, and every
//! import whose answers come from outside goes through that. A folder holds the
//! tape: an index with a line for each answer, and the answers by their hash.

mod call_log;
mod entry;
mod error;
mod open_call;
mod player;
mod queue_time;
mod recorder;
mod request_hash;

pub use call_log::{CallLog, TakenCalls};
pub use error::TapeError;
pub(crate) use open_call::OpenCall;
pub use player::Player;
pub(crate) use queue_time::QueueTime;
pub use recorder::Recorder;
pub use request_hash::RequestHash;

use entry::Entry;
use gavel_data::{Blame, Outcome, OutsideCall, OutsideCallKind};
use std::collections::HashMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Whether answers from outside are recorded, or replayed.
#[derive(Clone, Default)]
pub enum Tape {
    /// They are neither recorded nor replayed.
    #[default]
    Off,
    /// They are recorded.
    Record(Arc<Recorder>),
    /// They come only from the recording; nothing outside is asked.
    Replay(Arc<Player>),
}

impl Tape {
    /// Records answers in `folder`, which is created with the first of them.
    pub fn record(folder: PathBuf) -> Self {
        Self::record_as(folder, 0, None)
    }

    /// Records the answers that a rank of a run gets; ranks share the folder. Requests are noted in `calls` beside the
    /// tape, if there is such a log.
    pub fn record_as(folder: PathBuf, rank: usize, calls: Option<CallLog>) -> Self {
        Self::Record(Arc::new(Recorder::new(folder, rank, calls)))
    }

    /// Moves the entries of all ranks into the index of rank 0, before new answers are recorded. So a call that is
    /// repeated has its last answers.
    ///
    /// # Errors
    /// An index cannot be read or written.
    pub fn join_ranks(folder: &Path) -> Result<(), TapeError> {
        recorder::join_ranks(folder)
    }

    /// Answers from the recording in `folder`.
    pub fn replay(folder: &Path) -> Result<Self, TapeError> {
        Ok(Self::Replay(Arc::new(Player::open(folder)?)))
    }

    /// Syncs all answers so far, so that they survive a power cut.
    ///
    /// # Errors
    /// A file cannot be synced.
    pub fn sync(&self) -> Result<(), TapeError> {
        match self {
            Self::Record(recorder) => recorder.sync(),
            Self::Off | Self::Replay(_) => Ok(()),
        }
    }

    /// The tape of one call: of this plugin, with this hash of its input and this
    /// seed.
    pub fn of_call(&self, plugin: &str, input: &str, seed: u64) -> CallTape {
        let call = || TapedCall {
            plugin: plugin.to_owned(),
            input: input.to_owned(),
            seed,
            asked: Mutex::default(),
            trouble: Mutex::default(),
        };
        let kind = match self {
            Self::Off => CallTapeKind::Off,
            Self::Record(recorder) => CallTapeKind::Record(recorder.clone(), Arc::new(call())),
            Self::Replay(player) => CallTapeKind::Replay(player.clone(), Arc::new(call())),
        };
        CallTape { kind, made_for: None }
    }
}

/// The answers of one call.
#[derive(Clone)]
pub struct CallTape {
    kind: CallTapeKind,
    /// The id of the sample or the group that the call is made for.
    made_for: Option<Arc<str>>,
}

#[derive(Clone)]
enum CallTapeKind {
    Off,
    Record(Arc<Recorder>, Arc<TapedCall>),
    Replay(Arc<Player>, Arc<TapedCall>),
}

struct TapedCall {
    plugin: String,
    input: String,
    seed: u64,
    /// The number of times that each request was made so far.
    asked: Mutex<HashMap<blake3::Hash, u32>>,
    /// The call's outcome after an error of the tape, whatever the plugin does with it.
    trouble: Mutex<Option<Outcome>>,
}

impl CallTape {
    /// The same tape, of a call for the sample or the group with this id.
    pub(crate) fn made_for(self, id: Option<&Arc<str>>) -> Self {
        Self { made_for: id.cloned(), ..self }
    }

    /// Begins the record of a request to `endpoint`, if requests are noted; `queued` has the time that it waits for its
    /// turn.
    pub(crate) fn open_call(
        &self,
        kind: OutsideCallKind,
        endpoint: String,
        queued: Arc<QueueTime>,
    ) -> Option<OpenCall> {
        let CallTapeKind::Record(recorder, taped) = &self.kind else { return None };
        let call = OutsideCall {
            made_for: self.made_for.as_deref().map(str::to_owned),
            plugin: taped.plugin.clone(),
            input: taped.input.clone(),
            seed: taped.seed,
            kind,
            endpoint,
            ..OutsideCall::default()
        };
        Some(OpenCall::begin(recorder.calls()?.clone(), call, queued))
    }

    /// Whether the tape neither records nor replays.
    pub(crate) fn is_off(&self) -> bool {
        matches!(self.kind, CallTapeKind::Off)
    }

    /// Answers a request: from the tape, or from `live`, whose answer is recorded.
    /// Equal requests of a call get their answers in the order in which they were
    /// made. `name` names the request in messages.
    ///
    /// # Errors
    /// The request was not recorded, or the tape cannot be read or written. The
    /// call is then `unavailable` or a fault of the host, whatever the plugin
    /// returns.
    pub async fn answer(
        &self,
        request: RequestHash,
        name: &str,
        live: impl Future<Output = Vec<u8>>,
    ) -> Result<Vec<u8>, TapeError> {
        match &self.kind {
            CallTapeKind::Off => Ok(live.await),
            CallTapeKind::Record(recorder, call) => {
                // Counted before the wait, since a plugin may have several open requests.
                let entry = call.entry(request);
                recorder.keep(entry, live.await).await.inspect_err(|error| call.note(error))
            }
            CallTapeKind::Replay(player, call) => {
                player.answer(&call.entry(request), name).await.inspect_err(|error| call.note(error))
            }
        }
    }

    /// The outcome of the call after an error of the tape.
    pub(crate) fn trouble(&self) -> Option<Outcome> {
        match &self.kind {
            CallTapeKind::Off => None,
            CallTapeKind::Record(_, call) | CallTapeKind::Replay(_, call) => {
                call.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
            }
        }
    }
}

impl TapedCall {
    fn note(&self, error: &TapeError) {
        let outcome = match error {
            TapeError::NotRecorded { .. } => Outcome::Unavailable(error.to_string()),
            other => Outcome::Fault { whose: Blame::Host, what: other.to_string() },
        };
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(outcome);
    }

    fn entry(&self, request: RequestHash) -> Entry {
        let (import, hash) = request.finish();
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let count = asked.entry(hash).or_default();
        let nth = *count;
        *count += 1;
        Entry {
            plugin: self.plugin.clone(),
            input: self.input.clone(),
            seed: self.seed,
            import,
            request: hash.to_hex().to_string(),
            nth,
        }
    }
}

#[cfg(test)]
mod tests;
