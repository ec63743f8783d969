//! Writes the demo's dataset: `demo-data FOLDER` makes `train.parquet`,
//! `validation.parquet` and `sft.parquet` in FOLDER. The files are the same on
//! every machine and at every call.

mod file;
mod questions;

use anyhow::{Context, bail};
use questions::{Question, Split};
use std::path::Path;

/// Rows to train on; the warm-up file asks the same questions.
const TRAIN_ROWS: usize = 7_500;
/// Rows to validate on.
const VALIDATION_ROWS: usize = 500;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(folder), None) if !folder.as_encoded_bytes().starts_with(b"-") => write_all(Path::new(&folder)),
        _ => bail!("expected one argument, the folder to write to: demo-data FOLDER"),
    }
}

fn write_all(folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
    let train = questions::draw(Split::Train, TRAIN_ROWS);
    let validation = questions::draw(Split::Validation, VALIDATION_ROWS);
    let rows = |split, questions: &[Question], row: fn(&Question, Split, usize) -> _| {
        questions.iter().enumerate().map(|(index, question)| row(question, split, index)).collect::<Vec<_>>()
    };
    file::write(&folder.join("train.parquet"), false, &rows(Split::Train, &train, Question::row))?;
    file::write(&folder.join("validation.parquet"), false, &rows(Split::Validation, &validation, Question::row))?;
    file::write(&folder.join("sft.parquet"), true, &rows(Split::Train, &train, Question::row_with_response))
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::{Row, RowReader, Task};
    use std::collections::HashSet;

    fn read(folder: &Path, name: &str) -> Vec<Row> {
        RowReader::open(&folder.join(name)).unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[test]
    fn the_files_hold_tasks_with_every_column() {
        let folder = tempfile::tempdir().unwrap();
        write_all(folder.path()).unwrap();
        let (train, validation) = (read(folder.path(), "train.parquet"), read(folder.path(), "validation.parquet"));
        assert_eq!((train.len(), validation.len()), (TRAIN_ROWS, VALIDATION_ROWS));

        let mut ids = HashSet::new();
        for (name, row) in
            train.iter().map(|row| ("train", row)).chain(validation.iter().map(|row| ("validation", row)))
        {
            let task = Task::from_row(row.columns.clone(), row.position, name).unwrap();
            assert_eq!(task.data_source.as_deref(), Some("gavel/digit-sort"));
            let truth = task.reference.ground_truth.unwrap();
            let mut asked: Vec<char> = task.prompt[0].text().chars().filter(char::is_ascii_digit).collect();
            asked.sort_unstable();
            assert_eq!(truth.split(' ').collect::<String>(), asked.into_iter().collect::<String>());
            assert!(ids.insert(task.id));
        }

        let warm_up = read(folder.path(), "sft.parquet");
        assert_eq!(warm_up.len(), TRAIN_ROWS);
        for (row, plain) in warm_up.iter().zip(&train) {
            let truth = plain.columns.get("reward_model").unwrap().present("ground_truth").unwrap().plain_text();
            assert_eq!(row.columns.get("response").unwrap().plain_text(), format!("Answer: {truth}"));
            assert_eq!(row.columns.get("prompt"), plain.columns.get("prompt"));
        }
    }

    #[test]
    fn the_files_are_the_same_at_every_call() {
        let bytes = || {
            let folder = tempfile::tempdir().unwrap();
            write_all(folder.path()).unwrap();
            ["train", "validation", "sft"]
                .map(|name| std::fs::read(folder.path().join(format!("{name}.parquet"))).unwrap())
        };
        assert_eq!(bytes(), bytes());
    }
}
