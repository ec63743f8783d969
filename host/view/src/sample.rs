//! A sample as it was recorded, and its group.

use crate::build::read_file;
use crate::error::{Result, ViewError};
use crate::index::Index;
use crate::page::{ShownRow, shown};
use crate::place::{LinePlace, read_line_at};
use crate::run::ViewedRun;
use gavel_data::Shown;
use gavel_runs::sample_files;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// The most characters of a response of the group that are shown beside the sample.
const GROUP_TEXT: usize = 4000;
/// The most samples of a group that are shown.
const MOST_SIBLINGS: usize = 256;
/// The files that are read for a sample before the index has it.
const MOST_FILES: usize = 8;

/// A sample, its group, and its neighbours in the run.
#[derive(Debug, Serialize)]
pub(crate) struct ShownSample {
    id: String,
    /// The lines of its trajectories, as recorded.
    trajectories: Vec<Value>,
    /// The first trajectories of the samples of its group.
    group: Vec<ShownRow>,
    /// The sample before it in the order of the files.
    before: Option<String>,
    after: Option<String>,
}

/// Finds a sample by its id.
pub(crate) fn sample(run: &ViewedRun, id: &str) -> Result<ShownSample> {
    let Some((step, group, number)) = parts(id) else {
        return Err(ViewError::bad(format!("{} is no id of a sample", Shown(id)), "write STEP.GROUP.SAMPLE"));
    };
    let found = read(&run.index(), step, group, number);
    let (is_complete, error) = {
        let index = run.index();
        (index.is_complete(), index.first_error())
    };
    let found = match found {
        Some(found) => Some(found),
        None if is_complete => None,
        None => read(&read_around(run, step)?, step, group, number),
    };
    let Some(Found { own, siblings, before, after }) = found else {
        let hint = match (is_complete, error) {
            (_, Some(error)) => error,
            (true, None) => "the run may have been resumed from an earlier step, which drew other samples".to_owned(),
            (false, None) => "the index is not complete yet: try again in a moment".to_owned(),
        };
        return Err(ViewError::NoSuchSample { run: run.name.clone(), id: id.to_owned(), hint });
    };
    let parsed = |place: &LinePlace| {
        let line = read_line_at(place)?;
        let (path, _, _) = place;
        serde_json::from_slice(&line).map_err(|error| ViewError::io("read", path)(error.into()))
    };
    let trajectories = own.iter().map(parsed).collect::<Result<Vec<Value>>>()?;
    let group = siblings.into_iter().map(|(mut row, place)| {
        // A line that cannot be read any more has no text.
        let line: Option<Value> = parsed(&place).ok();
        let text = line.as_ref().and_then(|line| line.get("response")?.as_str()).unwrap_or_default();
        row.preview = text.chars().take(GROUP_TEXT).collect();
        row
    });
    Ok(ShownSample { id: id.to_owned(), trajectories, group: group.collect(), before, after })
}

fn parts(id: &str) -> Option<(u64, u64, u32)> {
    let mut parts = id.split('.');
    let parsed = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
    parts.next().is_none().then_some(parsed)
}

/// Where the lines of a sample and of its group are.
struct Found {
    own: Vec<LinePlace>,
    siblings: Vec<(ShownRow, LinePlace)>,
    before: Option<String>,
    after: Option<String>,
}

fn read(index: &Index, step: u64, group: u64, sample: u32) -> Option<Found> {
    let numbers: Vec<usize> = index.find(step, group, sample).collect();
    let place = |number: usize| {
        let row = index.rows.get(number)?;
        Some((index.path(row)?, row.offset, row.length))
    };
    let own: Vec<LinePlace> = numbers.iter().filter_map(|number| place(*number)).collect();
    let (first, last) = (*numbers.first()?, *numbers.last()?);
    let siblings = index.group(step, group).filter_map(|number| {
        let row = index.rows.get(number)?;
        (row.trajectory == 0).then_some((shown(index, number, row), place(number)?))
    });
    let id = |number: Option<usize>| Some(index.rows.get(number?)?.id());
    Some(Found {
        own,
        siblings: siblings.take(MOST_SIBLINGS).collect(),
        before: id(first.checked_sub(1)),
        after: id(last.checked_add(1)),
    })
}

/// An index of the files that may have a sample that was drawn for this step: by this step, or soon after.
fn read_around(run: &ViewedRun, step: u64) -> Result<Index> {
    let mut index = Index::default();
    let files = sample_files(&run.path)?;
    for file in files.iter().filter(|file| file.step >= step).take(MOST_FILES) {
        let stamp = crate::index::Stamp::of(&file.path).map_err(ViewError::io("read", &file.path))?;
        let read = read_file(file).map_err(ViewError::io("read", &file.path))?;
        index.add(file, stamp, read);
    }
    Ok(index)
}

/// The lines of each file of a run, for an export.
pub(crate) fn files_of(run: &Arc<ViewedRun>) -> Vec<(Arc<std::path::Path>, std::ops::Range<usize>)> {
    run.index().files.iter().map(|file| (file.path.clone(), file.rows.clone())).collect()
}
