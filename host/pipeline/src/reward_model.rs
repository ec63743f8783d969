//! The reward models of a run.

use crate::config::RewardModelTable;
use crate::error::{PipelineError, Result};
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_data::Message;
use gavel_plugin::{ChatError, RewardModel};
use gavel_policy::{Model, ModelFolder, Phase, device, threads};
use gavel_rollout::RewardModelError;
use gavel_text::TextModel;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Loads the models of these tables.
///
/// # Errors
/// A checkpoint is damaged or of another kind, its template does not fit, or its device is not there. The error names
/// the table.
pub fn load_reward_models(
    tables: &BTreeMap<String, RewardModelTable>,
) -> Result<BTreeMap<String, Arc<dyn RewardModel>>> {
    let loaded = tables.iter().map(|(name, table)| {
        let model = load(table).map_err(|error| PipelineError::Stopped(format!("reward_model.{name}: {error}")))?;
        let model: Arc<dyn RewardModel> = Arc::new(Asked(model));
        Ok((name.clone(), model))
    });
    loaded.collect()
}

fn load(table: &RewardModelTable) -> Result<gavel_rollout::RewardModel> {
    threads::apart(|| {
        let device = device::select(&table.device)?;
        let folder = ModelFolder::open(&table.path)?;
        let mut text = TextModel::load_with(&folder.text, &folder.base)?;
        if let Some(path) = &table.chat_template {
            text.template = text.template.replaced_by(path)?;
        }
        let model =
            Model::load(&table.path, table.dtype.kind(), device).map_err(|error| error.during(Phase::Loading))?;
        let started = gavel_rollout::RewardModel::start(model, text, table.batching());
        started.map_err(|error| PipelineError::Stopped(error.to_string()))
    })
}

/// A reward model, as plugins ask it.
struct Asked(gavel_rollout::RewardModel);

impl RewardModel for Asked {
    fn score(self: Arc<Self>, conversation: Vec<Message>) -> BoxFuture<'static, std::result::Result<f64, ChatError>> {
        let score = self.0.score(&conversation);
        async move { score.await.map_err(refused) }.boxed()
    }
}

/// Whose fault it is that there is no score.
fn refused(error: RewardModelError) -> ChatError {
    let what = error.to_string();
    if error.is_of_conversation() { ChatError::Refused(what) } else { ChatError::Unavailable(what) }
}
