//! The limiter that a plugin's requests to servers wait for.

use crate::grant::error::GrantError;
use crate::outside::{CallMeter, Outside};
use gavel_endpoint::{Limiter, Turn};

/// The limiter that a plugin's requests to servers wait for.
#[derive(Clone)]
pub(crate) struct HttpLimit {
    name: String,
    limiter: Limiter,
}

impl HttpLimit {
    pub(crate) fn find(name: &str, outside: &Outside) -> Result<Self, GrantError> {
        let limiter = outside.limiter(name).map_err(|known| GrantError::NoLimiter { name: name.to_owned(), known })?;
        Ok(Self { name: name.to_owned(), limiter })
    }

    /// Waits for the turn of a request. The wait is not charged to the call, since others cause it.
    pub(super) async fn turn(&self, meter: &CallMeter) -> Turn {
        let turn = {
            let _queued = meter.pauses().queue();
            meter.waits().turn(&self.name, &self.limiter).await
        };
        meter.pauses().settle();
        turn
    }
}
