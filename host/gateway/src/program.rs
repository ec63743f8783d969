//! An agent that is a program or a server.

use crate::answer::Answer;
use crate::error::GatewayError;
use crate::gateway::Gateway;
use crate::process::{self, Printed};
use crate::registry::OpenSession;
use crate::remote;
use crate::session::MODEL;
use crate::task_text::{ModelAccess, task_text};
use gavel_data::{Blame, Outcome, Task};
use gavel_endpoint::{is_of_this_machine, tls_client_config};
use serde_json::{Map, Value};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};

/// What an agent is.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ProgramSource {
    /// A program with its arguments, a process for each sample, and the variables of this process that it sees.
    Command { command: Vec<String>, env: Vec<String> },
    /// A server that is posted each task.
    Url(String),
}

/// An agent that is to be used.
#[derive(Debug, Clone)]
pub struct ProgramSpec {
    /// Its table in the configuration.
    pub table: String,
    /// What it is.
    pub source: ProgramSource,
    /// What each task has beside its row.
    pub params: Map<String, Value>,
    /// The most bytes that it prints or answers.
    pub output: usize,
    /// How many samples it attempts at once.
    pub concurrency: NonZeroUsize,
}

/// An agent that is a program or a server.
pub struct ProgramAgent {
    spec: ProgramSpec,
    gateway: Gateway,
    places: Semaphore,
    /// For a server.
    client: Option<reqwest::Client>,
}

impl ProgramAgent {
    /// # Errors
    /// The program does not exist, or servers cannot be asked.
    pub fn new(spec: ProgramSpec, gateway: Gateway) -> Result<Self, GatewayError> {
        let agent = || spec.table.clone();
        let client = match &spec.source {
            ProgramSource::Command { command, .. } => {
                let program = command.first().map_or("", String::as_str);
                if !exists(program) {
                    return Err(GatewayError::NoProgram { agent: agent(), program: program.to_owned() });
                }
                None
            }
            ProgramSource::Url(url) => {
                let tls = tls_client_config().map_err(|source| GatewayError::Tls { agent: agent(), source })?;
                // A redirect would carry the key elsewhere, and so would a proxy for a server of this machine.
                let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
                let client = if is_of_this_machine(url) { client.no_proxy() } else { client };
                let client = client.tls_backend_preconfigured(tls).build();
                Some(client.map_err(|source| GatewayError::Client { agent: agent(), source })?)
            }
        };
        let places = Semaphore::new(spec.concurrency.get().min(Semaphore::MAX_PERMITS));
        Ok(Self { spec, gateway, places, client })
    }

    /// What it is, in a line.
    pub fn describe(&self) -> String {
        match &self.spec.source {
            ProgramSource::Command { command, .. } => format!("the program {}", command.join(" ")),
            ProgramSource::Url(url) => format!("the server at {url}"),
        }
    }

    /// The gateway that it asks.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Waits for a place among the samples that it attempts at once.
    pub(crate) async fn place(&self) -> Option<SemaphorePermit<'_>> {
        // It is never closed.
        self.places.acquire().await.ok()
    }

    /// Lets it attempt a task, and gives its answer, or why there is none.
    pub(crate) async fn attempt(
        &self,
        task: &Task,
        seed: u64,
        timeout: Duration,
        session: &OpenSession,
        printed: &Printed,
    ) -> Result<Answer, Outcome> {
        let Self { spec: ProgramSpec { source, params, output, .. }, client, .. } = self;
        let host = |what: String| Outcome::Fault { whose: Blame::Host, what };
        let write = |access| {
            let text = task_text(task, params, seed, access);
            text.map_err(|error| host(format!("the task cannot be written: {error}")))
        };
        match (source, client) {
            (ProgramSource::Url(url), Some(client)) => {
                let (base_url, api_key) = (session.base_url(), session.key());
                let timeout_seconds = timeout.as_secs_f64();
                let text = write(Some(ModelAccess { base_url, api_key, model: MODEL, timeout_seconds }))?;
                remote::attempt(client, url, text, *output).await
            }
            // A server has a client.
            (ProgramSource::Url(_), None) => Err(host("there is no client".to_owned())),
            (ProgramSource::Command { command, env }, _) => {
                let text = write(None)?;
                let file =
                    task_file(&text).map_err(|error| host(format!("the task's file cannot be written: {error}")))?;
                // The clients of other makers add `/v1` and `/v1beta` by themselves.
                let bare = session.base_url().trim_end_matches("/v1").to_owned();
                let own = [
                    ("OPENAI_BASE_URL", session.base_url().to_owned()),
                    ("OPENAI_API_KEY", session.key().to_owned()),
                    ("ANTHROPIC_BASE_URL", bare.clone()),
                    ("ANTHROPIC_API_KEY", session.key().to_owned()),
                    ("GOOGLE_GEMINI_BASE_URL", bare),
                    ("GEMINI_API_KEY", session.key().to_owned()),
                    ("GAVEL_BASE_URL", session.base_url().to_owned()),
                    ("GAVEL_API_KEY", session.key().to_owned()),
                    ("GAVEL_MODEL", MODEL.to_owned()),
                    ("GAVEL_TASK_FILE", file.path().display().to_string()),
                ];
                let passed = env.iter().filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)));
                let env = passed.chain(own.map(|(name, value)| (name.to_owned(), value))).collect();
                process::run(command, env, text, *output, printed).await?;
                Answer::read(&printed.last_line())
            }
        }
    }
}

/// A file with the task, which is removed when it is dropped.
fn task_file(text: &str) -> std::io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("gavel-task-").suffix(".json").tempfile()?;
    file.write_all(text.as_bytes())?;
    file.flush()?;
    Ok(file)
}

/// Whether there is such a program: a path, or a name in PATH.
fn exists(program: &str) -> bool {
    if program.contains('/') {
        return Path::new(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    !program.is_empty() && std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
