//! Pairs for a reward model: whole conversations, as it reads them when it is asked.

use super::method::{Models, PairMethod};
use super::pair_row::{PairRow, RowPlace};
use crate::commands::ShownText;
use crate::error::Result;
use crate::rows::{NoTokens, Parted, PromptLimit};
use crate::run::Setup;
use gavel_agent::PromptOptions;
use gavel_config::{LearningConfig, Overlong, RewardModelTrainTable};
use gavel_data::Message;
use gavel_text::{RenderOptions, TextModel};
use gavel_train::{ConversationPair, PairStats, TrainError, Trainer};

impl PairMethod for RewardModelTrainTable {
    type Pair = ConversationPair;
    const NEEDS_REFERENCE: bool = false;

    fn learning(&self, pairs: usize) -> LearningConfig {
        self.learning(pairs)
    }

    fn batch_size(&self) -> usize {
        self.batch_size
    }

    fn pair(setup: &Setup, row: PairRow, at: &RowPlace<'_>, _: &Parted) -> Result<Option<ConversationPair>> {
        let PairRow { prompt, chosen, rejected, margin, options } = row;
        let ids = |answer: &[Message]| {
            let ids = conversation_ids(&[&prompt[..], answer].concat(), &options, &setup.text, setup.limit);
            let ids = setup.limit.usable(ids).map_err(|what| at.bad_row(what))?;
            ids.map_or(Ok(None), |ids| cut(ids, setup.limit, at))
        };
        let sides = ids(&chosen)?.zip(ids(&rejected)?);
        Ok(sides.map(|(chosen, rejected)| ConversationPair { chosen, rejected, margin }))
    }

    fn shown(ConversationPair { chosen, rejected, .. }: &ConversationPair, text: &TextModel) -> Result<Vec<ShownText>> {
        let side = |name: &str, ids: &[u32]| ShownText::read(Some(name.to_owned()), ids, text);
        Ok(vec![side("chosen", chosen)?, side("rejected", rejected)?])
    }

    fn lengths(ConversationPair { chosen, rejected, .. }: &ConversationPair) -> (usize, usize) {
        let common = common(chosen, rejected);
        (common, chosen.len().max(rejected.len()) - common)
    }

    fn row(ConversationPair { chosen, rejected, .. }: &ConversationPair) -> (&[u32], usize) {
        let common = common(chosen, rejected);
        (&chosen[..common], chosen.len() + rejected.len() - 2 * common)
    }

    fn step(
        &self,
        trainer: &mut Trainer,
        models: Models<'_>,
        pairs: &[ConversationPair],
        learning_rate: f64,
    ) -> std::result::Result<PairStats, TrainError> {
        trainer.reward_model_step(models.model, pairs, &self.loss(), learning_rate)
    }

    fn measure(
        &self,
        trainer: &Trainer,
        models: Models<'_>,
        pairs: &[ConversationPair],
    ) -> std::result::Result<PairStats, TrainError> {
        trainer.reward_model_stats(models.model, pairs, &self.loss())
    }
}

/// How many tokens both begin with.
fn common(chosen: &[u32], rejected: &[u32]) -> usize {
    chosen.iter().zip(rejected).take_while(|(a, b)| a == b).count()
}

/// The tokens of a conversation, as a reward model reads them: without the beginning of a further turn, and without
/// tools.
fn conversation_ids(
    messages: &[Message],
    options: &PromptOptions,
    text: &TextModel,
    limit: PromptLimit,
) -> std::result::Result<Vec<u32>, NoTokens> {
    let options = RenderOptions { tools: &[], add_generation_prompt: false, ..options.asking() };
    let ids = text.prompt_ids_within(messages, &options, limit.tokenised(limit.tokens(), &text.tokenizer))?;
    match ids.is_empty() {
        true => Err(NoTokens::Wrong("the chat template makes an empty text of the conversation".into())),
        false => Ok(ids),
    }
}

/// The tokens to learn from; nothing if the row is left out.
fn cut(mut ids: Vec<u32>, limit: PromptLimit, at: &RowPlace<'_>) -> Result<Option<Vec<u32>>> {
    let excess = ids.len().saturating_sub(limit.tokens());
    match limit.overlong {
        _ if excess == 0 => Ok(Some(ids)),
        Overlong::Drop => Ok(None),
        Overlong::Truncate => Ok(Some(ids.split_off(excess))),
        Overlong::Error => Err(at.bad_row(format!(
            "a conversation has {} tokens, at most {} fit\nhint: set data.overlong_prompts to \"drop\" or \"truncate\"",
            ids.len(),
            limit.tokens()
        ))),
    }
}
