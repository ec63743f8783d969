//! Answers on the call's tape.

use crate::call_meter::{CallMeter, Held, Progress};
use crate::chat::{ChatBody, ChatError, ChatRequest};
use crate::tape::{CallTape, RequestHash};
use bytes::Bytes;
use serde_json::value::RawValue;

/// What a request is found by.
pub(super) async fn hash(request: &ChatRequest, progress: &mut Progress) -> Result<RequestHash, ChatError> {
    let pieces = request.pieces().map_err(|error| ChatError::InvalidRequest(error.to_string()))?;
    let mut hash = RequestHash::new("chat");
    for chunk in pieces.chunks() {
        hash.update(&chunk);
        progress.advance(chunk.len()).await;
    }
    Ok(hash)
}

/// The answer of the tape, or that of `live`.
pub(super) async fn answer(
    tape: &CallTape,
    request: RequestHash,
    name: &str,
    meter: &CallMeter,
    live: impl Future<Output = Result<ChatBody, ChatError>>,
) -> Result<ChatBody, ChatError> {
    let mut held = None;
    let live = async {
        let (bytes, charged) = write(live.await);
        held = charged;
        bytes
    };
    // The call's outcome says so, whatever the guest makes of this.
    let taped = tape.answer(request, name, live).await;
    let bytes = Bytes::from(taped.map_err(|error| ChatError::Unavailable(error.to_string()))?);
    let json = serde_json::from_slice::<Result<&RawValue, ChatError>>(&bytes)
        .map_err(|_| ChatError::Unavailable("the tape has an answer that is not understood".into()))??;
    let held = match held {
        Some(held) => held,
        None => meter.hold(json.get().len())?,
    };
    Ok(ChatBody::slice(&bytes, json, held))
}

/// What serde makes of it, without parsing the body.
fn write(answer: Result<ChatBody, ChatError>) -> (Vec<u8>, Option<Held>) {
    match answer {
        Ok(body) => {
            let (json, held) = body.into_parts();
            ([b"{\"Ok\":", &json[..], b"}"].concat(), Some(held))
        }
        // An error is two texts, which always have JSON.
        Err(error) => (serde_json::to_vec(&Err::<(), _>(error)).unwrap_or_default(), None),
    }
}
