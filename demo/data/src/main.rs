//! Writes the demos' datasets: `demo-data FOLDER` makes `train.parquet`, `validation.parquet` and `sft.parquet` in
//! FOLDER. Beside them, it makes pairs for a reward model, answers for judges, the questions of the demo with tools and the
//! orders of the demo with a shop. The files are the same on every machine and at every call.

mod file;
mod judged;
mod orders;
mod pairs;
mod products;
mod questions;

use anyhow::{Context, bail};
use orders::Order;
use products::Product;
use questions::{Question, Split};
use std::path::Path;

/// Rows to train on; the warm-up file asks the same questions.
const TRAIN_ROWS: usize = 7_500;
/// Rows to validate on.
const VALIDATION_ROWS: usize = 500;

/// Rows of the demo with tools to train on; the warm-up has the same questions.
const TRAIN_PRODUCTS: usize = 3_600;
/// Rows of it to validate on.
const VALIDATION_PRODUCTS: usize = 300;

/// Rows of the demo with a shop to train on; the warm-up has the same orders.
const TRAIN_ORDERS: usize = 174;
/// Rows of it to validate on.
const VALIDATION_ORDERS: usize = 60;

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
    file::write(&folder.join("sft.parquet"), true, &rows(Split::Train, &train, Question::row_with_response))?;
    file::write_lines(&folder.join("pairs-train.jsonl"), &rows(Split::Train, &train, pairs::row))?;
    file::write_lines(&folder.join("pairs-validation.jsonl"), &rows(Split::Validation, &validation, pairs::row))?;
    let judgements = |split, questions| rows(split, questions, judged::judgement);
    file::write_lines(&folder.join("judge-train.jsonl"), &judgements(Split::Train, &train))?;
    file::write_lines(&folder.join("judge-validation.jsonl"), &judgements(Split::Validation, &validation))?;
    file::write_lines(&folder.join("judge-pairs-train.jsonl"), &rows(Split::Train, &train, judged::pair))?;
    file::write_lines(
        &folder.join("judge-pairs-validation.jsonl"),
        &rows(Split::Validation, &validation, judged::pair),
    )?;
    write_products(folder)?;
    write_orders(folder)
}

/// The rows of the demo with tools, as lines of JSON: a conversation with calls has no schema that suits Parquet.
fn write_products(folder: &Path) -> anyhow::Result<()> {
    let (train, validation) = products::draw(TRAIN_PRODUCTS, VALIDATION_PRODUCTS);
    let rows = |split: Split, products: &[Product]| {
        products.iter().enumerate().map(|(index, product)| product.row(split, index)).collect::<Vec<_>>()
    };
    let conversations: Vec<_> = train.iter().enumerate().map(|(index, product)| product.conversation(index)).collect();
    file::write_lines(&folder.join("tools-train.jsonl"), &rows(Split::Train, &train))?;
    file::write_lines(&folder.join("tools-validation.jsonl"), &rows(Split::Validation, &validation))?;
    file::write_lines(&folder.join("tools-sft.jsonl"), &conversations)
}

/// The rows of the demo with a shop.
fn write_orders(folder: &Path) -> anyhow::Result<()> {
    let (train, validation) = orders::draw(TRAIN_ORDERS, VALIDATION_ORDERS);
    let rows = |split: Split, orders: &[Order]| {
        orders.iter().enumerate().map(|(index, order)| order.row(split, index)).collect::<Vec<_>>()
    };
    let warm_up: Vec<_> = train.iter().enumerate().flat_map(|(index, order)| order.warm_up(index)).collect();
    file::write_lines(&folder.join("shop-train.jsonl"), &rows(Split::Train, &train))?;
    file::write_lines(&folder.join("shop-validation.jsonl"), &rows(Split::Validation, &validation))?;
    let copies: Vec<_> = train.iter().map(|order| order.copy()).collect();
    file::write_lines(&folder.join("shop-copy.jsonl"), &copies)?;
    file::write_lines(&folder.join("shop-sft.jsonl"), &warm_up)
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
    fn products_are_asked_once_and_some_are_answered_with_the_calculator() {
        let folder = tempfile::tempdir().unwrap();
        write_all(folder.path()).unwrap();
        let mut asked = HashSet::new();
        for (name, count) in [("train", TRAIN_PRODUCTS), ("validation", VALIDATION_PRODUCTS)] {
            let rows = read(folder.path(), &format!("tools-{name}.jsonl"));
            assert_eq!(rows.len(), count);
            for row in rows {
                let task = Task::from_row(row.columns, row.position, name).unwrap();
                let question = task.prompt[0].text();
                let (first, second) = question.split_once(" * ").unwrap();
                let product = first.parse::<u64>().unwrap() * second.parse::<u64>().unwrap();
                assert_eq!(task.reference.ground_truth.unwrap(), product.to_string());
                assert!(asked.insert(question));
            }
        }
        let warm_up = read(folder.path(), "tools-sft.jsonl");
        let asks = |row: &&Row| row.columns.get("messages").unwrap().plain_text().contains("tool_calls");
        let share = warm_up.iter().filter(asks).count() as f64 / TRAIN_PRODUCTS as f64;
        assert!((0.4..0.5).contains(&share), "{share}");
    }

    #[test]
    fn orders_are_asked_once_and_some_are_paid_for() {
        let folder = tempfile::tempdir().unwrap();
        write_all(folder.path()).unwrap();
        let mut asked = HashSet::new();
        for (name, count) in [("train", TRAIN_ORDERS), ("validation", VALIDATION_ORDERS)] {
            let rows = read(folder.path(), &format!("shop-{name}.jsonl"));
            assert_eq!(rows.len(), count);
            for row in rows {
                let stock = row.columns.get("extra_info").unwrap().plain_text();
                let task = Task::from_row(row.columns, row.position, name).unwrap();
                let order = task.prompt[0].text();
                let (count, item) = order.split_once(' ').unwrap();
                assert_eq!(task.reference.ground_truth.unwrap(), format!(r#"{{"orders":[{{"{item}":{count}}}]}}"#));
                assert!(stock.contains(&format!(r#""{item}":{{"#)), "{stock}");
                assert!(asked.insert(order));
            }
        }
        let warm_up = read(folder.path(), "shop-sft.jsonl");
        let pays = |row: &&Row| row.columns.get("messages").unwrap().plain_text().contains(r#""name":"pay""#);
        let share = warm_up.iter().filter(pays).count() as f64 / TRAIN_ORDERS as f64;
        assert!((0.15..0.35).contains(&share), "{share}");
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
