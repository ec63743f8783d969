//! Where completions come from: a file, or a recording.

use gavel_data::seed::{Purpose, derive};
use gavel_data::{Row, RowError, RowReader, Sample};
use gavel_scoring::completion;
use gavel_scoring::recording::{RecordedSample, Recording, RecordingError};
use std::iter::Peekable;
use std::path::Path;
use std::sync::Arc;

/// A completion, ready to be scored.
pub struct Completion {
    /// What it has in common with the others of its group, which follow each
    /// other: the task, in a file.
    group: String,
    pub sample: Arc<Sample>,
    /// What plugins see as random.
    pub seed: u64,
}

/// Completions one after another, in groups; what cannot be read comes as
/// words, in a group of its own.
pub struct Source<'a>(Peekable<Box<dyn Iterator<Item = Result<Completion, String>> + 'a>>);

impl<'a> Source<'a> {
    /// The rows of a file; seeds follow from `seed` and their place in it.
    pub fn file(path: &'a Path, seed: u64) -> Result<Self, RowError> {
        let rows = RowReader::open(path)?;
        let mut last: Option<(String, u32)> = None;
        let rows = rows.map(move |row| {
            let mut completion = from_row(row, path, seed)?;
            let index = match &last {
                Some((group, index)) if *group == completion.group => index + 1,
                _ => 0,
            };
            last = Some((completion.group.clone(), index));
            completion.sample = Arc::new(Sample { index, ..Arc::unwrap_or_clone(completion.sample) });
            Ok(completion)
        });
        Ok(Self::new(Box::new(rows)))
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
        Self::new(Box::new(samples.map(|recorded| from_recorded(recorded.map_err(|error| error.to_string())?))))
    }

    fn new(completions: Box<dyn Iterator<Item = Result<Completion, String>> + 'a>) -> Self {
        Self(completions.peekable())
    }
}

impl Iterator for Source<'_> {
    type Item = Vec<Result<Completion, String>>;

    fn next(&mut self) -> Option<Self::Item> {
        let first = self.0.next()?;
        let Ok(Completion { group, .. }) = &first else { return Some(vec![first]) };
        let group = group.clone();
        let mut members = vec![first];
        while let Some(next) = self.0.next_if(|next| next.as_ref().is_ok_and(|next| next.group == group)) {
            members.push(next);
        }
        Some(members)
    }
}

fn from_row(row: Result<Row, RowError>, path: &Path, seed: u64) -> Result<Completion, String> {
    let row = row.map_err(|error| error.to_string())?;
    let (position, place) = (row.position as u64, row.place.clone());
    let sample = completion(row, "data").map_err(|error| format!("{}, {place}: {error}", path.display()))?;
    let group = sample.task.id.clone();
    Ok(Completion { group, sample: Arc::new(sample), seed: derive(seed, 0, position, Purpose::Plugin) })
}

fn from_recorded(recorded: RecordedSample) -> Result<Completion, String> {
    match recorded.seed() {
        Some(seed) => {
            let group = format!("{}.{}", recorded.step, recorded.group);
            Ok(Completion { group, sample: recorded.sample, seed })
        }
        None => Err(format!("sample {}: no plugin was called for it, so its seed is not known", recorded.id)),
    }
}
