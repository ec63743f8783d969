//! Runs whose tasks a plugin draws.

use super::tests::{config, repository};
use super::*;
use gavel_runs::Checkpoints;
use gavel_scoring::recording::PluginSet;
use std::collections::BTreeMap;
use std::path::Path;

const RESUME: Start = Start::Resume { from: None, allow_changed_plugins: false };

/// What a run adds whose tasks the guest `draws` draws.
pub(super) fn sampler(how: &str) -> String {
    let guest = repository().join("target/guests/draws.wasm");
    assert!(guest.exists(), "{} is missing: run `cargo xtask plugins`", guest.display());
    format!(
        "[data]\nsampler = 'plugin:own'\n[log]\ntrajectories = true\n[plugin.own]\npath = {guest:?}\n\
         params = {{ how = '{how}' }}\nlimits = {{ cpu = '1m', timeout = '2m' }}"
    )
}

fn drawing(folder: &Path, name: &str, how: &str, added: &str) -> Config<RlTable> {
    config(folder, name, &format!("{added}\n{}", sampler(how)))
}

fn run(config: &Config<RlTable>, start: Start) -> Result<Summary> {
    train(config, start, &Peers::alone(), &Control::default())
}

fn weights(summary: &Summary) -> Vec<u8> {
    std::fs::read(summary.checkpoint.as_ref().unwrap().join("model.safetensors")).unwrap()
}

/// The lines of a run's metrics.
fn metrics(summary: &Summary) -> Vec<serde_json::Map<String, serde_json::Value>> {
    let text = std::fs::read_to_string(summary.folder.join("metrics.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Groups of one sample, which is always imitated: none is dropped for its rewards, whatever the policy writes.
pub(super) const IMITATING: &str = "[rollout]\ngroup_size = 1\n[train]\nalgorithm = 'raft'\nadvantage.threshold = -1.0\nloss.policy = 'gpg'\n\
    filter_groups = { max_num_gen_batches = 3 }";

/// The tasks of a run's groups, by the ids of the groups.
pub(super) fn tasks(summary: &Summary) -> BTreeMap<String, String> {
    let mut tasks = BTreeMap::new();
    for step in 1..=summary.step {
        let path = summary.folder.join(format!("trajectories/step-{step:06}.jsonl"));
        for line in std::fs::read_to_string(path).unwrap().lines() {
            let line: serde_json::Value = serde_json::from_str(line).unwrap();
            let id = line["id"].as_str().unwrap();
            let group = id.rsplit_once('.').unwrap().0;
            tasks.insert(group.to_owned(), line["task_id"].as_str().unwrap().to_owned());
        }
    }
    tasks
}

#[test]
fn a_sampler_that_draws_the_rows_in_order_trains_the_same_weights() {
    let folder = tempfile::tempdir().unwrap();
    let epochs = run(&config(folder.path(), "epochs", "[data]\nshuffle = false"), Start::New).unwrap();
    let own = run(&drawing(folder.path(), "own", "in-order", ""), Start::New).unwrap();
    assert!(weights(&own) == weights(&epochs));
    let (of_own, of_epochs) = (metrics(&own), metrics(&epochs));
    assert!(of_own[1].contains_key("time/sampler") && !of_epochs[1].contains_key("time/sampler"));
    assert_eq!((&of_own[1]["sampler/distinct_rows"], &of_own[1]["groups/refused"]), (&4.into(), &0.into()));
    assert!(!of_epochs[1].contains_key("sampler/distinct_rows"));
    let sets = gavel_runs::read_plugin_sets::<PluginSet>(&own.folder).unwrap();
    let record = serde_json::to_value(&sets[0].actors).unwrap();
    assert_eq!([&record[0]["role"], &record[0]["name"]], ["sampler", "own"]);
}

#[test]
fn a_run_that_was_killed_draws_what_it_would_have_drawn() {
    let folder = tempfile::tempdir().unwrap();
    // On-policy, and one step ahead, in which order groups end by chance and are taken in the order of their draws.
    for (name, schedule) in [("on-policy", ""), ("ahead", "[schedule]\nmax_staleness = 1")] {
        let added =
            "[train]\nsteps = 5\nfilter_groups = { max_num_gen_batches = 3 }\n[checkpoint]\nevery = 1\nkeep_last = 9";
        let config = drawing(folder.path(), name, "refuses", &format!("{schedule}\n{added}"));
        let whole = run(&config, Start::New).unwrap();
        let (of_whole, weights_of_whole) = (tasks(&whole), weights(&whole));
        let state = std::fs::read_to_string(whole.folder.join("checkpoints/step-000002/state.json")).unwrap();
        let state: serde_json::Value = serde_json::from_str(&state).unwrap();
        // Eight bytes in base64.
        assert_eq!(state["sampler"].as_str().unwrap().len(), 12, "{name}");
        // As after a kill in a later step.
        let resumed = run(&config, Start::Resume { from: Some(2), allow_changed_plugins: false }).unwrap();
        assert_eq!(tasks(&resumed), of_whole, "{name}");
        assert!(weights(&resumed) == weights_of_whole, "{name}");
    }
}

#[test]
fn a_checkpoint_has_the_rows_of_the_groups_under_way() {
    let folder = tempfile::tempdir().unwrap();
    let config = |steps| {
        let added =
            format!("[schedule]\nmax_staleness = 1\n[train]\nsteps = {steps}\n[checkpoint]\nevery = 1\nkeep_last = 9");
        drawing(folder.path(), "rows", "hashes", &added)
    };
    let whole = run(&config(4), Start::New).unwrap();
    let tasks = tasks(&whole);
    let queued = Checkpoints::queue(&whole.folder.join("checkpoints/step-000002")).unwrap();
    assert_eq!(queued.iter().map(|group| group.draw).collect::<Vec<_>>(), [8, 9, 10, 11]);
    for group in queued {
        let id = format!("{}.{}", group.draw / 4 + 1, group.draw % 4);
        assert!(tasks[&id].ends_with(&group.row.unwrap().to_string()), "{tasks:?}: {group:?}");
    }
}

#[test]
fn refused_groups_are_counted_by_reason_and_drawn_again_within_the_bound() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str, how: &str, added: &str| run(&drawing(folder.path(), name, how, added), Start::New);
    let third = of("third", "refuses", IMITATING).unwrap();
    // Of the draws 0 to 3 and 6 to 9, two are refused, and two others drawn in their place.
    for step in &metrics(&third)[1..] {
        assert_eq!((&step["groups/refused"], &step["groups/refused/third"]), (&2.into(), &2.into()));
        assert_eq!((&step["groups/tried"], &step["groups/dropped"]), (&6.into(), &2.into()));
    }
    assert_eq!(third.groups, BTreeMap::from([("trained".to_owned(), 8), ("refused: third".to_owned(), 4)]));
    // No group is drawn or taken in the place of another one without the table: of the draws 0 to 3, two are refused, and
    // of the draws 4 to 7, one is, also where these were started ahead, or a part of the step was trained before.
    let schedules =
        [("unbounded", ""), ("ahead", "[schedule]\nmax_staleness = 1"), ("parts", "[schedule]\nstream = true")];
    for (name, schedule) in schedules {
        let unbounded = of(name, "refuses", schedule).unwrap();
        assert_eq!((unbounded.groups["trained"], unbounded.groups["refused: third"]), (5, 3), "{name}");
        let refused: Vec<_> = metrics(&unbounded)[1..].iter().map(|step| step["groups/refused"].clone()).collect();
        assert_eq!(refused, [2, 1], "{name}");
    }
    // Of 40 reasons each has a name, and the others have one together.
    let made_up = format!("{IMITATING}\nsteps = 9\nmax_steps_without_update = 9");
    let error = of("made-up", "makes-up", &made_up).unwrap_err().to_string();
    let says =
        "none of 8 groups could be learned from (8 were refused by the sampler)\nhint: look at the sampler's reasons, ";
    assert!(error.contains(says), "{error}");
    let checkpoint = folder.path().join("runs/made-up/checkpoints/step-000009/state.json");
    let state: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(checkpoint).unwrap()).unwrap();
    let groups = state["groups"].as_object().unwrap();
    let reasons = groups.keys().filter(|name| name.starts_with("refused: ")).count();
    let named: Vec<_> = groups.iter().filter(|(name, _)| name.starts_with("refused: draw-")).collect();
    assert!(named.iter().all(|(_, count)| **count == 1), "{groups:?}");
    assert_eq!((reasons, named.len(), &groups["refused: other"]), (41, 40, &(9 * 8 - 40).into()));
}

#[test]
fn a_step_whose_rows_do_not_exist_is_not_taken() {
    let folder = tempfile::tempdir().unwrap();
    let error = run(&drawing(folder.path(), "beyond", "beyond", ""), Start::New).unwrap_err().to_string();
    let says = "step 2: the sampler `own` returned no answer: task 0 is of dataset 1, and there are 1 datasets\nhint: repair it, or raise plugin.own.limits";
    assert!(error.starts_with(says), "{error}");
    let checkpoints = folder.path().join("runs/beyond/checkpoints");
    let names: Vec<_> = std::fs::read_dir(&checkpoints).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["step-000001"]);
    let repaired = drawing(folder.path(), "beyond", "in-order", "");
    let refused = run(&repaired, RESUME).unwrap_err().to_string();
    assert!(refused.contains("the sampler `own` has another set of parameters"), "{refused}");
    let changed = Start::Resume { from: None, allow_changed_plugins: true };
    assert_eq!(run(&repaired, changed).unwrap().step, 2);
}

#[test]
fn a_step_may_have_more_groups_than_there_are_rows() {
    let folder = tempfile::tempdir().unwrap();
    let added = "[train]\nsteps = 1\nprompts_per_step = 10";
    let few = run(&drawing(folder.path(), "few", "in-order", added), Start::New).unwrap();
    let ids = tasks(&few);
    assert_eq!((ids.len(), &ids["1.0"], &ids["1.1"]), (10, &ids["1.8"], &ids["1.9"]));
    let error = run(&config(folder.path(), "epochs", added), Start::New).unwrap_err().to_string();
    assert!(error.ends_with(" has 8 usable rows, fewer than train.prompts_per_step = 10"), "{error}");
}

#[test]
fn one_row_for_ever_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let stuck = run(&drawing(folder.path(), "stuck", "one-row", ""), Start::New).unwrap();
    for step in &metrics(&stuck)[1..] {
        assert_eq!((&step["sampler/distinct_rows"], &step["sampler/most_drawn"]), (&1.into(), &1.0.into()));
    }
}

#[test]
fn a_plugin_that_is_no_sampler_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = drawing(folder.path(), "wrong", "in-order", "");
    let own = config.plugin.get_mut("own").unwrap();
    own.path = repository().join("target/plugins/format.wasm");
    own.params = serde_json::from_str(r#"{"pattern": "."}"#).unwrap();
    let error = run(&config, Start::New).unwrap_err().to_string();
    let says = "plugin `own` does not draw tasks: it does not export gavel:plugin/sampler\nhint: ";
    assert!(error.starts_with(says), "{error}");
}
