//! What is drawn from rows in a file is what was drawn when all rows were in memory.

use super::*;
use crate::rows::TaskStream;
use crate::rows::dataset::dataset_rows;
use crate::rows::mixture::Share;
use crate::rows::shares as shares_of;
use gavel_config::Config;
use gavel_data::dataset::write_rows;
use gavel_data::seed::uniform;
use gavel_data::{Columns, DatasetReader, DatasetRow};
use gavel_plugin::{Sandbox, SandboxConfig};
use serde_json::json;
use std::num::NonZeroUsize;

/// Numbers that follow from a seed.
struct Chance {
    seed: u64,
    drawn: u64,
}

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.drawn += 1;
        (uniform(self.seed, self.drawn) * end as f64) as usize
    }
}

/// The rows of a file; the first of them is short enough to be used.
fn rows(chance: &mut Chance) -> Vec<Columns> {
    let count = 1 + chance.below(25);
    let row = |number: usize| {
        let length = if number == 0 { 1 } else { chance.below(30) };
        let mut row = json!({"question": "é".repeat(length) + "?", "answer": format!("{}.50", chance.below(9))});
        if chance.below(2) == 0 {
            row["data_source"] = ["maths", "essays"][chance.below(2)].into();
        }
        match chance.below(3) {
            0 => row["id"] = format!("id-{number}").into(),
            1 => row["extra_info"] = json!({"index": chance.below(100), "deep": [{"a": number}]}),
            _ => {}
        }
        serde_json::from_value(row).unwrap()
    };
    (0..count).map(row).collect()
}

/// Datasets of one or two files each, in both formats, with weights or without.
fn config(chance: &mut Chance, folder: &Path) -> Config<toml::Table> {
    let is_weighted = chance.below(2) == 0;
    let mut dataset = |number: usize| {
        let path = folder.join(format!("dataset-{number}"));
        std::fs::create_dir(&path).unwrap();
        let forms: &[&str] = [&["a.jsonl"][..], &["a.parquet"], &["a.jsonl", "b.parquet"]][chance.below(3)];
        forms.iter().for_each(|file| write_rows(&path.join(file), &rows(chance)).unwrap());
        let mut table = json!({"path": path});
        if is_weighted {
            table["weight"] = json!(0.5 + chance.below(4) as f64);
        }
        if chance.below(2) == 0 {
            table["data_source"] = json!("others");
        }
        table
    };
    let train: Vec<Value> = (0..3).map(&mut dataset).collect();
    let columns = json!({"prompt": "question"});
    let data = json!({"train": train, "columns": columns, "overlong_prompts": "drop", "max_prompt_tokens": 60});
    let config = json!({"model": {"path": "m"}, "data": data, "rollout": {"max_tokens": 8}, "train": {}});
    serde_json::from_value(config).unwrap()
}

/// The prompts and their parts as a run had them when it held all rows.
fn all_in_memory(config: &Config<toml::Table>, text: &TextModel, limit: PromptLimit) -> (Vec<Prompt>, Vec<Share>) {
    let (mut used, mut shares, mut before) = (Vec::new(), Vec::new(), 0);
    for table in &config.data.train.0 {
        let first = used.len();
        let rows: Vec<DatasetRow> =
            DatasetReader::open(table.path.path()).unwrap().collect::<std::result::Result<_, _>>().unwrap();
        let count = rows.len();
        for DatasetRow { path, mut row } in rows {
            row.position += before;
            config.data.columns.apply(&mut row.columns).unwrap();
            if let (Some(source), None) = (&table.data_source, row.columns.present("data_source")) {
                row.columns.insert("data_source", source.as_str());
            }
            used.extend(prompt(row, &path, "train", text, limit, &EpisodeKinds::single()).unwrap());
        }
        before += count;
        shares.extend(table.weight.map(|weight| Share { rows: used.len() - first, weight }));
    }
    if shares.is_empty() {
        shares.push(Share { rows: used.len(), weight: 1.0 });
    }
    (used, shares)
}

#[test]
fn the_draws_are_those_of_rows_in_memory() {
    let (text, episode_kinds) = (TextModel::byte_level(), EpisodeKinds::single());
    let sandbox = Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::MIN)).unwrap();
    let mut left_out = 0;
    for seed in 0..12 {
        let folder = tempfile::tempdir().unwrap();
        let config = config(&mut Chance { seed, drawn: 0 }, folder.path());
        let limit = PromptLimit::new(&config.data, 512, 8).unwrap();
        let (expected, shares) = all_in_memory(&config, &text, limit);
        let all: usize =
            dataset_rows(&config, &config.data.train, &sandbox).map(|rows| rows.unwrap().rows.count()).sum();
        left_out += all - expected.len();
        // All rows in a file, the later ones, and none.
        for most_in_memory in [0, 500, usize::MAX] {
            let rows = dataset_rows(&config, &config.data.train, &sandbox);
            let found = prompts_within(most_in_memory, rows, "train", &text, limit, &episode_kinds).unwrap();
            let found_shares = shares_of(&found.datasets);
            assert_eq!((found.rows.len(), &found_shares), (expected.len(), &shares));
            let lengths = || expected.iter().map(|prompt| prompt.ids.len());
            assert_eq!(found.lengths, (lengths().min().unwrap(), lengths().max().unwrap()));
            let sources = expected.iter().map(|prompt| prompt.task.data_source.as_deref());
            assert_eq!(found.sources, sources.collect());
            assert_eq!(found.first_tasks, [expected[0].task.clone()]);
            for shuffle in [true, false] {
                let stream = || TaskStream::new(seed, shuffle, &shares);
                let (mut drawn, mut whole) = (TaskStream::new(seed, shuffle, &found_shares), stream());
                let mut check = |ordinal| {
                    let (prompt, same) = (found.rows.get(drawn.row(ordinal)).unwrap(), &expected[whole.row(ordinal)]);
                    assert_eq!((&prompt.task, &prompt.ids), (&same.task, &same.ids), "draw {ordinal} of seed {seed}");
                };
                (0..2 * expected.len() as u64 + 7).for_each(&mut check);
                // A run that is resumed begins at any draw.
                [91, 3, 40].into_iter().for_each(check);
            }
            let whole = found.rows.into_vec().unwrap();
            assert!(whole.iter().zip(&expected).all(|(found, same)| found.task == same.task && found.ids == same.ids));
        }
    }
    assert!(left_out > 20, "{left_out}");
}
