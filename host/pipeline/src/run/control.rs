//! Requests to a run under way.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

/// Asks a run to end, or to report what it waits for. Copies ask the same run.
#[derive(Debug, Clone, Default)]
pub struct Control(Arc<Requests>);

#[derive(Debug, Default)]
struct Requests {
    stop: AtomicBool,
    report: Notify,
}

impl Control {
    /// Asks the run to end after the step under way, with a checkpoint.
    pub fn stop(&self) {
        self.0.stop.store(true, Ordering::Relaxed);
    }

    /// Asks the run to report what every sample in flight waits for.
    pub fn report(&self) {
        self.0.report.notify_one();
    }

    /// Whether the run was asked to end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }

    /// Waits until a report is asked for.
    pub(crate) async fn report_asked(&self) {
        self.0.report.notified().await;
    }
}
