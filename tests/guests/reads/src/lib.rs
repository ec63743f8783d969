//! Reads everything of a sample through every function, and asks the endpoint
//! `echo` for it. The note has the length and a hash of what arrived, as JSON.

use gavel_sdk::chat::Request;
use gavel_sdk::{ContentPart, Failure, Info, Media, NoParams, Reference, Reward, Sample, Score, Verdict};
use serde_json::{Value, json};

struct Reads;

impl Reward for Reads {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let mut seen = serde_json::Map::new();
        let mut see = |name: &str, bytes: &[u8]| seen.insert(name.into(), measure(bytes));
        let response = sample.response();
        see("response", response.as_bytes());
        for trajectory in sample.trajectories() {
            see("trajectory", trajectory.response().as_bytes());
            for message in trajectory.messages() {
                see("message", message.text().as_bytes());
            }
        }
        for message in sample.prompt() {
            see("prompt", message.text().as_bytes());
            for part in &message.content {
                if let ContentPart::Media(media) = part {
                    see("media", &media.read(0, u32::MAX));
                    see("pieces", &in_pieces(media));
                }
            }
        }
        see("truth", reference.require_ground_truth()?.as_bytes());
        see("column", reference.require::<String>("long")?.as_bytes());
        let columns: Value = serde_json::from_str(&reference.columns()).map_err(json_error)?;
        see("columns", columns["long"].as_str().unwrap_or_default().as_bytes());
        let reply = Request::new("echo").user(response).send()?;
        see("reply", reply.text().as_bytes());
        let body: Value = serde_json::from_str(&reply.body()).map_err(json_error)?;
        see("body", body["choices"][0]["message"]["content"].as_str().unwrap_or_default().as_bytes());
        Ok(Score::new(1.0).note(Value::Object(seen).to_string()).into())
    }
}

gavel_sdk::export_reward!(Reads);

fn json_error(error: serde_json::Error) -> Failure {
    Failure::internal(error.to_string())
}

/// An attachment, a power of two and one byte at a time.
fn in_pieces(media: &Media) -> Vec<u8> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < media.size() {
        bytes.extend(media.read(bytes.len() as u64, (1 << 16) + 1));
    }
    bytes
}

/// The length and the FNV-1a hash.
fn measure(bytes: &[u8]) -> Value {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    json!([bytes.len(), bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, step)])
}
