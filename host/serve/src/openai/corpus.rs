//! Reads the requests in `tests/corpus` with the types of this crate. The fuzzer itself is built without libtorch.

use super::chat;
use super::completions;
use super::settings::Settings;
use gavel_policy::Sampling;
use std::path::Path;

/// Whether responses can be drawn with these settings.
fn is_good(settings: &Settings) -> bool {
    let sampling = settings.check().and_then(|()| settings.sampling(Sampling::new(50, vec![2])));
    let choices = settings.choices(1);
    match (sampling, choices) {
        (Ok(sampling), Ok(choices)) => {
            assert!(sampling.validate().is_ok() && choices > 0);
            true
        }
        (Err(error), _) | (_, Err(error)) => {
            assert!(error.body()["error"]["message"].is_string());
            false
        }
    }
}

#[test]
fn every_request_is_read_or_refused() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/corpus/requests");
    let (mut chats, mut plain) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let body = std::fs::read(entry.unwrap().path()).unwrap();
        if let Ok(asked) = serde_json::from_slice::<chat::ChatRequest>(&body) {
            chats += usize::from(asked.check().is_ok() && is_good(&asked.settings));
        }
        if let Ok(asked) = serde_json::from_slice::<completions::CompletionRequest>(&body) {
            plain += usize::from(is_good(&asked.settings));
        }
    }
    assert!(chats > 0 && plain > 0, "{chats} chats and {plain} plain completions are answered");
}
