//! A request under way, as a record that its end completes.

use super::call_log::CallLog;
use super::queue_time::QueueTime;
use gavel_data::OutsideCall;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A request under way. It is added to the log when it is dropped; a request whose end is not set was cancelled.
pub(crate) struct OpenCall {
    log: CallLog,
    /// Absent once it was added.
    call: Option<OutsideCall>,
    began: Instant,
    queued: Arc<QueueTime>,
}

impl OpenCall {
    /// Begins a request; `queued` has the time that it waits for its turn.
    pub(super) fn begin(log: CallLog, mut call: OutsideCall, queued: Arc<QueueTime>) -> Self {
        // A clock before 1970 is not set.
        call.timestamp = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        Self { log, call: Some(call), began: Instant::now(), queued }
    }

    /// The most bytes of a text that is kept; 0 without texts.
    pub(crate) fn text_bytes(&self) -> usize {
        self.log.text_bytes()
    }

    /// Changes the record.
    pub(crate) fn note(&mut self, change: impl FnOnce(&mut OutsideCall)) {
        if let Some(call) = &mut self.call {
            change(call);
        }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        let Some(mut call) = self.call.take() else { return };
        let waited = self.queued.total();
        call.waited = waited.as_secs_f64();
        call.ran = self.began.elapsed().saturating_sub(waited).as_secs_f64();
        self.log.add(call);
    }
}
