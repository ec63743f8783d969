//! The weights that servers draw with, and how a server gets them.

use super::config::{ServedConfig, ServerKind};
use super::failure::Failure;
use super::messages::{probe_body, probed};
use super::paused::Paused;
use super::probe::Probe;
use super::server::Server;
use gavel_policy::Dtype;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The weights of a version of the policy, in a folder that the servers see at the same path.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedWeights {
    /// The version.
    pub version: u64,
    /// The checkpoint.
    pub folder: PathBuf,
    /// The dtype of the weights.
    pub dtype: Dtype,
    /// The checksum of each weight, by its name.
    pub checksums: BTreeMap<String, String>,
    /// What the policy says of a prompt.
    pub probe: Probe,
}

impl Server {
    /// Gives it these weights, under this name, and checks that it draws with them. `before` is the probe of the version
    /// that it had. No response is lost: those under way wait meanwhile. Returns how far the log-probabilities that it
    /// reports are from the policy's own.
    ///
    /// After a failure in the pause, it may have the new weights under the old name. So `leave_out` is called before it
    /// draws again: what it then draws is not to be read.
    pub(super) async fn take(
        &self,
        weights: &PublishedWeights,
        name: &str,
        before: Option<&Probe>,
        config: &ServedConfig,
        leave_out: impl FnOnce(&str),
    ) -> Result<f64, Failure> {
        let _alone = self.getting_weights.lock().await;
        self.is_healthy().await?;
        let paused = Paused::new(self);
        let taken = match self.pause().await {
            Ok(()) => self.take_paused(weights, name, config).await,
            failed => failed,
        };
        if let Err(failure) = &taken {
            leave_out(failure.why());
        }
        // Also after a failure: it may have other users.
        let resumed = paused.end().await;
        taken?;
        resumed?;
        let answer = self.answer_probe(probe_body(&weights.probe, self.kind), config.load_timeout).await?;
        weights.probe.check(&probed(&answer)?, before, config.tolerance).map_err(Failure::Refused)
    }

    async fn take_paused(&self, weights: &PublishedWeights, name: &str, config: &ServedConfig) -> Result<(), Failure> {
        self.load(&weights.folder, config.load_timeout).await?;
        // vLLM cannot clear the blocks that running requests hold.
        self.reset_cache(config.recompute_cache || self.kind == ServerKind::Vllm).await?;
        self.set_version(name).await?;
        match self.version().await? {
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
}
