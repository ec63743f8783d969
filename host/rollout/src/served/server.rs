//! One server, and the requests that it is asked.

use super::config::ServerKind;
use super::failure::Failure;
use super::messages::{MASK_FIELD, probe_body};
use super::probe::Probe;
use gavel_endpoint::{TlsClientConfig, excerpt, is_of_this_machine, may_help, reason};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a connection is kept for the next request: servers close theirs after five seconds or more.
const IDLE: Duration = Duration::from_secs(4);

/// Where responses are drawn.
const GENERATE: &str = "inference/v1/generate";
/// How vLLM has all that is asked of it.
const VLLM_START: &str = "start it with VLLM_SERVER_DEV_MODE=1 and --enable-scale-out";
/// What vLLM with `--return-sampling-mask` calls it where it refuses a request that cuts nothing.
const VLLM_MASKS: &str = "sampling distribution replay";
/// The most bytes of an answer.
const BODY_BYTES: usize = 64 << 20;
/// How long a server may take to answer what it need not compute.
const QUICK: Duration = Duration::from_secs(10);
/// The same of what waits for a step of decoding, or reads all weights.
const SLOW: Duration = Duration::from_secs(120);

/// A server.
pub(super) struct Server {
    /// Its address, without a slash at its end.
    pub(super) url: String,
    pub(super) kind: ServerKind,
    /// Held while it gets weights, and is paused for it.
    pub(super) getting_weights: Mutex<()>,
    /// Whether this run has given it weights.
    pub(super) has_weights: AtomicBool,
    /// Whether requests may have a priority there, as far as is known.
    has_priorities: AtomicBool,
    tls: TlsClientConfig,
    /// For responses.
    drawing: Client,
    /// For all else, so that nothing of it waits for a connection with a response.
    control: Client,
}

impl Server {
    /// # Errors
    /// There can be no client.
    pub(super) fn new(url: &str, kind: ServerKind, tls: &TlsClientConfig) -> Result<Self, String> {
        let url = url.trim_end_matches('/').to_owned();
        let (drawing, control) = (client(&url, tls)?, client(&url, tls)?);
        Ok(Self {
            url,
            kind,
            getting_weights: Mutex::default(),
            has_weights: AtomicBool::new(false),
            has_priorities: AtomicBool::new(true),
            tls: tls.clone(),
            drawing,
            control,
        })
    }

    /// Asks for a response, for as long as it takes.
    pub(super) async fn generate(&self, body: Vec<u8>) -> Result<Vec<u8>, Failure> {
        read(self.request(&self.drawing, GENERATE, body)).await
    }

    /// Asks for the responses of a probe, before the requests that wait where the server has priorities: vLLM has them
    /// with `--scheduling-policy priority`. With a `salt`, it uses no keys and values that were kept without it. With
    /// `masks`, it reports which tokens could be drawn.
    pub(super) async fn answer_probe(
        &self,
        probe: &Probe,
        salt: Option<&str>,
        masks: bool,
        timeout: Duration,
    ) -> Result<Vec<u8>, Failure> {
        let body = |first| probe_body(probe, self.kind, first, salt, masks);
        let first = self.has_priorities.load(Ordering::Relaxed);
        let answer = match self.ask_probe(body(first), timeout).await {
            Err(Failure::Refused(what)) if first && what.contains("riority") => {
                self.has_priorities.store(false, Ordering::Relaxed);
                self.ask_probe(body(false), timeout).await
            }
            answer => answer,
        };
        answer.map_err(|failure| match failure {
            Failure::Refused(what) if self.kind == ServerKind::Vllm && what.contains(VLLM_MASKS) => Failure::Refused(
                format!("the probe: {what}\nhint: start it without --return-sampling-mask: this run asks for no masks"),
            ),
            Failure::Refused(what) if self.kind == ServerKind::Gavel && what.contains(MASK_FIELD) => {
                Failure::Refused(format!("the probe: {what}\nhint: start a `gavel serve` of the version of this run"))
            }
            Failure::Refused(what) if self.kind == ServerKind::Vllm => Failure::Refused(format!(
                "the probe: {what}\nhint: {VLLM_START}, and with a --max-model-len of at least {}",
                probe.prompt.len() + 1
            )),
            other => other.map(|what| format!("the probe: {what}")),
        })
    }

    async fn ask_probe(&self, body: Vec<u8>, timeout: Duration) -> Result<Vec<u8>, Failure> {
        read(self.request(&self.control, GENERATE, body).timeout(timeout)).await
    }

    /// Whether it works.
    pub(super) async fn is_healthy(&self) -> Result<(), Failure> {
        read(self.control.get(format!("{}/health", self.url)).timeout(QUICK)).await.map(drop)
    }

    /// Whether it is paused; `false` if it cannot tell.
    pub(super) async fn is_paused(&self) -> Result<bool, Failure> {
        Ok(self.get("is_paused").await?.is_some_and(|answer| answer["is_paused"] == true))
    }

    /// Draws nothing from now on; requests wait.
    pub(super) async fn pause(&self) -> Result<(), Failure> {
        let start = match self.kind {
            ServerKind::Gavel => "start it as gavel serve --trainable DIR",
            ServerKind::Vllm => VLLM_START,
        };
        // The first request that a server for other purposes refuses.
        self.post("pause?mode=keep", &json!({}), SLOW).await.map(drop).map_err(|failure| match failure {
            Failure::Refused(what) => Failure::Refused(format!("{what}\nhint: {start}")),
            other => other,
        })
    }

    /// Draws again.
    pub(super) async fn resume(&self) -> Result<(), Failure> {
        self.post("resume", &json!({}), SLOW).await.map(drop)
    }

    /// The same with a client of its own, for a runtime of its own.
    pub(super) fn resume_apart(&self) -> impl Future<Output = Result<(), Failure>> + Send + use<> {
        let (url, tls) = (self.url.clone(), self.tls.clone());
        async move {
            let client = client(&url, &tls).map_err(Failure::Lost)?;
            let request = client.post(format!("{url}/resume")).header("content-type", "application/json").body("{}");
            read(request.timeout(QUICK)).await.map(drop)
        }
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
        let answer = self.get("weight_info").await?;
        Ok(answer.and_then(|answer| answer["weight_version"].as_str().map(str::to_owned)))
    }

    /// The checksum of each weight, and the dtype of the weights, as `gavel serve` answers.
    pub(super) async fn checksums(&self) -> Result<Value, Failure> {
        json_of(&self.post("weight_checker", &json!({"action": "checksum"}), SLOW).await?)
    }

    /// What it answers at a path; `None` if it has no such path.
    async fn get(&self, path: &str) -> Result<Option<Value>, Failure> {
        let response = self.control.get(format!("{}/{path}", self.url)).timeout(QUICK).send().await;
        let response = response.map_err(|error| Failure::Lost(reason(&error)))?;
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(None);
        }
        json_of(&whole(response).await?).map(Some)
    }

    async fn post(&self, path: &str, body: &Value, timeout: Duration) -> Result<Vec<u8>, Failure> {
        let asked = read(self.request(&self.control, path, body.to_string().into_bytes()).timeout(timeout)).await;
        let path = path.split('?').next().unwrap_or_default();
        asked.map_err(|failure| failure.map(|what| format!("{path}: {what}")))
    }

    fn request(&self, client: &Client, path: &str, body: Vec<u8>) -> RequestBuilder {
        client.post(format!("{}/{path}", self.url)).header("content-type", "application/json").body(body)
    }
}

/// A client for a server. A server that redirects would get the requests of another one, and a server of this machine is
/// not behind a proxy.
fn client(url: &str, tls: &TlsClientConfig) -> Result<Client, String> {
    let builder = Client::builder().connect_timeout(CONNECT).pool_idle_timeout(IDLE).redirect(Policy::none());
    let builder = if is_of_this_machine(url) { builder.no_proxy() } else { builder };
    builder.tls_backend_preconfigured(tls.clone()).build().map_err(|error| error.to_string())
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
