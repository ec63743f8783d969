//! Weights & Biases: a folder as its client leaves it offline, `wandb/offline-run-TIME-ID/run-ID.wandb` in the run's
//! folder. `wandb sync` sends it. The file holds no more than `metrics.jsonl` does, so it is written anew where that was
//! rewritten, and by each process: a resumed run has no step twice.

mod log_file;
mod records;

use crate::about::About;
use crate::error::{Result, SendError};
use crate::feed::Feed;
use crate::numbers::Numbers;
use crate::progress::Progress;
use crate::sent::{Sent, remove_file};
use crate::table::TrackerTable;
use gavel_data::files::{make_folder, open_unlinked};
use gavel_data::{Shown, disk, files};
use gavel_runs::{EndKind, Ending, layout};
use log_file::LogFile;
use prost::Message;
use records::{
    ConfigRecord, HeaderRecord, HistoryRecord, HistoryStep, Item, Record, RecordInfo, RunExitRecord, RunRecord,
    SummaryRecord, Timestamp, VersionInfo,
};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// The oldest version of wandb that can read the records: those that a run has are older.
const MIN_CONSUMER: &str = "0.60.0";
/// The length of a run's id.
const ID: usize = 8;

/// The exit code of a run that a signal ended, as a shell has it for Ctrl-C.
const STOPPED: i32 = 130;

/// Writes the file of a run.
pub(crate) struct Wandb {
    project: String,
    file: Option<RunFile>,
}

impl Wandb {
    pub(crate) fn new(table: &TrackerTable) -> Self {
        Self { project: table.project().to_owned(), file: None }
    }

    pub(crate) fn target(&self) -> String {
        format!("wandb {}", self.project)
    }

    /// Writes what comes next.
    pub(crate) fn advance(
        &mut self,
        about: &About,
        name: &str,
        sent: &mut Sent,
        feed: &mut Feed,
        ending: Option<&Ending>,
    ) -> Result<Progress> {
        let path = path(&about.run, sent);
        if self.file.is_none() && ending.is_some_and(|ending| sent.end == Some(ending.at)) && path.is_file() {
            return Ok(Progress::CaughtUp);
        }
        let written = self.write_next(about, name, sent, feed, ending, &path);
        if written.is_err() {
            // It is written from its beginning again.
            (self.file, *feed) = (None, Feed::new(&about.run));
        }
        written
    }

    fn write_next(
        &mut self,
        about: &About,
        name: &str,
        sent: &mut Sent,
        feed: &mut Feed,
        ending: Option<&Ending>,
        path: &Path,
    ) -> Result<Progress> {
        let io = |action| SendError::io(action, path);
        let numbers = feed.take()?;
        if feed.take_anew() {
            self.file = None;
        }
        let is_new = !path.is_file();
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(RunFile::create(path, &self.project, about, sent)?),
        };
        file.log(&numbers).map_err(io("write"))?;
        if let Some(last) = numbers.last() {
            sent.note(last);
        }
        if feed.has_more() {
            return Ok(Progress::More);
        }
        if let Some(ending) = ending.filter(|_| !file.has_exit) {
            file.exit(ending).map_err(io("write"))?;
        }
        let is_changed = file.publish(path)?;
        if is_new {
            let folder = disk::folder_of(path).display();
            tracing::info!("{name}: `wandb sync {}` sends the run to Weights & Biases", Shown(folder));
        }
        if is_changed || sent.end != ending.map(|ending| ending.at) {
            sent.end = ending.map(|ending| ending.at);
            sent.write(&about.run, name)?;
        }
        Ok(Progress::CaughtUp)
    }
}

/// The file of a run with what was sent.
fn path(run: &Path, sent: &Sent) -> PathBuf {
    let id = &sent.id[..ID.min(sent.id.len())];
    let since = UNIX_EPOCH + Duration::try_from_secs_f64(sent.since).unwrap_or_default();
    let digits: String =
        humantime::format_rfc3339_seconds(since).to_string().chars().filter(char::is_ascii_digit).collect();
    let (day, time) = digits.split_at(digits.len().min(8));
    layout::wandb(run).join(format!("offline-run-{day}_{time}-{id}")).join(format!("run-{id}.wandb"))
}

/// A file that is being written.
struct RunFile {
    log: LogFile<BufWriter<File>>,
    /// The name of a file that does not have what the one before it had.
    partial: Option<PathBuf>,
    id: String,
    since: f64,
    /// The number of the last record.
    number: i64,
    /// The time of the last numbers.
    at: f64,
    has_exit: bool,
    is_changed: bool,
}

impl RunFile {
    fn create(path: &Path, project: &str, about: &About, sent: &Sent) -> Result<Self> {
        let folder = disk::folder_of(path);
        make_folder(folder).map_err(SendError::io("make the folder", folder))?;
        let partial = files::partial(path);
        let mut options = OpenOptions::new();
        let file = open_unlinked(&partial, options.write(true).create(true).truncate(true));
        let log = file.and_then(|file| LogFile::create(BufWriter::new(file)));
        let log = log.map_err(SendError::io("write", &partial))?;
        let id = sent.id[..ID.min(sent.id.len())].to_owned();
        let (since, number) = (sent.since, 0);
        let mut file =
            Self { log, partial: Some(partial), id, since, number, at: since, has_exit: false, is_changed: true };
        file.begin(project, about).map_err(SendError::io("write", path))?;
        Ok(file)
    }

    fn begin(&mut self, project: &str, about: &About) -> std::io::Result<()> {
        let producer = format!("gavel-{}", env!("CARGO_PKG_VERSION"));
        let version_info = Some(VersionInfo { producer, min_consumer: MIN_CONSUMER.to_owned() });
        self.add(Record { header: Some(HeaderRecord { version_info }), ..Record::default() })?;
        let config = about.config.iter().map(|(name, value)| Item {
            key: name.clone(),
            value_json: value.to_string(),
            ..Item::default()
        });
        // wandb keeps things of its own there.
        let own = Item { key: "_wandb".into(), value_json: "{}".into(), ..Item::default() };
        let run = RunRecord {
            run_id: self.id.clone(),
            project: project.to_owned(),
            config: Some(ConfigRecord { update: std::iter::once(own).chain(config).collect() }),
            display_name: about.name.clone(),
            host: about.host.clone(),
            start_time: Some(Timestamp { seconds: self.since as i64, nanos: (self.since.fract() * 1e9) as i32 }),
        };
        self.add(Record { run: Some(run), ..Record::default() })
    }

    /// Adds the numbers of steps, and then the last value of each.
    fn log(&mut self, steps: &[Numbers]) -> std::io::Result<()> {
        let mut last = BTreeMap::new();
        for numbers in steps {
            self.at = numbers.at.unwrap_or(self.at);
            let own = [("_step", numbers.step as f64), ("_timestamp", self.at), ("_runtime", self.at - self.since)];
            let own = own.map(|(name, value)| (name.to_owned(), value));
            let mut items = Vec::with_capacity(numbers.values.len() + own.len());
            for (name, value) in numbers.values.iter().chain(&own) {
                let value_json = if name == "_step" { numbers.step.to_string() } else { as_json(*value) };
                last.insert(name.clone(), value_json.clone());
                // Alone in a list of names, a name may have dots.
                items.push(Item { nested_key: vec![name.clone()], value_json, ..Item::default() });
            }
            let step = Some(HistoryStep { num: numbers.step as i64 });
            self.add(Record { history: Some(HistoryRecord { item: items, step }), ..Record::default() })?;
        }
        if last.is_empty() {
            return Ok(());
        }
        let update =
            last.into_iter().map(|(name, value_json)| Item { nested_key: vec![name], value_json, ..Item::default() });
        self.add(Record { summary: Some(SummaryRecord { update: update.collect() }), ..Record::default() })
    }

    fn exit(&mut self, ending: &Ending) -> std::io::Result<()> {
        let exit_code = match ending.kind {
            EndKind::Ended => 0,
            EndKind::Stopped => STOPPED,
            EndKind::Failed => 1,
        };
        let runtime = (ending.at - self.since).max(0.0) as i32;
        self.has_exit = true;
        self.add(Record { exit: Some(RunExitRecord { exit_code, runtime }), ..Record::default() })
    }

    fn add(&mut self, record: Record) -> std::io::Result<()> {
        (self.number, self.is_changed) = (self.number + 1, true);
        let info = Some(RecordInfo { stream_id: self.id.clone() });
        self.log.write(&Record { num: self.number, info, ..record }.encode_to_vec())
    }

    /// Lets readers see what was written. Returns whether there was anything new.
    fn publish(&mut self, path: &Path) -> Result<bool> {
        if !std::mem::take(&mut self.is_changed) {
            return Ok(false);
        }
        self.log.flush().map_err(SendError::io("write", path))?;
        if let Some(partial) = self.partial.take() {
            disk::rename(&partial, path).map_err(SendError::io("write", path))?;
        }
        // `wandb sync` left it beside a file that it has sent, and would leave out what follows.
        remove_file(&path.with_extension("wandb.synced"))?;
        Ok(true)
    }
}

/// A finite number as JSON.
fn as_json(value: f64) -> String {
    serde_json::Value::from(value).to_string()
}

#[cfg(test)]
mod tests;
