//! Pairs for DPO: two responses to a prompt, as `gavel sft` would learn them.

use super::method::{Models, PairMethod};
use super::pair_row::PairRow;
use crate::config::{DpoTable, LearningConfig};
use crate::dataset::DatasetRows;
use crate::error::{PipelineError, Result};
use crate::prompts::{Drawable, usable};
use crate::setup::Setup;
use crate::sft_rows::{apply_limit, sft_row};
use gavel_data::Message;
use gavel_train::{PairStats, ResponsePair, TrainError, Trainer};

impl PairMethod for DpoTable {
    type Pair = ResponsePair;
    const NEEDS_REFERENCE: bool = true;

    fn learning(&self, pairs: usize) -> LearningConfig {
        self.learning(pairs)
    }

    fn batch_size(&self) -> usize {
        self.batch_size
    }

    fn pairs(setup: &Setup, rows: Vec<DatasetRows<'_>>) -> Result<Drawable<ResponsePair>> {
        let (text, limit) = (&setup.text, setup.limit);
        usable(rows, |row, path| {
            let place = row.place.clone();
            let bad = |what: String| PipelineError::BadRow { path: path.to_owned(), place: place.clone(), what };
            let PairRow { prompt, chosen, rejected, options, .. } = PairRow::read(row).map_err(bad)?;
            let read = |name: &str, answer: &[Message]| {
                let [answer] = answer else {
                    return Err(bad(format!(
                        "`{name}` has {} messages after the prompt: `gavel dpo` learns one",
                        answer.len()
                    )));
                };
                apply_limit(limit, sft_row(&prompt, &options, answer, text).map_err(bad)?, path, &place)
            };
            let sides = read("chosen", &chosen)?.zip(read("rejected", &rejected)?);
            Ok(sides.map(|(chosen, rejected)| ResponsePair { chosen, rejected }))
        })
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
