//! Pairs for DPO: two responses to a prompt, as `gavel sft` would learn them.

use super::method::{Models, PairMethod};
use super::pair_row::{PairRow, RowPlace};
use crate::commands::ShownText;
use crate::error::Result;
use crate::rows::{LearnedTurn, Parted, apply_limit};
use crate::run::Setup;
use gavel_config::{DpoTable, LearningConfig};
use gavel_data::Message;
use gavel_text::TextModel;
use gavel_train::{PairStats, ResponsePair, SftRow, TrainError, Trainer};

impl PairMethod for DpoTable {
    type Pair = ResponsePair;
    const NEEDS_REFERENCE: bool = true;

    fn learning(&self, pairs: usize) -> LearningConfig {
        self.learning(pairs)
    }

    fn batch_size(&self) -> usize {
        self.batch_size
    }

    fn pair(setup: &Setup, row: PairRow, at: &RowPlace<'_>, parted: &Parted) -> Result<Option<ResponsePair>> {
        let PairRow { prompt, chosen, rejected, options, .. } = row;
        let most = setup.limit.tokenised(setup.limit.positions, &setup.text.tokenizer);
        let learned = |name: &str, answer: &[Message]| match answer {
            [answer] => {
                let turn = LearnedTurn::new(&prompt, &options, answer, &setup.text, most);
                setup.limit.usable(turn).map_err(|what| at.bad_row(what))
            }
            _ => {
                let count = answer.len();
                Err(at.bad_row(format!("`{name}` has {count} messages after the prompt: `gavel dpo` learns one")))
            }
        };
        let learned = learned("chosen", &chosen)?.zip(learned("rejected", &rejected)?);
        let Some((chosen, rejected)) = learned else { return Ok(None) };
        let noted = |turn| parted.note(turn, at.path, &at.place);
        let (mut chosen, mut rejected) = (noted(chosen), noted(rejected));
        begin_together(&mut chosen, &mut rejected);
        let limited = |row| apply_limit(setup.limit, row, at.path, &at.place);
        let sides = limited(chosen)?.zip(limited(rejected)?);
        Ok(sides.map(|(chosen, rejected)| ResponsePair { chosen, rejected }))
    }

    fn shown(ResponsePair { chosen, rejected }: &ResponsePair, text: &TextModel) -> Result<Vec<ShownText>> {
        let side =
            |name: &str, row: &SftRow| ShownText::learned(Some(name.to_owned()), &row.prompt, &row.response, text);
        Ok(vec![side("chosen", chosen)?, side("rejected", rejected)?])
    }

    fn lengths(ResponsePair { chosen, rejected }: &ResponsePair) -> (usize, usize) {
        (chosen.prompt.len().max(rejected.prompt.len()), chosen.response.len().max(rejected.response.len()))
    }

    fn row(ResponsePair { chosen, rejected }: &ResponsePair) -> (&[u32], usize) {
        (&chosen.prompt, chosen.response.len() + rejected.response.len())
    }

    fn step(
        &self,
        trainer: &mut Trainer,
        models: Models<'_>,
        pairs: &[ResponsePair],
        learning_rate: f64,
    ) -> std::result::Result<PairStats, TrainError> {
        let reference = models.reference.ok_or(TrainError::NoReference)?;
        trainer.dpo_step(models.model, reference, pairs, &self.loss(), learning_rate)
    }

    fn measure(
        &self,
        trainer: &Trainer,
        models: Models<'_>,
        pairs: &[ResponsePair],
    ) -> std::result::Result<PairStats, TrainError> {
        let reference = models.reference.ok_or(TrainError::NoReference)?;
        trainer.dpo_stats(models.model, reference, pairs, &self.loss())
    }
}

/// Moves the beginning of both responses to where the first of them begins, if one prompt is the beginning of the other:
/// log-probs are of the same part of the turn, as in TRL.
fn begin_together(chosen: &mut SftRow, rejected: &mut SftRow) {
    let (longer, shorter) = match chosen.prompt.len() > rejected.prompt.len() {
        true => (chosen, rejected),
        false => (rejected, chosen),
    };
    if longer.prompt.starts_with(&shorter.prompt) {
        let moved = longer.prompt.split_off(shorter.prompt.len());
        longer.response.splice(0..0, moved);
    }
}
