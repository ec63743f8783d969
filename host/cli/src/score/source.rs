//! Where completions come from: a file, or a recording.

use gavel_data::seed::{Purpose, derive};
use gavel_data::{Row, RowError, RowReader, Sample};
use gavel_scoring::completion;
use gavel_scoring::recording::{RecordedSample, Recording, RecordingError};
use std::path::Path;
use std::sync::Arc;

/// A completion, ready to be scored.
pub struct Completion {
    pub sample: Arc<Sample>,
    /// What plugins see as random.
    pub seed: u64,
}

/// Completions one after another; what cannot be read comes as words.
pub struct Source<'a>(Box<dyn Iterator<Item = Result<Completion, String>> + 'a>);

impl<'a> Source<'a> {
    /// The rows of a file; seeds follow from `seed` and their place in it.
    pub fn file(path: &'a Path, seed: u64) -> Result<Self, RowError> {
        let rows = RowReader::open(path)?;
        Ok(Self(Box::new(rows.map(move |row| from_row(row, path, seed)))))
    }

    /// The samples of a recording, with the seeds that they had.
    pub fn recorded(recording: &'a Recording) -> Self {
        let steps = recording.steps().collect::<Vec<_>>().into_iter();
        let samples = steps.flat_map(|step| -> Box<dyn Iterator<Item = Result<RecordedSample, RecordingError>> + 'a> {
            match recording.samples(step) {
                Ok(samples) => Box::new(samples),
                Err(error) => Box::new(std::iter::once(Err(error))),
            }
        });
        Self(Box::new(samples.map(|recorded| from_recorded(recorded.map_err(|error| error.to_string())?))))
    }
}

impl Iterator for Source<'_> {
    type Item = Result<Completion, String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.next()
    }
}

fn from_row(row: Result<Row, RowError>, path: &Path, seed: u64) -> Result<Completion, String> {
    let row = row.map_err(|error| error.to_string())?;
    let (position, place) = (row.position as u64, row.place.clone());
    let sample = completion(row, "data").map_err(|error| format!("{}, {place}: {error}", path.display()))?;
    Ok(Completion { sample: Arc::new(sample), seed: derive(seed, 0, position, Purpose::Plugin) })
}

fn from_recorded(recorded: RecordedSample) -> Result<Completion, String> {
    match recorded.seed() {
        Some(seed) => Ok(Completion { sample: recorded.sample, seed }),
        None => Err(format!("sample {}: no plugin was called for it, so its seed is not known", recorded.id)),
    }
}
