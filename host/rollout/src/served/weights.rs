//! The weights that servers draw with, and how a server gets them.

use super::config::{ServedConfig, ServerKind};
use super::failure::Failure;
use super::masks::AskedMasks;
use super::messages::probed;
use super::paused::{Paused, Resuming};
use super::probe::{Found, Mismatch, Probe, TEMPERATURE};
use super::run_name::RunName;
use super::server::Server;
use gavel_policy::Dtype;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

/// The weights of a version of the policy, in a folder that the servers see at the same path.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedWeights {
    /// The version.
    pub version: u64,
    /// The checkpoint.
    pub folder: PathBuf,
    /// The dtype of the weights.
    pub dtype: Dtype,
    /// Whether the output head is the embedding of tokens.
    pub ties_embeddings: bool,
    /// The checksum of each weight, by its name.
    pub checksums: BTreeMap<String, String>,
    /// What the policy says of a prompt.
    pub probe: Probe,
}

/// How a run gives weights to its servers.
pub(super) struct Giving<'a> {
    /// The run.
    pub(super) run: &'a RunName,
    /// The probe of the version before.
    pub(super) before: Option<&'a Probe>,
    pub(super) config: &'a ServedConfig,
    pub(super) resuming: &'a Resuming,
}

impl Server {
    /// Gives it these weights, and checks that it draws with them. No response is lost: those under way wait meanwhile.
    /// Returns how far the log-probabilities that it reports are from the policy's own.
    ///
    /// After a failure in the pause, it may have the new weights under the old name. So `leave_out` is called before it
    /// draws again: what it then draws is not to be read.
    pub(super) async fn take(
        &self,
        weights: &PublishedWeights,
        giving: &Giving<'_>,
        leave_out: impl FnOnce(&str),
    ) -> Result<f64, Failure> {
        let _alone = self.getting_weights.lock().await;
        self.is_healthy().await?;
        if self.has_weights.load(Ordering::Relaxed)
            && let Some(name) = self.version().await?
            && giving.run.is_of_another(&name)
        {
            return Err(Failure::taken(&name));
        }
        let paused = Paused::new(self, giving.resuming);
        let taken = match self.pause().await {
            Ok(()) => self.take_paused(weights, giving).await,
            failed => failed,
        };
        if let Err(failure) = &taken {
            leave_out(failure.why());
        }
        // Also after a failure: it may have other users.
        let resumed = paused.end().await;
        taken?;
        resumed?;
        self.probe(weights, giving).await
    }

    async fn take_paused(&self, weights: &PublishedWeights, giving: &Giving<'_>) -> Result<(), Failure> {
        let (config, name) = (giving.config, giving.run.of_version(weights.version));
        self.load(&weights.folder, config.load_timeout).await?;
        // vLLM cannot clear the blocks that running requests hold.
        self.reset_cache(config.recompute_cache || self.kind == ServerKind::Vllm).await?;
        self.set_version(&name).await?;
        self.has_weights.store(true, Ordering::Relaxed);
        match self.version().await? {
            Some(other) if giving.run.is_of_another(&other) => return Err(Failure::taken(&other)),
            Some(other) if other != name => {
                return Err(Failure::Refused(format!("its weights have the version {other:?} after {name:?} was set")));
            }
            _ => {}
        }
        match self.kind {
            ServerKind::Gavel => self.compare(weights).await,
            ServerKind::Vllm => Ok(()),
        }
    }

    /// Compares the weights that the server has with those that were written, if both have the same dtype.
    async fn compare(&self, weights: &PublishedWeights) -> Result<(), Failure> {
        let found = self.checksums().await?;
        if found["dtype"] != weights.dtype.to_string() {
            return Ok(());
        }
        let differs = |(name, sum): &(&String, &String)| found["checksums"][name.as_str()] != sum.as_str();
        let mut differ = weights.checksums.iter().filter(differs);
        match differ.next() {
            None => Ok(()),
            Some((first, _)) => Err(Failure::Refused(format!(
                "{} of its {} weights are not those that were written, the first: {first}",
                1 + differ.count(),
                weights.checksums.len()
            ))),
        }
    }

    /// Checks that it draws from the policy's distribution.
    async fn probe(&self, weights: &PublishedWeights, giving: &Giving<'_>) -> Result<f64, Failure> {
        let Mismatch { mean, found } = match self.probe_once(weights, giving, None).await? {
            Ok(mean) => return Ok(mean),
            Err(mismatch) => mismatch,
        };
        // Without what it has kept, the likely reason shows.
        let salt = giving.run.of_version(weights.version);
        let keeps_prompts = found != Found::OtherTemperature
            && self.kind == ServerKind::Vllm
            && self.probe_once(weights, giving, Some(&salt)).await?.is_ok();
        let why = match found {
            _ if keeps_prompts => {
                "without its cache of prompts it is right: the server kept the cache of the version before, though it was asked to clear it\nhint: does something between the run and the server answer for it? start it with --no-enable-prefix-caching"
            }
            Found::OtherTemperature => {
                "this is what temperature 1 gives\nhint: start vLLM with --logprobs-mode processed_logprobs"
            }
            _ if weights.ties_embeddings && self.kind == ServerKind::Vllm => {
                "the model's embeddings are tied, and vLLM on the CPU then keeps the output head of the weights that it started with\nhint: train a model with tie_word_embeddings = false, or draw with gavel serve"
            }
            Found::VersionBefore => {
                "this is what the version before gives\nhint: the server did not load the weights; is it one that others reload, too?"
            }
            Found::Other => {
                "\nhint: does the server have another model, dtype or quantisation? tolerance is the largest mean difference that is allowed"
            }
        };
        let joint = if why.starts_with('\n') { "" } else { ": " };
        Err(Failure::Refused(format!(
            "log-probabilities at temperature {TEMPERATURE} differ by {mean:.2e} on average from the policy's own{joint}{why}"
        )))
    }

    async fn probe_once(
        &self,
        weights: &PublishedWeights,
        giving: &Giving<'_>,
        salt: Option<&str>,
    ) -> Result<Result<f64, Mismatch>, Failure> {
        let masks = AskedMasks::of(giving.config, self.kind);
        let answer = self.answer_probe(&weights.probe, salt, masks.is_some(), giving.config.load_timeout).await?;
        Ok(weights.probe.check(&probed(&answer, masks)?, giving.before, giving.config.tolerance))
    }
}
