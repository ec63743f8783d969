use super::panel::{View, draw};
use super::watched::Watched;
use gavel_data::shown::is_seen;
use gavel_data::{Message, OutcomeKind, Role, Sample, SampleOutcome, Task, Trajectory};
use gavel_runs::{EndKind, FolderConfig, Metrics, RunFolder, RunState, ScoredSample};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// Clears the screen, sets the title and reverses the direction of the text.
const EVIL: &str = "x\u{1b}[2J\u{1b}]0;t\u{7}\r\u{202e}\u{9b}31m\nerror: forged";

fn started(dir: &Path) -> RunFolder {
    let config =
        FolderConfig { dir: dir.to_owned(), name: "run".into(), tensorboard: false, token_ids: false, command: None };
    RunFolder::create(&config, "[train]\nsteps = 100\n").unwrap()
}

/// Takes a step of two samples, of which one is scored.
fn step(folder: &mut RunFolder, step: u64) {
    let mut metrics = Metrics::of_step(step);
    metrics.set("reward/mean", step as f64 / 10.0);
    metrics.set(format!("metric/{EVIL}"), 1.0);
    metrics.set("time/step", 2.0);
    metrics.set("time/timestamp", 1e9 + 30.0 * step as f64);
    metrics.set(format!("device_wait/{EVIL}"), 1.0);
    metrics.count(format!("outcome/{EVIL}/scored"), 1);
    metrics.count(format!("outcome/{EVIL}/fault"), 1);
    let task = Arc::new(Task::from_row(serde_json::from_value(json!({"prompt": "a"})).unwrap(), 0, "train").unwrap());
    let outcomes = [
        SampleOutcome { reward: Some(0.5), ..SampleOutcome::without_calls(OutcomeKind::Scored, "") },
        SampleOutcome::without_calls(OutcomeKind::Fault, EVIL),
    ];
    let wrote = |index| {
        let messages = vec![Message::new(Role::Assistant, format!("{EVIL} of {index}"))];
        Sample::new(task.clone(), index, vec![Trajectory::of(messages)])
    };
    let samples = [wrote(0), wrote(1)];
    let scored = samples.iter().zip(&outcomes).map(|(sample, outcome)| ScoredSample {
        step,
        group: 0,
        trained_step: Some(step),
        sample,
        outcome,
        advantages: &[None],
    });
    folder.keep_samples(step, scored, |_| None).unwrap();
    folder.log(step, &metrics).unwrap();
}

/// The panel on a terminal of this size.
fn shown(watched: &Watched, view: &View, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, watched, view)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn a_run_is_shown_while_it_grows_and_when_it_has_ended() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = started(dir.path());
    let run = folder.path().to_owned();
    step(&mut folder, 0);
    let mut watched = Watched::open(&run).unwrap();
    assert_eq!(watched.read_new().unwrap().len(), 1);
    for number in 1..=4 {
        step(&mut folder, number);
    }
    assert_eq!(watched.read_new().unwrap().len(), 4);
    assert_eq!(watched.read_new().unwrap(), []);
    assert_eq!(watched.curves["reward/mean"].points().len(), 5);
    assert_eq!(watched.seconds_left(), Some(96.0 * 30.0));
    let view = View::with_colours(false);
    let panel = shown(&watched, &view, 120, 40);
    for part in
        ["running", "step 4/100", "48m left", "reward/mean", "0.4000", "1 fault", "samples of step 4", "fault: x"]
    {
        assert!(panel.contains(part), "{part}: {panel}");
    }
    folder.keep_end(EndKind::Failed, Some("out of memory".into())).unwrap();
    drop(folder);
    watched.read_new().unwrap();
    assert_eq!((watched.overview.state, watched.seconds_left()), (RunState::Failed, None));
    assert!(shown(&watched, &view, 120, 40).contains("out of memory"));
}

#[test]
fn the_panel_fits_terminals_of_any_size() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = started(dir.path());
    let empty = Watched::open(folder.path()).unwrap();
    step(&mut folder, 0);
    let mut watched = Watched::open(folder.path()).unwrap();
    watched.read_new().unwrap();
    let mut view = View::with_colours(true);
    for by in [0, 1, isize::MAX, -1, isize::MIN] {
        view.choose(by, &watched);
        for (width, height) in [(1, 1), (3, 2), (20, 5), (80, 24), (89, 50), (90, 20), (300, 100)] {
            for watched in [&empty, &watched] {
                shown(watched, &view, width, height);
            }
        }
    }
}

#[test]
fn no_text_of_a_run_acts_on_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let mut folder = started(dir.path());
    step(&mut folder, 0);
    folder.keep_end(EndKind::Failed, Some(EVIL.into())).unwrap();
    let mut watched = Watched::open(folder.path()).unwrap();
    watched.read_new().unwrap();
    let panel = shown(&watched, &View::with_colours(false), 200, 50);
    assert!(panel.contains("x\\u{1b}[2J"), "{panel}");
    assert!(panel.chars().all(|c| c == '\n' || is_seen(c)), "{panel}");
}
