//! The body of an answer, as the text that was received.

use crate::budget::NoMemory;
use crate::outside::call_meter::{CallMeter, Held};
use bytes::Bytes;
use serde_json::Value;
use serde_json::value::RawValue;

/// The body of a model's answer: JSON text, which is charged to the call that
/// asked. A tree of its values could be a hundred times as large.
pub struct ChatBody {
    json: Bytes,
    held: Held,
}

impl ChatBody {
    /// Checks the bytes that were received. `held` is the memory charged for them.
    ///
    /// # Errors
    /// They are not JSON.
    pub fn parse(bytes: Bytes, held: Held) -> Result<Self, serde_json::Error> {
        let text = serde_json::from_slice::<&RawValue>(&bytes)?.get();
        Ok(Self { json: bytes.slice_ref(text.as_bytes()), held })
    }

    /// A body with this value.
    ///
    /// # Errors
    /// The call has no memory for it.
    pub fn of(body: &Value, meter: &CallMeter) -> Result<Self, NoMemory> {
        let json = body.to_string();
        let held = meter.hold(json.len())?;
        Ok(Self { json: json.into(), held })
    }

    /// The JSON text.
    pub fn json(&self) -> &str {
        // `parse` has checked that it is JSON, which is UTF-8.
        std::str::from_utf8(&self.json).unwrap_or_default()
    }

    /// The same as bytes, which are shared.
    pub(crate) fn bytes(&self) -> Bytes {
        self.json.clone()
    }

    pub(crate) fn into_parts(self) -> (Bytes, Held) {
        (self.json, self.held)
    }

    /// A part of `bytes` that is known to be JSON.
    pub(crate) fn slice(bytes: &Bytes, json: &RawValue, held: Held) -> Self {
        Self { json: bytes.slice_ref(json.get().as_bytes()), held }
    }
}
