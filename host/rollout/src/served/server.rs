//! One server, and the requests that it is asked.

use super::config::ServerKind;
use gavel_endpoint::{excerpt, may_help, reason};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// The most bytes of an answer.
const BODY_BYTES: usize = 64 << 20;
/// How long a server may take to answer what it need not compute.
const QUICK: Duration = Duration::from_secs(10);
/// The same of what waits for a step of decoding, or reads all weights.
const SLOW: Duration = Duration::from_secs(120);

/// Why a server did not answer a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Failure {
    /// It is gone, or busy: another server, or another attempt, may answer.
    Lost(String),
    /// It does not take the request as it is, or answered it wrongly.
    Refused(String),
}

/// A server.
pub(super) struct Server {
    /// Its address, without a slash at its end.
    pub(super) url: String,
    pub(super) kind: ServerKind,
    http: reqwest::Client,
}

impl Server {
    pub(super) fn new(url: &str, kind: ServerKind, http: reqwest::Client) -> Self {
        Self { url: url.trim_end_matches('/').to_owned(), kind, http }
    }

    /// Asks for a response, for as long as it takes.
    pub(super) async fn generate(&self, body: Vec<u8>) -> Result<Vec<u8>, Failure> {
        read(self.request("inference/v1/generate", body)).await
    }

    /// Whether it works.
    pub(super) async fn is_healthy(&self) -> Result<(), Failure> {
        read(self.http.get(format!("{}/health", self.url)).timeout(QUICK)).await.map(drop)
    }

    /// Draws nothing from now on; requests wait.
    pub(super) async fn pause(&self) -> Result<(), Failure> {
        let start = match self.kind {
            ServerKind::Gavel => "gavel serve --trainable DIR",
            ServerKind::Vllm => "VLLM_SERVER_DEV_MODE=1 vllm serve --enable-scale-out",
        };
        // The first request that a server for other purposes refuses.
        self.post("pause?mode=keep", &json!({}), SLOW).await.map(drop).map_err(|failure| match failure {
            Failure::Refused(what) => Failure::Refused(format!("{what}\nhint: start it as {start}")),
            lost => lost,
        })
    }

    /// Draws again.
    pub(super) async fn resume(&self) -> Result<(), Failure> {
        self.post("resume", &json!({}), SLOW).await.map(drop)
    }

    /// Loads the weights in a folder.
    pub(super) async fn load(&self, folder: &Path, timeout: Duration) -> Result<(), Failure> {
        let body = json!({"method": "reload_weights", "kwargs": {"weights_path": folder}});
        self.post("collective_rpc", &body, timeout).await.map(drop)
    }

    /// Forgets the keys and values of prompts, and with `running` of responses under way.
    pub(super) async fn reset_cache(&self, running: bool) -> Result<(), Failure> {
        let answer =
            self.post(&format!("reset_prefix_cache?reset_running_requests={running}"), &json!({}), SLOW).await?;
        // Older servers answer nothing.
        let success = serde_json::from_slice::<Value>(&answer).ok().and_then(|answer| answer["success"].as_bool());
        match success {
            Some(false) => Err(Failure::Refused("it could not clear its cache of prompts".into())),
            _ => Ok(()),
        }
    }

    /// Names the version of its weights.
    pub(super) async fn set_version(&self, name: &str) -> Result<(), Failure> {
        self.post("update_weight_version", &json!({"new_version": name}), SLOW).await.map(drop)
    }

    /// The name of the version of its weights; `None` if it cannot tell.
    pub(super) async fn version(&self) -> Result<Option<String>, Failure> {
        let response = self.http.get(format!("{}/weight_info", self.url)).timeout(QUICK).send().await;
        let response = response.map_err(|error| Failure::Lost(reason(&error)))?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        let answer = json_of(&whole(response).await?)?;
        Ok(answer["weight_version"].as_str().map(str::to_owned))
    }

    /// The checksum of each weight, and the dtype of the weights, as `gavel serve` answers.
    pub(super) async fn checksums(&self) -> Result<Value, Failure> {
        json_of(&self.post("weight_checker", &json!({"action": "checksum"}), SLOW).await?)
    }

    async fn post(&self, path: &str, body: &Value, timeout: Duration) -> Result<Vec<u8>, Failure> {
        let asked = read(self.request(path, body.to_string().into_bytes()).timeout(timeout)).await;
        let named = |what: String| format!("{}: {what}", path.split('?').next().unwrap_or_default());
        asked.map_err(|failure| match failure {
            Failure::Lost(what) => Failure::Lost(named(what)),
            Failure::Refused(what) => Failure::Refused(named(what)),
        })
    }

    fn request(&self, path: &str, body: Vec<u8>) -> RequestBuilder {
        self.http.post(format!("{}/{path}", self.url)).header("content-type", "application/json").body(body)
    }
}

async fn read(request: RequestBuilder) -> Result<Vec<u8>, Failure> {
    whole(request.send().await.map_err(|error| Failure::Lost(reason(&error)))?).await
}

/// The body of an answer, if the request has succeeded.
async fn whole(mut response: reqwest::Response) -> Result<Vec<u8>, Failure> {
    let (status, mut bytes) = (response.status(), Vec::new());
    while let Some(chunk) = response.chunk().await.map_err(|error| Failure::Lost(reason(&error)))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > BODY_BYTES {
            return Err(Failure::Refused(format!("its answer has more than {BODY_BYTES} bytes")));
        }
    }
    match status {
        status if status.is_success() => Ok(bytes),
        status if may_help(status) => Err(Failure::Lost(format!("it answered {status}: {}", excerpt(&bytes)))),
        status => Err(Failure::Refused(format!("it answered {status}: {}", excerpt(&bytes)))),
    }
}

fn json_of(bytes: &[u8]) -> Result<Value, Failure> {
    let wrong = |error| Failure::Refused(format!("its answer is no JSON ({error}): {}", excerpt(bytes)));
    serde_json::from_slice(bytes).map_err(wrong)
}
