//! Where completions come from: a file, standard input, or a recording.

use gavel_data::seed::{Purpose, derive};
use gavel_data::{ColumnNames, DatasetReader, DatasetRow, RowError, Sample};
use gavel_runs::RecordedSample;
use gavel_scoring::recording::{Recording, RecordingError};
use gavel_scoring::{Attempts, completion};
use std::fmt::Display;
use std::iter::Peekable;
use std::path::Path;
use std::sync::Arc;

/// A completion, ready to be scored.
pub struct Completion {
    pub sample: Arc<Sample>,
    /// The seed of the random numbers that plugins see.
    pub seed: u64,
}

/// A completion or why there is none, with the key of its group. Members of a group follow each other. The key is the
/// task in a file, and the step and the group's number in a recording.
type Keyed = (Option<String>, Result<Completion, String>);

/// Completions in groups, one group after another. A row without a completion is an error message, in its group if the
/// group is known.
pub struct Source<'a>(Peekable<Box<dyn Iterator<Item = Keyed> + 'a>>);

impl<'a> Source<'a> {
    /// The rows of a dataset whose columns have these names; their seeds follow from `seed` and their positions.
    pub fn dataset(path: &Path, names: &'a ColumnNames, seed: u64) -> Result<Self, RowError> {
        Ok(Self::rows(DatasetReader::open(path)?, names, seed))
    }

    /// The same for JSON Lines on standard input.
    pub fn stdin(names: &'a ColumnNames, seed: u64) -> Result<Self, RowError> {
        Ok(Self::rows(DatasetReader::stdin()?, names, seed))
    }

    fn rows(rows: DatasetReader, names: &'a ColumnNames, seed: u64) -> Self {
        let mut attempts = Attempts::default();
        Self::new(rows.map(move |row| match from_row(row, names, seed, &mut attempts) {
            Ok(completion) => (Some(completion.sample.task.id.clone()), Ok(completion)),
            Err(error) => (None, Err(error)),
        }))
    }

    /// The samples of a recording, with the seeds that they had.
    pub fn recorded(recording: &'a Recording) -> Self {
        let steps = recording.steps().collect::<Vec<_>>().into_iter();
        let samples = steps.flat_map(|step| -> Box<dyn Iterator<Item = Result<RecordedSample, RecordingError>> + 'a> {
            match recording.samples(step) {
                Ok(samples) => Box::new(samples.map(|sample| sample.map_err(RecordingError::from))),
                Err(error) => Box::new(std::iter::once(Err(error))),
            }
        });
        Self::new(samples.map(|recorded| match recorded {
            Ok(recorded) => (Some(format!("{}.{}", recorded.step, recorded.group)), from_recorded(recorded)),
            Err(error) => (None, Err(error.to_string())),
        }))
    }

    fn new(completions: impl Iterator<Item = Keyed> + 'a) -> Self {
        let completions: Box<dyn Iterator<Item = Keyed>> = Box::new(completions);
        Self(completions.peekable())
    }
}

impl Iterator for Source<'_> {
    type Item = Vec<Result<Completion, String>>;

    fn next(&mut self) -> Option<Self::Item> {
        let (group, first) = self.0.next()?;
        let mut members = vec![first];
        // A row without a key cannot be read, and does not divide the group.
        let goes_on = |next: &Option<String>| group.is_some() && (next.is_none() || *next == group);
        while let Some((_, next)) = self.0.next_if(|(next, _)| goes_on(next)) {
            members.push(next);
        }
        Some(members)
    }
}

fn from_row(
    row: Result<DatasetRow, RowError>,
    names: &ColumnNames,
    seed: u64,
    attempts: &mut Attempts,
) -> Result<Completion, String> {
    let DatasetRow { path, mut row } = row.map_err(|error| error.to_string())?;
    let (position, place) = (row.position as u64, row.place.clone());
    let broken = |error: &dyn Display| format!("{}, {place}: {error}", path.display());
    names.apply(&mut row.columns).map_err(|error| broken(&error))?;
    let sample = completion(row, "data").map_err(|error| broken(&error))?;
    let seed = derive(seed, 0, position, Purpose::Plugin);
    Ok(Completion { sample: Arc::new(attempts.number(sample)), seed })
}

fn from_recorded(recorded: RecordedSample) -> Result<Completion, String> {
    match recorded.seed() {
        Some(seed) => Ok(Completion { sample: recorded.sample, seed }),
        None => Err(format!("sample {}: no plugin was called for it, so its seed is not known", recorded.id)),
    }
}
