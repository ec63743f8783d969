//! `gavel serve`

use crate::environment::prepare_one_team;
use crate::model_args::ModelArgs;
use anyhow::{Context, Result, bail};
use axum::Router;
use clap::Args;
use gavel::terminal::{errln, outln};
use gavel_policy::{Head, ModelConfig};
use gavel_rollout::{AsyncEngine, RewardModel};
use gavel_serve::{Metrics, classifier, openai};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::emulate_default_handler;
use std::net::{IpAddr, TcpListener};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How long requests may still be answered once the model has failed. A test asks meanwhile, maybe on a busy machine.
const ANSWERS: Duration = Duration::from_secs(if cfg!(test) { 10 } else { 1 });

/// Serve a model over HTTP with the OpenAI API, or a classifier with the API of vLLM and text-embeddings-inference.
///
/// The paths are /v1/chat/completions and /v1/completions with streaming, tools and logprobs, /v1/models, /health, and
/// /metrics for Prometheus. A classifier answers /classify, /score, /rerank, /predict and /v1/embeddings, /v1/models and
/// /health. There is no authentication: everybody who reaches the port may use it.
#[derive(Args)]
#[command(
    after_help = "Example:\n  gavel serve -m runs/demo/checkpoints/step-000120 --port 8000\n  curl http://127.0.0.1:8000/v1/chat/completions -d '{\"messages\": [{\"role\": \"user\", \"content\": \"What is 2 + 3?\"}]}'"
)]
pub struct ServeArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// The address to listen on.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    host: IpAddr,
    /// The port; 0 takes a free one.
    #[arg(long, value_name = "N", default_value_t = 8000)]
    port: u16,
    /// The model's name in the API; by default its folder's.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

pub fn run(args: ServeArgs) -> Result<ExitCode> {
    prepare_one_team()?;
    // Bound before the model is loaded, which may take minutes.
    let listener = TcpListener::bind((args.host, args.port)).with_context(|| {
        format!("cannot listen on {}:{}\nhint: give another --port; 0 takes a free one", args.host, args.port)
    })?;
    let address = listener.local_addr().context("cannot read the server's address")?;
    let folder = args.model.model.canonicalize().unwrap_or_default();
    let of_folder = || folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = args.name.clone().or_else(of_folder).unwrap_or_else(|| "model".into());
    let (router, served) = service(&args.model, &name)?;
    // With several threads, a large body or answer of one client does not hold up the others.
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("cannot start the runtime")?.block_on(async {
        listener.set_nonblocking(true).context("cannot listen")?;
        let listener = tokio::net::TcpListener::from_std(listener).context("cannot listen")?;
        // Tests and scripts wait for this line.
        outln!("serving {name} at http://{address}/v1");
        answer(listener, router, &served, stopped()).await
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Answers requests until `stopped` has come or the model has failed.
async fn answer(
    listener: tokio::net::TcpListener,
    router: Router,
    served: &Served,
    stopped: impl Future<Output = Result<()>>,
) -> Result<()> {
    tokio::select! {
        never = gavel_serve::serve(listener, router) => match never {},
        stopped = stopped => stopped,
        failed = served.failed() => Err(failed),
    }
}

/// The model that is served.
enum Served {
    LanguageModel(AsyncEngine),
    Classifier(RewardModel),
}

impl Served {
    /// Waits until the model cannot answer any more and the requests under way have their errors, and gives the reason.
    async fn failed(&self) -> anyhow::Error {
        let error = match self {
            Self::LanguageModel(engine) => engine.ended().await.into(),
            Self::Classifier(model) => model.ended().await.into(),
        };
        tokio::time::sleep(ANSWERS).await;
        error
    }
}

/// The service of a model, which is a language model or a classifier.
fn service(model: &ModelArgs, name: &str) -> Result<(Router, Served)> {
    let folder = model.folder()?;
    match ModelConfig::load(&folder)?.head {
        Head::LanguageModel => {
            let metrics = Arc::new(Metrics::default());
            let engine = model.start(metrics.clone())?;
            Ok((openai::router(engine.clone(), metrics, name), Served::LanguageModel(engine)))
        }
        Head::Scores { labels } => {
            let labels = classifier::label_names(&folder, usize::try_from(labels).unwrap_or_default());
            let model = model.start_classifier()?;
            Ok((classifier::router(model.clone(), name, labels), Served::Classifier(model)))
        }
        Head::Values { .. } => bail!(
            "{} is a token classifier, which cannot be served\nhint: name it in [reward_model.NAME] with steps",
            folder.display()
        ),
    }
}

/// Waits for Ctrl-C or SIGTERM.
async fn stopped() -> Result<()> {
    let (sender, receiver) = tokio::sync::oneshot::channel();
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]).context("cannot wait for Ctrl-C")?;
    let wait = move || {
        let mut signals = signals.forever();
        signals.next();
        errln!("stopping after the step under way; a second signal stops at once");
        // The receiver is gone only when there is nothing to stop.
        let _ = sender.send(());
        if let Some(signal) = signals.next() {
            // Fails for a signal that has no default, and these have one.
            let _ = emulate_default_handler(signal);
        }
    };
    std::thread::Builder::new().name("gavel-signals".into()).spawn(wait).context("cannot wait for Ctrl-C")?;
    receiver.await.context("cannot wait for Ctrl-C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_policy::{Device, EngineConfig, Model};
    use gavel_text::TextModel;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    fn health(address: std::net::SocketAddr) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_server_whose_model_fails_says_so_and_ends() {
        let sizes = r#"{"vocab_size":259,"hidden_size":16,"intermediate_size":16,"num_hidden_layers":1,"num_attention_heads":2}"#;
        let model = Model::random(serde_json::from_str(sizes).unwrap(), 3, Device::Cpu).unwrap();
        let metrics = Arc::new(Metrics::default());
        let engine =
            AsyncEngine::start(model, TextModel::byte_level(), EngineConfig::default(), metrics.clone()).unwrap();
        let (router, served) = (openai::router(engine.clone(), metrics, "a"), Served::LanguageModel(engine.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let ended = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let fails = async {
                let before = tokio::task::spawn_blocking(move || health(address)).await.unwrap();
                assert!(before.starts_with("HTTP/1.1 200"), "{before}");
                assert!(engine.run(|_| panic!("a fault of the host")).await.is_err());
                engine.ended().await;
                let after = tokio::task::spawn_blocking(move || health(address)).await.unwrap();
                assert!(after.starts_with("HTTP/1.1 503") && after.contains("the model was stopped"), "{after}");
            };
            let ((), ended) = tokio::join!(fails, answer(listener, router, &served, std::future::pending()));
            ended
        });
        assert_eq!(ended.unwrap_err().to_string(), "the model was stopped");
    }
}
