//! The folder through which servers that draw get the weights of a run.

use crate::error::{PipelineError, Result};
use crate::run::updater::Updater;
use gavel_policy::{Dtype, PolicyError};
use gavel_rollout::{FleetCounts, PublishedWeights, RolloutError, ServedEngine, probe_prompt};
use gavel_runs::Metrics;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The weights of a run for servers that draw: a folder for each version, of which the newest two stay. It is removed
/// when this is dropped.
pub(crate) struct PublishedFolder {
    /// The folder of this run alone.
    folder: PathBuf,
    servers: ServedEngine,
    dtype: Dtype,
    last: Mutex<LastPublished>,
}

/// What the metrics say of the last version.
#[derive(Default)]
struct LastPublished {
    /// How far the log-probabilities of servers were from the policy's own, if a server was asked.
    mismatch: Option<f64>,
    /// The seconds until the last server had it, since the metrics were written last.
    seconds: f64,
}

impl PublishedFolder {
    /// Creates the folder of a run in `all`.
    pub(crate) fn create(all: &Path, servers: ServedEngine, dtype: Dtype) -> Result<Self> {
        // Not the folder that links lead to: servers may have others.
        let made = std::fs::create_dir_all(all).and_then(|()| std::path::absolute(all));
        let all = made.map_err(|error| failed("create", all, &error))?;
        let folder = all.join(servers.run_name());
        std::fs::create_dir(&folder).map_err(|error| failed("create", &folder, &error))?;
        Ok(Self { folder, servers, dtype, last: Mutex::default() })
    }

    /// Gives the servers the weights of `updater`, which have the version `version`, unless they have them.
    pub(crate) async fn publish(&self, updater: &Updater, version: u64) -> Result<()> {
        let (start, before) = (Instant::now(), self.servers.version().await);
        if before == Some(version) {
            return Ok(());
        }
        let (whole, partial) = (self.of_version(version), self.folder.join("partial"));
        remove(&partial)?;
        let exported = updater.export(partial.clone(), self.prompt(updater)).await;
        let (checksums, probe) = exported.map_err(|error| match error {
            PipelineError::Policy(error @ PolicyError::Io { .. }) => {
                PipelineError::Stopped(format!("rollout.engine.weights: {error}"))
            }
            error => error,
        })?;
        std::fs::rename(&partial, &whole).map_err(|error| failed("name", &whole, &error))?;
        let ties_embeddings = updater.ties_embeddings();
        let weights =
            PublishedWeights { version, folder: whole.clone(), dtype: self.dtype, ties_embeddings, checksums, probe };
        let mismatch = self.servers.publish(weights).await.map_err(RolloutError::from)?;
        // A server that comes back may be loading the version before.
        let kept = [Some(whole), before.map(|version| self.of_version(version))];
        let entries = std::fs::read_dir(&self.folder).map_err(|error| failed("read", &self.folder, &error))?;
        for entry in entries.flatten() {
            if !kept.contains(&Some(entry.path()))
                && let Err(error) = remove(&entry.path())
            {
                // A server on a network's disk may still read it. The end of the run removes it too.
                tracing::warn!("{error}");
            }
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = LastPublished { mismatch, seconds: last.seconds + start.elapsed().as_secs_f64() };
        Ok(())
    }

    /// Adds what happened at the servers since this was called last.
    pub(crate) fn describe(&self, metrics: &mut Metrics) {
        let FleetCounts { up, redrawn } = self.servers.take_counts();
        metrics.count("rollout/servers_up", up);
        metrics.count("rollout/redrawn", redrawn);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mismatch) = last.mismatch {
            metrics.set("off_policy/rollout_mismatch", mismatch);
        }
        metrics.set("time/publish", std::mem::take(&mut last.seconds));
    }

    /// The prompt of the probe.
    fn prompt(&self, updater: &Updater) -> Arc<[u32]> {
        probe_prompt(self.servers.text().tokenizer.vocab_size(), updater.positions())
    }

    fn of_version(&self, version: u64) -> PathBuf {
        self.folder.join(format!("step-{version:06}"))
    }
}

impl Drop for PublishedFolder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.folder) {
            tracing::warn!("cannot remove {}: {error}", self.folder.display());
        }
    }
}

/// Removes a folder, if it is there.
fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("remove", folder, &error)),
        _ => Ok(()),
    }
}

fn failed(what: &str, folder: &Path, error: &io::Error) -> PipelineError {
    PipelineError::Stopped(format!("rollout.engine.weights: cannot {what} {}: {error}", folder.display()))
}
