//! A reward model at a server: vLLM's `/classify`, or `/predict` of text-embeddings-inference.

use super::wrong::Wrong;
use crate::config::{RewardEndpointConfig, RewardModelTable, RewardProtocol};
use backon::{ExponentialBuilder, Retryable};
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_data::{ConversationScore, Message, Role};
use gavel_plugin::{ChatError, RewardModel, tls_client_config};
use gavel_scoring::chat::{excerpt, may_help, reason, retry_after};
use gavel_text::{ChatTemplate, RenderOptions};
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The most bytes of an answer that are read.
const BODY_BYTES: usize = 1 << 20;
/// The first pause between two attempts, which doubles.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// The longest pause, unless the server asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A server with a classifier. It has no `Debug`: its headers hold the key.
pub(super) struct RewardEndpoint {
    config: RewardEndpointConfig,
    url: String,
    /// Without it, the server renders conversations.
    template: Option<ChatTemplate>,
    /// The variables of the server's template.
    variables: Map<String, Value>,
    http: reqwest::Client,
    places: Semaphore,
}

/// A failed attempt.
struct Failed {
    error: ChatError,
    /// The shortest pause before another attempt; `None` where another attempt cannot help.
    again: Option<Duration>,
}

/// vLLM's answer.
#[derive(Deserialize)]
struct Classified {
    data: Vec<Class>,
}

#[derive(Deserialize)]
struct Class {
    probs: Vec<f64>,
}

/// A label in the answer of text-embeddings-inference.
#[derive(Deserialize)]
struct Predicted {
    score: f64,
}

impl RewardEndpoint {
    /// Reads the key and the template; nothing is sent yet.
    pub(super) fn new(config: RewardEndpointConfig, table: &RewardModelTable) -> Result<Self, Wrong> {
        let (template, variables) = (table.chat_template.as_deref(), table.chat_template_kwargs.clone());
        let template = template.map(|path| ChatTemplate::chatml().replaced_by(path)).transpose();
        let mut template = template.map_err(|error| Wrong::new("chat_template", error))?;
        if let Some(template) = &mut template {
            template.set_variables(variables.clone());
            if let Some(token) = template.unknown_token() {
                let what = format!(
                    "the template writes `{token}`, which has no value here\nhint: set chat_template_kwargs = {{ {token} = \"…\" }} to that of the model's tokenizer_config.json"
                );
                return Err(Wrong::new("chat_template", what));
            }
        }
        let mut headers = HeaderMap::new();
        if let Some(variable) = &config.api_key_env {
            let key = std::env::var(variable).map_err(|_| {
                Wrong::new("api_key_env", format!("the variable {variable} is not set\nhint: set it in the environment of gavel, or remove api_key_env if the server needs no key"))
            })?;
            let mut value = HeaderValue::from_str(&format!("Bearer {}", key.trim())).map_err(|_| {
                Wrong::new(
                    "api_key_env",
                    format!("the variable {variable} has characters that an HTTP header cannot have"),
                )
            })?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let tls = tls_client_config().map_err(|error| Wrong::new("url", error))?;
        let http = reqwest::Client::builder()
            .default_headers(headers)
            .timeout(config.timeout)
            // A redirect would carry the key elsewhere.
            .redirect(Policy::none())
            .tls_backend_preconfigured(tls)
            .build()
            .map_err(|error| Wrong::new("url", format!("cannot make an HTTP client: {error}")))?;
        let url = format!("{}/{}", config.url.trim_end_matches('/'), config.protocol.path());
        let places = Semaphore::new(config.concurrency.get().min(Semaphore::MAX_PERMITS));
        Ok(Self { config, url, template, variables, http, places })
    }

    /// Asks for the score of a short conversation, so that a mistake is found before the run.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let probe = [Message::new(Role::User, "a"), Message::new(Role::Assistant, "b")];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Wrong::new("url", error))?;
        let body = self.body(&probe).map_err(|error| Wrong::new("chat_template", error))?;
        // One attempt: a server that is still loading is an error here.
        runtime.block_on(self.attempt(&body)).map(drop).map_err(|failed| Wrong::new("url", failed.error))
    }

    fn body(&self, conversation: &[Message]) -> Result<Vec<u8>, ChatError> {
        let refused = |error: &dyn ToString| ChatError::Refused(error.to_string());
        let rendered = match &self.template {
            None => None,
            Some(template) => {
                let text = template.render(conversation, &RenderOptions::default());
                Some(text.map_err(|error| refused(&error))?)
            }
        };
        let mut body = match (self.config.protocol, rendered) {
            (RewardProtocol::Vllm, None) if self.variables.is_empty() => {
                json!({"messages": conversation, "add_special_tokens": false})
            }
            (RewardProtocol::Vllm, None) => {
                json!({"messages": conversation, "add_special_tokens": false, "chat_template_kwargs": self.variables})
            }
            (RewardProtocol::Vllm, Some(text)) => json!({"input": text, "add_special_tokens": false}),
            // The validation of this protocol requires a template.
            (RewardProtocol::Tei, text) => json!({"inputs": text.unwrap_or_default(), "raw_scores": true}),
        };
        if let (RewardProtocol::Vllm, Value::Object(fields)) = (self.config.protocol, &mut body) {
            // The score itself, not a sigmoid of it; `activation` is the name in older versions.
            for name in ["use_activation", "activation"] {
                fields.insert(name.to_owned(), false.into());
            }
            fields.extend(self.config.model.clone().map(|model| ("model".to_owned(), model.into())));
        }
        serde_json::to_vec(&body).map_err(|error| refused(&error))
    }

    async fn attempt(&self, body: &[u8]) -> Result<f64, Failed> {
        let lost =
            |error: reqwest::Error| Failed { error: self.unavailable(&reason(&error)), again: Some(Duration::ZERO) };
        let request = self.http.post(&self.url).header("content-type", "application/json").body(body.to_vec());
        let mut response = request.send().await.map_err(lost)?;
        let (status, after) = (response.status(), retry_after(response.headers(), SystemTime::now()));
        let mut bytes = Vec::new();
        while bytes.len() <= BODY_BYTES
            && let Some(chunk) = response.chunk().await.map_err(lost)?
        {
            bytes.extend_from_slice(&chunk);
        }
        if bytes.len() > BODY_BYTES {
            let error = self.unavailable(&format!("its answer has more than {BODY_BYTES} bytes"));
            return Err(Failed { error, again: None });
        }
        if status.is_success() {
            return self.read(&bytes).map_err(|what| Failed { error: self.unavailable(&what), again: None });
        }
        let what = format!("it answered {status}: {}", excerpt(&bytes));
        Err(match may_help(status) {
            true => Failed { error: self.unavailable(&what), again: Some(after.unwrap_or_default()) },
            false => Failed { error: ChatError::Refused(format!("{}: {what}", self.url)), again: None },
        })
    }

    /// The only score in an answer.
    fn read(&self, body: &[u8]) -> Result<f64, String> {
        let broken = |error| format!("its answer is not a classification ({error}): {}", excerpt(body));
        let scores: Vec<f64> = match self.config.protocol {
            RewardProtocol::Vllm => {
                let Classified { data } = serde_json::from_slice(body).map_err(broken)?;
                data.into_iter().flat_map(|class| class.probs).collect()
            }
            RewardProtocol::Tei => {
                let predicted: Vec<Predicted> = serde_json::from_slice(body).map_err(broken)?;
                predicted.into_iter().map(|label| label.score).collect()
            }
        };
        match *scores {
            [score] if score.is_finite() => Ok(score),
            [score] => Err(format!("its score is {score}")),
            _ => Err(format!("its answer has {} scores, and a reward model has one label", scores.len())),
        }
    }

    fn unavailable(&self, what: &str) -> ChatError {
        ChatError::Unavailable(format!("{}: {what}", self.url))
    }

    async fn ask(&self, body: Vec<u8>) -> Result<f64, ChatError> {
        let _place = self.places.acquire().await.map_err(|_| self.unavailable("it was shut down"))?;
        let pauses = ExponentialBuilder::default()
            .with_min_delay(FIRST_PAUSE)
            .with_max_delay(LONGEST_PAUSE)
            .with_max_times(self.config.retries)
            .with_jitter();
        let attempts = (|| self.attempt(&body))
            .retry(pauses)
            .when(|failed: &Failed| failed.again.is_some())
            .adjust(|failed, pause| Some(pause?.max(failed.again?)))
            .notify(|failed, pause| tracing::debug!("{}; again in {:.1} s", failed.error, pause.as_secs_f64()));
        match timeout(self.config.deadline, attempts).await {
            Ok(score) => score.map_err(|failed| failed.error),
            Err(_) => {
                let seconds = self.config.deadline.as_secs_f64();
                Err(self.unavailable(&format!("no answer in {seconds} s, with all attempts")))
            }
        }
    }
}

impl RewardModel for RewardEndpoint {
    fn score(self: Arc<Self>, conversation: Vec<Message>) -> BoxFuture<'static, Result<ConversationScore, ChatError>> {
        let body = self.body(&conversation);
        async move { self.ask(body?).await.map(ConversationScore::whole) }.boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{RewardModelSource, RewardModelTable};
    use std::io::{BufRead, BufReader, Read, Write};
    use std::net::TcpListener;
    use std::thread::JoinHandle;

    /// A server that gives these answers, one after the other. Returns its address, and a thread with the bodies that
    /// it received.
    fn serve(answers: Vec<(&'static str, &'static str)>) -> (String, JoinHandle<Vec<Value>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answer = move || {
            let answer = |(status, body): (&str, &str)| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let head: Vec<String> =
                    reader.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
                let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                let mut asked = vec![0; length.parse().unwrap()];
                reader.read_exact(&mut asked).unwrap();
                let length = body.len();
                write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
                    .unwrap();
                serde_json::from_slice(&asked).unwrap()
            };
            answers.into_iter().map(answer).collect()
        };
        (url, std::thread::spawn(answer))
    }

    fn endpoint(url: &str, more: &str) -> Arc<RewardEndpoint> {
        let table: RewardModelTable = toml::from_str(&format!("url = {url:?}\n{more}")).unwrap();
        let RewardModelSource::Endpoint(config) = table.source() else { panic!("it has a url") };
        Arc::new(RewardEndpoint::new(config, &table).unwrap_or_else(|wrong| panic!("{}", wrong.what)))
    }

    const DAY: &str = "chat_template_kwargs = { day = \"1 May\" }";

    fn conversation() -> Vec<Message> {
        vec![Message::new(Role::User, "Hi."), Message::new(Role::Assistant, "Hello!")]
    }

    #[tokio::test]
    async fn a_busy_server_is_asked_again_and_a_refusal_is_not() {
        let scored =
            r#"{"object": "list", "data": [{"index": 0, "label": "LABEL_0", "probs": [-1.5], "num_classes": 1}]}"#;
        let busy = ("503 Service Unavailable\r\nretry-after: 0.01", "loading");
        let (url, server) = serve(vec![busy, ("429 Too Many Requests", "slow down"), ("200 OK", scored)]);
        let found = endpoint(&url, &format!("model = \"rm\"\n{DAY}")).score(conversation()).await;
        assert_eq!(found, Ok(ConversationScore::whole(-1.5)));
        let asked = server.join().unwrap();
        assert_eq!(asked[0], asked[2]);
        assert_eq!((&asked[0]["model"], &asked[0]["use_activation"]), (&json!("rm"), &json!(false)));
        assert_eq!(asked[0]["chat_template_kwargs"], json!({"day": "1 May"}));
        assert_eq!(asked[0]["messages"][1], json!({"role": "assistant", "content": "Hello!"}));

        let (url, server) = serve(vec![("400 Bad Request", "it is too long")]);
        let refused = endpoint(&url, "").score(conversation()).await.unwrap_err();
        let says = format!("{url}/classify: it answered 400 Bad Request: it is too long");
        assert_eq!((refused, server.join().unwrap().len()), (ChatError::Refused(says), 1));
        let (url, server) = serve(vec![busy, busy]);
        let gone = endpoint(&url, "retries = 1").score(conversation()).await.unwrap_err();
        assert!(
            matches!(&gone, ChatError::Unavailable(what) if what.ends_with("503 Service Unavailable: loading")),
            "{gone}"
        );
        assert_eq!(server.join().unwrap().len(), 2);
    }

    #[tokio::test]
    async fn an_answer_that_is_no_score_is_never_a_zero() {
        for (answer, says) in [
            ("{}", "its answer is not a classification (missing field `data`"),
            (r#"{"data": [{"probs": [0.5, 0.5]}]}"#, "its answer has 2 scores, and a reward model has one label"),
            (r#"{"data": []}"#, "its answer has 0 scores"),
            (r#"{"data": [{"probs": [1e999]}]}"#, "its answer is not a classification (number out of range"),
            ("<html>", "its answer is not a classification (expected value"),
        ] {
            let (url, server) = serve(vec![("200 OK", answer)]);
            let error = endpoint(&url, "").score(conversation()).await.unwrap_err();
            assert!(matches!(&error, ChatError::Unavailable(what) if what.contains(says)), "{answer}: {error}");
            server.join().unwrap();
        }
    }

    #[tokio::test]
    async fn a_server_of_texts_gets_the_rendered_conversation() {
        let folder = tempfile::tempdir().unwrap();
        let template = folder.path().join("chat.jinja");
        std::fs::write(&template, "{{ day }}{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}")
            .unwrap();
        let (url, server) = serve(vec![("200 OK", r#"[{"score": 2.25, "label": "LABEL_0"}]"#)]);
        let endpoint = endpoint(&url, &format!("protocol = \"tei\"\nchat_template = {template:?}\n{DAY}"));
        assert_eq!(endpoint.score(conversation()).await, Ok(ConversationScore::whole(2.25)));
        let asked = json!({"inputs": "1 May[user] Hi.[assistant] Hello!", "raw_scores": true});
        assert_eq!(server.join().unwrap(), [asked]);
    }
}
