//! A view as files: they open from a disk, where browsers load no modules and fetch nothing, and from any web server. So
//! the modules are one classic script, and data are scripts too, which the page loads as it needs them: they hand JSON
//! to the page as texts.
//!
//! | file | |
//! |---|---|
//! | `index.html`, `app.js`, `web/` | the page |
//! | `data/runs.js` | the list of runs, their details and their differences |
//! | `data/evaluations.js`, `data/evaluation-E.js`, `data/answers-E.js` | evaluations, their numbers and their answers |
//! | `data/N/metrics.js` | all metrics of a run as columns |
//! | `data/N/rows.js` | a row for each of its trajectories |
//! | `data/N/findings.js` | how its rewards go together, what failed, and what is suspect |
//! | `data/N/step-S.js` | where the time of a step went |
//! | `data/N/tokens.js` | the texts of the tokens of its responses |
//! | `data/N/lines-M.js` | the lines of its M-th file of trajectories, as recorded |

use crate::answer::POLICY;
use crate::assets::{ASSETS, PAGE, bundle};
use crate::curves::Axis;
use crate::error::{Result, ViewError};
use crate::evaluation::path_of;
use crate::findings::findings;
use crate::page::{IndexState, ShownRow, shown};
use crate::run::ViewedRun;
use crate::sample::files_of;
use crate::steps::step_times;
use crate::view::View;
use crate::vocabulary::{MOST_IDS, TokenTexts};
use gavel_data::files::{open_regular, read_line};
use gavel_runs::response_ids;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

/// The newest steps whose times are written.
const MOST_STEPS: usize = 2000;

/// Writes the view into a new or an empty folder. Returns the bytes of all files.
///
/// # Errors
/// The folder has files, a run cannot be read, or a file cannot be written.
pub fn export(view: &View, folder: &Path) -> Result<u64> {
    if fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(ViewError::NotEmpty { folder: folder.to_owned() });
    }
    let mut out = Out { folder, bytes: 0 };
    // A policy in a page cannot say who frames it, and the page loads its data as scripts by their names.
    let is_kept = |rule: &&str| {
        !["frame-ancestors", "require-trusted-types-for", "trusted-types"]
            .iter()
            .any(|name| rule.trim().starts_with(name))
    };
    let policy = POLICY.split(';').filter(is_kept).collect::<Vec<_>>().join(";");
    let page = PAGE
        .replace("<meta name=\"source\" content=\"server\">", &format!(
            "<meta name=\"source\" content=\"files\">\n<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">"
        ))
        .replace("<script type=\"module\" src=\"web/app.js\">", "<script defer src=\"app.js\">");
    out.write("index.html", page.as_bytes())?;
    out.write("app.js", bundle().as_bytes())?;
    for asset in ASSETS.iter().filter(|asset| asset.name.contains('/') || asset.name.ends_with(".css")) {
        out.write(&format!("web/{}", asset.name), asset.bytes)?;
    }
    let mut details = Vec::new();
    for (number, run) in view.runs.iter().enumerate() {
        details.push(json!(view.details(number)?));
        run_files(&mut out, number, run)?;
    }
    let count = view.runs.len();
    let evaluations = view.evaluations();
    out.data("data/evaluations.js", "evaluations", &evaluations)?;
    for (number, evaluation) in evaluations.iter().enumerate() {
        let (numbers, lines) = (format!("evaluation-{number}"), format!("answers-{number}"));
        out.data(&format!("data/{numbers}.js"), &numbers, &view.answers(number)?)?;
        out.lines(&format!("data/{lines}.js"), &lines, path_of(evaluation), &mut BTreeSet::new())?;
    }
    let mut differences = Vec::new();
    for one in 0..count {
        differences.push((0..count).map(|other| view.difference(one, other)).collect::<Result<Vec<Value>>>()?);
    }
    out.data("data/runs.js", "runs", &json!({"runs": view.list(), "details": details, "differences": differences}))?;
    Ok(out.bytes)
}

fn run_files(out: &mut Out<'_>, number: usize, run: &Arc<ViewedRun>) -> Result<()> {
    let metrics = {
        let curves = run.curves()?;
        let axes = [("step", Axis::Step), ("time", Axis::Time), ("tokens", Axis::Tokens)];
        let axes: BTreeMap<_, _> = axes.into_iter().map(|(name, axis)| (name, curves.axis(axis))).collect();
        let (generation, rows, _) = curves.state();
        json!({"generation": generation, "rows": rows, "axes": axes, "columns": curves.columns()})
    };
    out.data(&format!("data/{number}/metrics.js"), &format!("{number}/metrics"), &metrics)?;
    run.update();
    let (state, rows): (IndexState, Vec<(usize, ShownRow)>) = {
        let index = run.index();
        let rows = index.rows.iter().enumerate().map(|(at, row)| (row.file as usize, shown(&index, at, row)));
        (IndexState::of(&index), rows.collect())
    };
    out.data(&format!("data/{number}/rows.js"), &format!("{number}/rows"), &json!({"index": state, "rows": rows}))?;
    out.data(&format!("data/{number}/findings.js"), &format!("{number}/findings"), &findings(run)?)?;
    let steps = run.curves()?.steps();
    for step in steps.into_iter().collect::<BTreeSet<u64>>().into_iter().rev().take(MOST_STEPS) {
        let name = format!("{number}/step-{step}");
        out.data(&format!("data/{name}.js"), &name, &step_times(run, step)?)?;
    }
    let mut ids = BTreeSet::new();
    for (at, (path, _)) in files_of(run).into_iter().enumerate() {
        out.lines(&format!("data/{number}/lines-{at}.js"), &format!("{number}/lines-{at}"), &path, &mut ids)?;
    }
    out.data(&format!("data/{number}/tokens.js"), &format!("{number}/tokens"), &token_texts(run, &ids))
}

/// The texts of all tokens, or why they are not known.
fn token_texts(run: &ViewedRun, ids: &BTreeSet<u32>) -> Value {
    let (ids, mut texts): (Vec<u32>, _) = (ids.iter().copied().collect(), TokenTexts::default());
    for ids in ids.chunks(MOST_IDS) {
        match run.vocabulary.texts(&run.name, &run.path, ids) {
            Ok(found) => {
                texts.bytes.extend(found.bytes);
                texts.special.extend(found.special);
                texts.from = found.from;
            }
            Err(error) => return json!({"error": error.to_string()}),
        }
    }
    json!(texts)
}

struct Out<'a> {
    folder: &'a Path,
    bytes: u64,
}

impl Out<'_> {
    fn write(&mut self, name: &str, bytes: &[u8]) -> Result<()> {
        self.with(name, |file| file.write_all(bytes))
    }

    /// A script that hands a value to the page.
    fn data(&mut self, name: &str, key: &str, value: &impl Serialize) -> Result<()> {
        let text = literal(&serde_json::to_string(value).unwrap_or_default());
        self.with(name, |file| write!(file, "gavelData({}, {text});", Value::from(key)))
    }

    /// The same with the lines of a file. Lines that are no JSON are left out. Adds the tokens of responses to `ids`.
    fn lines(&mut self, name: &str, key: &str, path: &Path, ids: &mut BTreeSet<u32>) -> Result<()> {
        let mut lines = BufReader::new(open_regular(path).map_err(ViewError::io("read", path))?);
        let mut line = Vec::new();
        self.with(name, |file| {
            write!(file, "gavelData({}, [", Value::from(key))?;
            while read_line(&mut lines, &mut line)? > 0 {
                let Ok(value) = serde_json::from_slice::<Value>(&line) else { continue };
                ids.extend(value.get("token_ids").map(response_ids).unwrap_or_default());
                writeln!(file, "{},", literal(&value.to_string()))?;
            }
            file.write_all(b"]);")
        })
    }

    fn with(&mut self, name: &str, write: impl FnOnce(&mut BufWriter<File>) -> std::io::Result<()>) -> Result<()> {
        let path = self.folder.join(name);
        let folder = path.parent().unwrap_or(self.folder);
        fs::create_dir_all(folder).map_err(ViewError::io("make the folder", folder))?;
        let mut file = BufWriter::new(File::create_new(&path).map_err(ViewError::io("write", &path))?);
        write(&mut file).and_then(|()| file.flush()).map_err(ViewError::io("write", &path))?;
        self.bytes += fs::metadata(&path).map(|found| found.len()).unwrap_or_default();
        Ok(())
    }
}

/// JSON as a text in a script, which the page parses: in a script itself, a name `__proto__` would be no name of a field.
/// The two line ends that JSON allows in texts are escaped, and so is `<`, with which a script within a page could end.
fn literal(json: &str) -> String {
    let quoted = Value::from(json).to_string();
    quoted.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}
