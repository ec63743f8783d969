//! The beginning and the end of a thread that owns a model. Its callers learn why it ended.

use gavel_policy::device::{self, DeviceFailure};
use gavel_policy::{Device, PolicyError};
use std::sync::Arc;
use tokio::sync::watch;

/// Why a thread ended, if its device failed.
pub(crate) type Cause = Option<Arc<DeviceFailure>>;

/// Finds whether a device still works.
pub(crate) type Probe = fn(Device) -> Result<(), PolicyError>;

/// Held by the thread until it ends.
pub(crate) struct ThreadEnd {
    cause: watch::Sender<Cause>,
    probe: Probe,
}

/// What others see of it.
#[derive(Clone)]
pub(crate) struct ThreadWatch(watch::Receiver<Cause>);

impl ThreadEnd {
    /// The two sides.
    pub(crate) fn new(probe: Probe) -> (Self, ThreadWatch) {
        let (cause, seen) = watch::channel(None);
        (Self { cause, probe }, ThreadWatch(seen))
    }

    /// Asks the device after an error. If it has failed, the thread must end, for this reason.
    pub(crate) fn failure(
        &self,
        error: &Arc<PolicyError>,
        during: &'static str,
        device: Device,
    ) -> Option<Arc<DeviceFailure>> {
        let failure = Arc::new(DeviceFailure::after(error, during, device, self.probe)?);
        tracing::error!("{failure}");
        self.cause.send_replace(Some(failure.clone()));
        Some(failure)
    }
}

impl ThreadWatch {
    /// Why the thread ended, or will.
    pub(crate) fn cause(&self) -> Cause {
        self.0.borrow().clone()
    }

    /// Whether the thread works, and will.
    pub(crate) fn is_alive(&self) -> bool {
        self.0.has_changed().is_ok() && self.cause().is_none()
    }

    /// Waits for the end of the thread.
    pub(crate) async fn ended(&self) -> Cause {
        let mut seen = self.0.clone();
        while seen.changed().await.is_ok() {}
        self.cause()
    }
}

/// Prepares this thread for its device.
pub(crate) fn use_here(device: Device) {
    if let Err(error) = device::make_current(device) {
        // Whatever is computed there fails, and the caller gets the error.
        tracing::warn!("{error}");
    }
}
