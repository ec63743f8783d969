//! A reward model from its folder.

use super::wrong::Wrong;
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_config::RewardModelTable;
use gavel_data::{ConversationScore, Message};
use gavel_plugin::{ChatError, RewardModel};
use gavel_policy::{Device, Model, ModelFolder, Phase, PolicyError, device, threads};
use gavel_rollout::{DeviceTurns, Part, RewardModelError};
use gavel_text::TextModel;
use std::path::Path;
use std::sync::Arc;

/// Loads the model in the folder `path`.
pub(super) fn load(
    table: &RewardModelTable,
    path: &Path,
    turns: impl FnOnce(Device) -> Arc<DeviceTurns> + Send,
) -> Result<gavel_rollout::RewardModel, Wrong> {
    threads::apart(|| {
        let device = device::select(&table.device).map_err(|error| match error {
            PolicyError::Device { name, what } => Wrong::new("device", format!("{name}: {what}")),
            other => Wrong::new("device", other),
        })?;
        if table.sleep && device == Device::Cpu {
            return Err(Wrong::new(
                "sleep",
                "the model is on the CPU, whose memory is that of the host\nhint: leave sleep out, or set device to a GPU",
            ));
        }
        let folder = ModelFolder::open(path).map_err(|error| Wrong::new("path", error))?;
        let text = TextModel::load_with(&folder.text, &folder.base);
        let mut text = text.map_err(|error| Wrong::new("path", error))?;
        if let Some(path) = &table.chat_template {
            let replaced = text.template.replaced_by(path);
            text.template = replaced.map_err(|error| Wrong::new("chat_template", error))?;
        }
        text.template.set_variables(table.chat_template_kwargs.clone());
        let model = Model::load(path, table.dtype.kind(), device);
        let model = model.map_err(|error| Wrong::new("path", error.during(Phase::Loading)))?;
        let started = gavel_rollout::RewardModel::start(model, text, table.batching(), turns(device));
        started.map_err(|error| unfit(error, table, &folder))
    })
}

/// The key and the file that do not fit.
fn unfit(error: RewardModelError, table: &RewardModelTable, folder: &ModelFolder) -> Wrong {
    let config = folder.base.join("config.json");
    let template_key = if table.chat_template.is_some() { "chat_template" } else { "path" };
    let RewardModelError::Unfit { part, what } = error else {
        let field = if matches!(error, RewardModelError::Text(_)) { template_key } else { "path" };
        return Wrong::new(field, error);
    };
    let of_config = |key: &str| Wrong::new("path", format!("{}: `{key}`: {what}", config.display()));
    match part {
        Part::Architectures => of_config("architectures"),
        Part::Labels => of_config("id2label"),
        Part::Vocabulary => of_config("vocab_size"),
        Part::Template => {
            let file = table.chat_template.as_deref().unwrap_or(&folder.text);
            Wrong::new(template_key, format!("{}: the chat template: {what}", file.display()))
        }
        Part::YesNo => Wrong::new("yes_no", format!("{}: {what}", folder.base.display())),
        Part::Steps => Wrong::new("steps", format!("{}: {what}", config.display())),
    }
}

/// A reward model, as plugins ask it.
pub(super) struct LocalRewardModel(pub(super) gavel_rollout::RewardModel);

impl RewardModel for LocalRewardModel {
    fn score(self: Arc<Self>, conversation: Vec<Message>) -> BoxFuture<'static, Result<ConversationScore, ChatError>> {
        let score = self.0.score(&conversation);
        async move { score.await.map_err(refused) }.boxed()
    }
}

/// Whose fault it is that there is no score.
fn refused(error: RewardModelError) -> ChatError {
    let what = error.to_string();
    if error.is_of_conversation() { ChatError::Refused(what) } else { ChatError::Unavailable(what) }
}
