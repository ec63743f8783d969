//! A page of a table of trajectories.

use crate::error::Result;
use crate::filter::{Filter, Resolved, Sort};
use crate::index::Index;
use crate::place::{LinePlace, read_line_at};
use crate::row::Row;
use crate::run::ViewedRun;
use crate::text::{Found, TextProgress};
use gavel_data::{FinishReason, OutcomeKind};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most rows of a page.
const MOST_ROWS: usize = 500;
/// The most names of a kind among which a page offers a choice. Links may have any name.
const MOST_NAMES: usize = 1000;
/// The characters that a row shows of its response.
const PREVIEW: usize = 160;
/// The time that one request searches in texts.
const SEARCH: Duration = Duration::from_millis(700);

/// Which page of which table.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PageRequest {
    /// What the rows have in common.
    pub filter: Filter,
    /// What they are sorted by.
    pub sort: Sort,
    /// Whether the largest comes first.
    pub descending: bool,
    /// The rows before the page.
    pub offset: usize,
    /// The rows of the page, at most 500.
    pub limit: usize,
}

impl Default for PageRequest {
    fn default() -> Self {
        Self { filter: Filter::default(), sort: Sort::Step, descending: false, offset: 0, limit: 50 }
    }
}

/// A page of a table, and how far the table is known.
#[derive(Debug, Serialize)]
pub struct Page {
    /// The rows.
    pub rows: Vec<ShownRow>,
    /// The rows of the table.
    pub matched: usize,
    /// How far the index is.
    pub index: IndexState,
    /// How far the search in texts is, if there is one.
    pub search: Option<TextProgress>,
}

/// How far an index is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IndexState {
    /// The trajectories that it has.
    pub rows: usize,
    /// The files that it has.
    pub files: usize,
    /// The files of the run.
    pub known_files: usize,
    /// Whether it has all of them.
    pub is_complete: bool,
    /// Lines that cannot be read.
    pub damaged: u64,
    /// Why a file could not be read.
    pub error: Option<String>,
    /// Counts how often it began again.
    pub generation: u64,
    /// Names for filters.
    pub plugins: Vec<String>,
    /// Sources of data.
    pub sources: Vec<String>,
    /// Speakers of an agent.
    pub speakers: Vec<String>,
    /// The first and the last step that recorded any.
    pub steps: Option<(u64, u64)>,
}

impl IndexState {
    pub(crate) fn of(index: &Index) -> Self {
        let named = |names: &[Arc<str>]| {
            let names = names.iter().filter(|name| !name.is_empty());
            names.take(MOST_NAMES).map(|name| name.to_string()).collect()
        };
        let steps = || index.files.iter().filter_map(|file| index.rows.get(file.rows.clone())?.first());
        let (first, last) = (steps().map(|row| row.recorded).min(), steps().map(|row| row.recorded).max());
        Self {
            rows: index.rows.len(),
            files: index.files.len(),
            known_files: index.known_files,
            is_complete: index.is_complete(),
            damaged: index.damaged,
            error: index.first_error(),
            generation: index.generation,
            plugins: index.plugins.keys().cloned().collect(),
            sources: named(index.sources.all()),
            speakers: named(index.speakers.all()),
            steps: first.zip(last),
        }
    }
}

/// A trajectory in a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[allow(missing_docs, reason = "as in a line of trajectories/")]
pub struct ShownRow {
    pub id: String,
    /// The step that recorded it.
    pub step: u64,
    pub trajectory: u32,
    pub reward: Option<f64>,
    pub advantage: Option<f64>,
    pub prompt_length: u32,
    pub response_length: u32,
    pub turns: u32,
    pub outcome: &'static str,
    pub finish_reason: &'static str,
    pub data_source: String,
    pub speaker: String,
    /// Microseconds of all plugins together.
    pub elapsed_us: u32,
    /// The score and the outcome of each plugin.
    pub plugins: BTreeMap<String, (Option<f64>, &'static str)>,
    /// The beginning of its response.
    pub preview: String,
}

pub(crate) fn shown(index: &Index, number: usize, row: &Row) -> ShownRow {
    let outcome = |number: u8| OutcomeKind::ALL.get(usize::from(number)).map(|kind| kind.as_str());
    let known = |value: f64| Some(value).filter(|value| !value.is_nan());
    let verdicts = index.plugins.iter().filter_map(|(name, all)| {
        let outcome = outcome(*all.outcomes.get(number)?)?;
        Some((name.clone(), (all.scores.get(number).copied().and_then(known), outcome)))
    });
    ShownRow {
        id: row.id(),
        step: row.recorded,
        trajectory: row.trajectory,
        reward: known(row.reward),
        advantage: known(row.advantage),
        prompt_length: row.prompt_length,
        response_length: row.response_length,
        turns: row.turns,
        outcome: outcome(row.outcome).unwrap_or_default(),
        finish_reason: FinishReason::ALL.get(usize::from(row.finish)).map_or("", |reason| reason.as_str()),
        data_source: index.sources.name(row.source).to_owned(),
        speaker: index.speakers.name(row.speaker).to_owned(),
        elapsed_us: row.elapsed,
        plugins: verdicts.collect(),
        preview: String::new(),
    }
}

/// The page of a run.
pub(crate) fn page(run: &ViewedRun, request: &PageRequest) -> Result<Page> {
    let found = match request.filter.text.is_empty() {
        true => None,
        false => Some(run.texts.search(&run.shared, &request.filter, Instant::now() + SEARCH)?),
    };
    let (mut page, places) = table(&run.index(), request, found)?;
    for (row, place) in page.rows.iter_mut().zip(places) {
        // A file that is gone now has no text; its row goes with the next look.
        let line = place.and_then(|place| read_line_at(&place).ok()).unwrap_or_default();
        row.preview = preview(&line);
    }
    Ok(page)
}

/// The page without the beginnings of responses, and where its lines are. Without a search, the rows are those that pass
/// the filter.
fn table(index: &Index, request: &PageRequest, found: Option<Found>) -> Result<(Page, Vec<Option<LinePlace>>)> {
    let filter = Resolved::of(&request.filter, index)?;
    let (mut matched, search) = match found {
        Some(found) if found.generation == index.generation => (found.matched, Some(found.progress)),
        // The index began again since: the numbers are of other rows. The page asks again.
        Some(_) => (Vec::new(), Some(TextProgress::default())),
        None => {
            let passes = |(number, row): (usize, &Row)| filter.passes(number, row).then_some(number as u32);
            (index.rows.iter().enumerate().filter_map(passes).collect::<Vec<_>>(), None)
        }
    };
    let count = matched.len();
    let order = |one: &u32, other: &u32| filter.compare(request.sort, request.descending, &index.rows, *one, *other);
    let limit = request.limit.clamp(1, MOST_ROWS);
    let (start, end) = (request.offset.min(count), request.offset.saturating_add(limit).min(count));
    if end < count {
        // Only the rows up to the page's end are sorted.
        matched.select_nth_unstable_by(end, order);
        matched.truncate(end);
    }
    if start > 0 && start < end {
        matched.select_nth_unstable_by(start, order);
    }
    let page = matched.get_mut(start..end).unwrap_or_default();
    page.sort_unstable_by(order);
    let chosen = page.iter().filter_map(|number| Some((*number as usize, index.rows.get(*number as usize)?)));
    let place = |row: &Row| index.path(row).map(|path| (path, row.offset, row.length));
    let (rows, places) = chosen.map(|(number, row)| (shown(index, number, row), place(row))).unzip();
    Ok((Page { rows, matched: count, index: IndexState::of(index), search }, places))
}

/// The beginning of the response in a line, or why there is none.
fn preview(line: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Texts {
        #[serde(default)]
        response: String,
        #[serde(default)]
        reason: Option<String>,
        #[serde(default)]
        error: Option<Value>,
    }
    let Ok(texts) = serde_json::from_slice::<Texts>(line) else { return String::new() };
    let error = || texts.error.as_ref().map(Value::to_string);
    let text = if texts.response.is_empty() { texts.reason.or_else(error).unwrap_or_default() } else { texts.response };
    text.chars().take(PREVIEW).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::read_file;
    use crate::index::Stamp;
    use gavel_runs::SampleFile;
    use serde_json::json;

    #[test]
    fn what_was_found_in_an_older_index_is_no_row_of_a_newer_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("step-000001.jsonl");
        let write = |responses: &[&str]| {
            let line = |(sample, response): (usize, &&str)| {
                let line = json!({"id": format!("1.0.{sample}"), "step": 1, "group": 0, "sample": sample,
                    "trajectory": 0, "messages": [{"role": "assistant", "content": response}], "response": response,
                    "status": "completed", "finish_reason": "stop", "turns": 1, "prompt_length": 1,
                    "response_length": 1, "outcome": "scored", "reward": 1.0, "plugins": {}});
                format!("{line}\n")
            };
            std::fs::write(&path, responses.iter().enumerate().map(line).collect::<String>()).unwrap();
        };
        let file = SampleFile { step: 1, path: path.clone() };
        let shared = crate::index::SharedIndex::default();
        let look = || {
            shared.change(|index| {
                for file in index.missing(std::slice::from_ref(&file)) {
                    index.add(&file, Stamp::of(&file.path).unwrap(), read_file(&file).unwrap());
                }
            });
        };
        let request =
            PageRequest { filter: Filter { text: "needle".into(), ..Filter::default() }, ..PageRequest::default() };
        let texts = crate::text::Texts::default();
        let search = || texts.search(&shared, &request.filter, Instant::now() + SEARCH).unwrap();
        write(&["a needle", "hay", "hay"]);
        look();
        let ids = |page: &Page| page.rows.iter().map(|row| row.id.clone()).collect::<Vec<_>>();
        let (page, _) = table(&shared.read(), &request, Some(search())).unwrap();
        assert_eq!((ids(&page), page.matched, page.search.unwrap().is_complete), (vec!["1.0.0".into()], 1, true));
        // The run is resumed, and draws others, between a search and its page.
        let found = search();
        write(&["hay", "hay, hay", "another needle"]);
        look();
        let (page, places) = table(&shared.read(), &request, Some(found)).unwrap();
        assert_eq!((ids(&page), page.matched, page.search.unwrap().is_complete), (vec![], 0, false));
        assert!(places.is_empty());
        let (page, _) = table(&shared.read(), &request, Some(search())).unwrap();
        assert_eq!((ids(&page), page.search.unwrap().is_complete), (vec!["1.0.2".into()], true));
    }
}
