//! Rows as files.

use anyhow::Context;
use arrow_schema::{DataType, Field, Fields, Schema};
use parquet::arrow::ArrowWriter;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// Writes `rows` to `path`, whole or not at all. The column `response` is
/// there only `with_response`.
pub fn write(path: &Path, with_response: bool, rows: &[Value]) -> anyhow::Result<()> {
    let partial = path.with_extension("partial");
    write_parquet(&partial, with_response, rows).with_context(|| format!("cannot write {}", partial.display()))?;
    std::fs::rename(&partial, path).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes `rows` to `path`, a line each, whole or not at all.
pub fn write_lines(path: &Path, rows: &[Value]) -> anyhow::Result<()> {
    let partial = path.with_extension("partial");
    let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
    std::fs::write(&partial, lines).with_context(|| format!("cannot write {}", partial.display()))?;
    std::fs::rename(&partial, path).with_context(|| format!("cannot write {}", path.display()))
}

fn write_parquet(path: &Path, with_response: bool, rows: &[Value]) -> anyhow::Result<()> {
    let schema = Arc::new(schema(with_response));
    let mut decoder = arrow_json::ReaderBuilder::new(schema.clone())
        .with_batch_size(rows.len())
        .with_strict_mode(true)
        .build_decoder()?;
    decoder.serialize(rows)?;
    let batch = decoder.flush()?.context("there are no rows")?;
    let mut writer = ArrowWriter::try_new(File::create(path)?, schema, None)?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(())
}

fn schema(with_response: bool) -> Schema {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let number = |name: &str| Field::new(name, DataType::Int64, false);
    let record = |name: &str, fields: Vec<Field>| Field::new_struct(name, Fields::from(fields), false);
    let mut columns = vec![
        text("data_source"),
        Field::new_list("prompt", record("item", vec![text("role"), text("content")]), false),
        text("ability"),
        record("reward_model", vec![text("style"), text("ground_truth")]),
        record("extra_info", vec![number("index"), text("split"), number("digits"), text("phrasing")]),
    ];
    if with_response {
        columns.push(text("response"));
    }
    Schema::new(columns)
}
