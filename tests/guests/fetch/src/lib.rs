//! Asks servers and gives their answers in the note, as JSON. It follows
//! redirects to any address.

use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use serde_json::{Value, json};
use wasip2::clocks::monotonic_clock;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{Fields, IncomingResponse, OutgoingRequest, Scheme};
use wasip2::io::poll;
use wasip2::io::streams::StreamError;

struct Fetch {
    params: Params,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// `http://` or `https://` URLs.
    urls: Vec<String>,
    /// How long to wait for an answer, in milliseconds; forever by default.
    patience: Option<u64>,
    /// Whether a URL that does not answer is a failure instead of a note.
    #[serde(default)]
    must: bool,
    /// Whether the note has the length of a body and the sum of its bytes
    /// instead of the body.
    #[serde(default)]
    measure: bool,
}

impl Reward for Fetch {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn score(&self, _: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        let mut seen = Vec::new();
        for url in &self.params.urls {
            match fetch(url, &self.params) {
                Ok(answer) => seen.push(answer),
                Err(error) if self.params.must => return Err(Failure::unavailable(error)),
                Err(error) => seen.push(json!({ "error": error })),
            }
        }
        Ok(Score::new(1.0).note(Value::Array(seen).to_string()).into())
    }
}

gavel_sdk::export_reward!(Fetch);

fn fetch(url: &str, params: &Params) -> Result<Value, String> {
    let mut url = url.to_owned();
    for _ in 0..5 {
        let response = ask(&url, params.patience)?;
        let location = response.headers().get("location");
        match location.first() {
            Some(location) => url = String::from_utf8_lossy(location).into_owned(),
            None => {
                let body = body(&response)?;
                let body = match params.measure {
                    true => json!([body.len(), body.iter().map(|byte| u64::from(*byte)).sum::<u64>()]),
                    false => json!(String::from_utf8_lossy(&body)),
                };
                return Ok(json!({ "status": response.status(), "body": body }));
            }
        }
    }
    Err("too many redirects".into())
}

fn ask(url: &str, patience: Option<u64>) -> Result<IncomingResponse, String> {
    let (scheme, rest) = url.split_once("://").ok_or("no scheme")?;
    let scheme = if scheme == "https" { Scheme::Https } else { Scheme::Http };
    let at = rest.find('/').unwrap_or(rest.len());
    let request = OutgoingRequest::new(Fields::new());
    request.set_scheme(Some(&scheme)).map_err(|()| "bad scheme")?;
    request.set_authority(Some(&rest[..at])).map_err(|()| "bad authority")?;
    request.set_path_with_query(Some(if at == rest.len() { "/" } else { &rest[at..] })).map_err(|()| "bad path")?;
    let answer = outgoing_handler::handle(request, None).map_err(|error| format!("{error:?}"))?;
    let answered = answer.subscribe();
    match patience {
        None => answered.block(),
        Some(patience) => {
            let timer = monotonic_clock::subscribe_duration(patience * 1_000_000);
            if poll::poll(&[&answered, &timer]) == [1] {
                return Err("no answer in time".into());
            }
        }
    }
    match answer.get() {
        Some(Ok(response)) => response.map_err(|error| format!("{error:?}")),
        _ => Err("the answer was not ready".into()),
    }
}

fn body(response: &IncomingResponse) -> Result<Vec<u8>, String> {
    let body = response.consume().map_err(|()| "the body was taken")?;
    let stream = body.stream().map_err(|()| "the body was read")?;
    let mut bytes = Vec::new();
    loop {
        match stream.blocking_read(65_536) {
            Ok(part) => bytes.extend(part),
            Err(StreamError::Closed) => return Ok(bytes),
            Err(error) => return Err(format!("{error:?}")),
        }
    }
}
