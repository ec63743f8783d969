//! Records answers on the call's tape, and reads them from it.

use crate::outside::{CallMeter, ChatBody, ChatError, ChatRequest, Held, Progress};
use crate::tape::{CallTape, RequestHash};
use bytes::Bytes;
use serde_json::value::RawValue;

/// The hash by which a request is found.
pub(super) async fn hash(kind: &str, request: &ChatRequest, progress: &mut Progress) -> Result<RequestHash, ChatError> {
    let pieces = request.pieces().map_err(|error| ChatError::InvalidRequest(error.to_string()))?;
    let mut hash = RequestHash::new(kind);
    for chunk in pieces.chunks() {
        hash.update(&chunk);
        progress.advance(chunk.len()).await;
    }
    Ok(hash)
}

/// The answer from the tape, or from `live`.
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
    // An error of the tape decides the call's outcome, whatever the guest does with it.
    let taped = tape.answer(request, name, live).await;
    let bytes = Bytes::from(taped.map_err(|error| ChatError::Unavailable(error.to_string()))?);
    let json = serde_json::from_slice::<Result<&RawValue, ChatError>>(&bytes)
        .map_err(|_| ChatError::Unavailable("the tape has an answer that cannot be parsed".into()))??;
    let held = match held {
        Some(held) => held,
        None => meter.hold(json.get().len())?,
    };
    Ok(ChatBody::slice(&bytes, json, held))
}

/// The answer as serde writes it, without parsing the body.
fn write(answer: Result<ChatBody, ChatError>) -> (Vec<u8>, Option<Held>) {
    match answer {
        Ok(body) => {
            let (json, held) = body.into_parts();
            ([b"{\"Ok\":", &json[..], b"}"].concat(), Some(held))
        }
        // Cannot fail: an error is two strings.
        Err(error) => (serde_json::to_vec(&Err::<(), _>(error)).unwrap_or_default(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Tape;
    use gavel_data::{ContentPart, Media, Message, Role};
    use serde_json::{Value, json};

    fn request() -> ChatRequest {
        let image = Media { media_type: "image/png".into(), bytes: vec![7; 100_000].into() };
        let shown = Message { content: vec![ContentPart::Media(image)], ..Message::new(Role::User, "") };
        ChatRequest { endpoint: "judge".into(), messages: vec![shown], options: Default::default() }
    }

    async fn ask(call: &CallTape, live: Result<ChatBody, ChatError>) -> Result<ChatBody, ChatError> {
        let meter = CallMeter::alone();
        let hash = hash("chat", &request(), &mut meter.progress()).await?;
        answer(call, hash, "x", &meter, async { live }).await
    }

    #[tokio::test]
    async fn a_tape_of_an_older_version_is_answered_from() {
        let folder = tempfile::tempdir().unwrap();
        let recorded = Tape::record(folder.path().into()).of_call("asks", "input", 7);
        let body = json!({"id": 4.5, "choices": []});
        let answers: [Result<Value, ChatError>; 2] = [Ok(body.clone()), Err(ChatError::Refused("no".into()))];
        for old in &answers {
            // The whole request and the answer as serde writes them.
            let mut hash = RequestHash::new("chat");
            hash.update(&serde_json::to_vec(&request()).unwrap());
            recorded.answer(hash, "x", async { serde_json::to_vec(old).unwrap() }).await.unwrap();
        }
        let call = Tape::replay(folder.path()).unwrap().of_call("asks", "input", 7);
        let nobody = || Err(ChatError::Unavailable("asked again".into()));
        assert_eq!(ask(&call, nobody()).await.ok().unwrap().json(), body.to_string());
        assert_eq!(ask(&call, nobody()).await.err(), Some(ChatError::Refused("no".into())));
    }

    #[tokio::test]
    async fn an_answer_is_replayed_as_the_text_that_came() {
        let (folder, meter) = (tempfile::tempdir().unwrap(), CallMeter::alone());
        let recorded = Tape::record(folder.path().into()).of_call("asks", "input", 7);
        let text = r#"{ "b": 4.50, "a": 123456789012345678901234567890 }"#;
        let body = ChatBody::parse(text.into(), meter.hold(text.len()).unwrap()).unwrap();
        assert_eq!(ask(&recorded, Ok(body)).await.ok().unwrap().json(), text);
        assert_eq!(ask(&recorded, Err(ChatError::NoMemory)).await.err(), Some(ChatError::NoMemory));
        let call = Tape::replay(folder.path()).unwrap().of_call("asks", "input", 7);
        let nobody = || Err(ChatError::Unavailable("asked again".into()));
        assert_eq!(ask(&call, nobody()).await.ok().unwrap().json(), text);
        assert_eq!(ask(&call, nobody()).await.err(), Some(ChatError::NoMemory));
    }
}
