//! `gavel serve`

use crate::environment::prepare_one_team;
use crate::model_args::ModelArgs;
use anyhow::{Context, Result, bail};
use axum::Router;
use clap::Args;
use gavel::serve::{AddressArgs, Listening, block_on, serve_rewards, stopped};
use gavel::terminal::outln;
use gavel_policy::{Head, ModelConfig};
use gavel_rollout::{AsyncEngine, RewardModel};
use gavel_serve::{Metrics, Versions, classifier, openai, trainable};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How long requests may still be answered once the model has failed. A test asks meanwhile, maybe on a busy machine.
const ANSWERS: Duration = Duration::from_secs(if cfg!(test) { 10 } else { 1 });

/// Serve a model over HTTP with the OpenAI API, or a classifier with the API of vLLM and text-embeddings-inference; or
/// rewards.
///
/// The paths are /v1/chat/completions and /v1/completions with streaming, tools and logprobs, /v1/models, /health, and
/// /metrics for Prometheus. A classifier answers /classify, /score, /rerank, /predict and /v1/embeddings, /v1/models and
/// /health. Rewards answer /score, /verify for NeMo-Gym and /get_reward for OpenRLHF; /openapi.json describes them. There
/// is no authentication: everybody who reaches the port may use it.
#[derive(Args)]
#[command(
    after_help = "Example:\n  gavel serve -m runs/demo/checkpoints/step-000120 --port 8000\n  curl http://127.0.0.1:8000/v1/chat/completions -d '{\"messages\": [{\"role\": \"user\", \"content\": \"What is 2 + 3?\"}]}'\n  gavel serve --rewards rewards.toml"
)]
pub struct ServeArgs {
    #[command(flatten)]
    model: Option<ModelArgs>,
    /// In place of a model: a file with the tables [[reward]], [limits], [chat.NAME], [limiter.NAME] and [exec.NAME] of a
    /// run, [columns] as [data.columns], and [openrlhf].
    #[arg(long, value_name = "FILE", conflicts_with_all = ["model", "name"])]
    rewards: Option<PathBuf>,
    #[command(flatten)]
    address: AddressArgs,
    /// The model's name in the API; by default its folder's.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Let clients pause the server and replace its weights from a folder in DIR, as a run does with
    /// rollout.engine. Everybody who reaches the port may do so.
    #[arg(long, value_name = "DIR", conflicts_with = "rewards")]
    trainable: Option<PathBuf>,
}

pub fn run(args: ServeArgs) -> Result<ExitCode> {
    let model = match (args.model, args.rewards) {
        (Some(model), _) => model,
        (None, Some(rewards)) => return serve_rewards(&rewards, &args.address),
        (None, None) => bail!("there is nothing to serve\nhint: name a model with -m, or a file with --rewards"),
    };
    prepare_one_team()?;
    let (listener, address) = args.address.bind()?;
    let folder = model.model.canonicalize().unwrap_or_default();
    let of_folder = || folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = args.name.or_else(of_folder).unwrap_or_else(|| "model".into());
    let (router, served) = service(&model, &name, args.trainable.as_deref())?;
    let stopped = stopped()?;
    block_on(listener, router, async |listening| {
        // Tests and scripts wait for this line.
        outln!("serving {name} at http://{address}/v1");
        answer(listening, &served, stopped).await
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Answers requests until `stopped` has come or the model has failed.
async fn answer(listening: Listening, served: &Served, stopped: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::select! {
        never = listening => match never {},
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

/// The service of a model, which is a language model or a classifier. The weights of a language model may be replaced from
/// a folder in `trainable`.
fn service(model: &ModelArgs, name: &str, trainable: Option<&Path>) -> Result<(Router, Served)> {
    let folder = model.folder()?;
    match ModelConfig::load(&folder)?.head {
        Head::LanguageModel => {
            if let Some(folder) = trainable.filter(|folder| !folder.is_dir()) {
                bail!("--trainable {}: there is no such folder\nhint: create it first", folder.display());
            }
            let (metrics, versions) = (Arc::new(Metrics::default()), Arc::new(Versions::default()));
            let engine = model.start(metrics.clone())?;
            let router = openai::router_with(engine.clone(), metrics, name, versions.clone());
            let router = match trainable {
                None => router,
                Some(folder) => trainable::router(router, engine.clone(), versions, folder)
                    .with_context(|| format!("--trainable {}", folder.display()))?,
            };
            Ok((router, Served::LanguageModel(engine)))
        }
        Head::Scores { .. } if trainable.is_some() => {
            bail!("{} is a classifier, and --trainable is for a language model", folder.display())
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
            let listening = Box::pin(gavel_http::serve(listener, router));
            let ((), ended) = tokio::join!(fails, answer(listening, &served, std::future::pending()));
            ended
        });
        assert_eq!(ended.unwrap_err().to_string(), "the model was stopped");
    }
}
