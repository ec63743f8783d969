//! A judge, which gives samples their scores.

use futures::future::BoxFuture;
use gavel_data::{Evaluation, SampleInput};
use gavel_plugin::{OutsideWaits, Plugin};

/// A judge, which gives samples their scores, one by one or group by group.
pub(crate) trait Judge: Send + Sync {
    /// Its name in the run.
    fn name(&self) -> &str;

    /// Whether it sees the samples of a group together, and not one by one.
    fn sees_groups(&self) -> bool;

    /// The range of its scores, where it declares one.
    fn score_range(&self) -> Option<(f64, f64)>;

    /// Whether two calls with the same input may differ, because it depends on something that changes.
    fn reaches_what_changes(&self) -> bool;

    /// Whether two such calls may differ even where all models answer as before.
    fn reaches_beyond_models(&self) -> bool {
        self.reaches_what_changes()
    }

    /// Judges `samples`, which are a whole group or one sample, and returns their
    /// evaluations in order. `seed` is the seed of its random numbers, and `waits`
    /// shows what it waits for outside.
    fn judge<'a>(
        &'a self,
        samples: &'a [SampleInput],
        seed: u64,
        waits: &'a OutsideWaits,
    ) -> BoxFuture<'a, Vec<Evaluation>>;
}

/// A component that exports both `reward` and `judger` is used as a judger, which sees more.
impl Judge for Plugin {
    fn name(&self) -> &str {
        self.name()
    }

    fn sees_groups(&self) -> bool {
        self.is_judger()
    }

    fn score_range(&self) -> Option<(f64, f64)> {
        self.info().score_range
    }

    fn reaches_what_changes(&self) -> bool {
        self.grants().reach_what_changes()
    }

    fn reaches_beyond_models(&self) -> bool {
        self.grants().reach_beyond_models()
    }

    fn judge<'a>(
        &'a self,
        samples: &'a [SampleInput],
        seed: u64,
        waits: &'a OutsideWaits,
    ) -> BoxFuture<'a, Vec<Evaluation>> {
        Box::pin(self.evaluate(samples, seed, waits))
    }
}
