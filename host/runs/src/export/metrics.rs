//! Metrics: a row a step. The columns are in the order in which the run first logged them.

use super::table::{Cell, Column, Kind};
use crate::damage::DamagedLine;
use crate::error::Result;
use crate::metrics_log::for_each_metrics;
use serde_json::Value;
use std::collections::HashSet;
use std::path::Path;

const STEP: &str = "step";

pub(super) fn columns(run: &Path) -> Result<Vec<Column>> {
    let mut columns = vec![Column::new(STEP, Kind::Count)];
    let mut known = HashSet::from([STEP.to_owned()]);
    for_each_metrics(run, |metrics| {
        for name in metrics.as_json().keys() {
            if !known.contains(name) {
                known.insert(name.clone());
                columns.push(Column::new(name.clone(), Kind::Number));
            }
        }
    })?;
    Ok(columns)
}

pub(super) fn rows(
    run: &Path,
    columns: &[Column],
    add: &mut impl FnMut(Vec<Cell>) -> Result<()>,
) -> Result<Vec<DamagedLine>> {
    let mut added = Ok(());
    let damaged = for_each_metrics(run, |metrics| {
        let cell = |column: &Column| {
            let value = metrics.as_json().get(&column.name);
            match column.kind {
                Kind::Count => value.and_then(Value::as_u64).into(),
                _ => value.and_then(Value::as_f64).into(),
            }
        };
        if added.is_ok() {
            added = add(columns.iter().map(cell).collect());
        }
    })?;
    added.map(|()| damaged)
}
