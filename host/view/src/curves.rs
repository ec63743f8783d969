//! The metrics of a run as columns, read as the run writes them.

use crate::error::Result;
use gavel_runs::{Metrics, MetricsFollower};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The most points of a curve in an answer. Of more, each part of the axis has its lowest and its highest.
const MOST_POINTS: usize = 4000;
/// The metric that counts the tokens that steps learned from; the second is for runs that lack the first.
const TOKENS: [&str; 2] = ["tokens/trained", "tokens/response"];
const TIMESTAMP: &str = "time/timestamp";

/// What curves are drawn over.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Axis {
    /// The step.
    #[default]
    Step,
    /// Seconds since the first numbers.
    Time,
    /// Tokens that the policy learned from so far.
    Tokens,
}

/// Which curves.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SeriesRequest {
    /// Their names.
    pub names: Vec<String>,
    /// What they are drawn over.
    pub axis: Axis,
    /// The part of the axis; all of it without.
    pub range: Option<(f64, f64)>,
    /// Whether the curves have the same points, as those that are drawn on top of each other must.
    pub together: bool,
    /// The rows that the page has of generation `generation`: they are left out.
    pub after: usize,
    /// See [`Series::generation`].
    pub generation: u64,
}

/// Curves, or what was added to them.
#[derive(Debug, Serialize)]
pub(crate) struct Series {
    /// Counts how often the run wrote its metrics anew: a page with an older one begins again.
    pub(crate) generation: u64,
    /// The rows of metrics.
    pub(crate) rows: usize,
    /// The rows that are left out at the start.
    pub(crate) after: usize,
    pub(crate) curves: BTreeMap<String, Curve>,
}

/// The points of a curve.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(crate) struct Curve {
    pub(crate) x: Vec<f64>,
    pub(crate) step: Vec<f64>,
    /// Not a number where a curve has no value at a point of curves that have the same points.
    pub(crate) y: Vec<f64>,
    /// Whether points are left out between others.
    pub(crate) is_thinned: bool,
}

/// The metrics of a run.
pub(crate) struct Curves {
    follower: MetricsFollower,
    generation: u64,
    rows: usize,
    /// A value for each row up to the last that has one; not a number where a row has none.
    columns: BTreeMap<String, Vec<f64>>,
    damaged: usize,
}

impl Curves {
    pub(crate) fn new(run: &Path) -> Self {
        let follower = MetricsFollower::new(run);
        Self { follower, generation: 1, rows: 0, columns: BTreeMap::new(), damaged: 0 }
    }

    /// Reads what was added.
    pub(crate) fn update(&mut self) -> Result<()> {
        let new = self.follower.read_new()?;
        if new.is_anew {
            (self.rows, self.damaged, self.generation) = (0, 0, self.generation + 1);
            self.columns.clear();
        }
        self.damaged += new.damaged.len();
        new.steps.iter().for_each(|metrics| self.add(metrics));
        Ok(())
    }

    fn add(&mut self, metrics: &Metrics) {
        for (name, value) in metrics.as_json() {
            let Some(value) = value.as_f64() else { continue };
            if !self.columns.contains_key(name) {
                self.columns.insert(name.clone(), Vec::new());
            }
            if let Some(column) = self.columns.get_mut(name) {
                column.resize(self.rows, f64::NAN);
                column.push(value);
            }
        }
        self.rows += 1;
    }

    pub(crate) fn names(&self) -> Vec<&str> {
        self.columns.keys().map(String::as_str).filter(|name| !["step", TIMESTAMP].contains(name)).collect()
    }

    /// The generation, the rows and the damaged lines.
    pub(crate) fn state(&self) -> (u64, usize, usize) {
        (self.generation, self.rows, self.damaged)
    }

    /// The steps that have metrics, in the order of their lines.
    pub(crate) fn steps(&self) -> Vec<u64> {
        let steps = self.columns.get("step").map(Vec::as_slice).unwrap_or_default();
        steps.iter().filter(|step| !step.is_nan()).map(|step| *step as u64).collect()
    }

    /// The metrics of a step whose names begin with one of these, and when they were written.
    pub(crate) fn of_step(&self, step: u64, starts: &[&str]) -> (BTreeMap<String, f64>, Option<f64>) {
        let steps = self.columns.get("step").map(Vec::as_slice).unwrap_or_default();
        let Some(row) = steps.iter().rposition(|other| *other == step as f64) else { return (BTreeMap::new(), None) };
        let value = |column: &[f64]| column.get(row).copied().filter(|value| !value.is_nan());
        let wanted = self.columns.iter().filter(|(name, _)| starts.iter().any(|start| name.starts_with(start)));
        let found = wanted.filter(|(name, _)| *name != TIMESTAMP);
        let found = found.filter_map(|(name, column)| Some((name.clone(), value(column)?))).collect();
        (found, self.columns.get(TIMESTAMP).and_then(|column| value(column)))
    }

    /// All columns but the axes.
    pub(crate) fn columns(&self) -> BTreeMap<&str, &[f64]> {
        self.names().into_iter().filter_map(|name| Some((name, self.columns.get(name)?.as_slice()))).collect()
    }

    pub(crate) fn series(&self, request: &SeriesRequest) -> Series {
        let axis = self.axis(request.axis);
        // What is thinned comes whole each time.
        let is_short = self.rows <= MOST_POINTS && request.range.is_none() && !request.together;
        let is_same = is_short && request.generation == self.generation && request.after <= self.rows;
        let after = if is_same { request.after } else { 0 };
        let curve = |name: &String| {
            let column = self.columns.get(name).map(Vec::as_slice).unwrap_or_default();
            (name.clone(), self.curve(&axis, column, after, request.range))
        };
        let curves = match request.together {
            true => self.together(&axis, &request.names, request.range),
            false => request.names.iter().map(curve).collect(),
        };
        Series { generation: self.generation, rows: self.rows, after, curves }
    }

    pub(crate) fn axis(&self, axis: Axis) -> Vec<f64> {
        let column = |name: &str| self.columns.get(name).map(Vec::as_slice).unwrap_or_default();
        match axis {
            Axis::Step => column("step").to_vec(),
            Axis::Time => {
                let first = column(TIMESTAMP).iter().copied().find(|time| !time.is_nan()).unwrap_or(0.0);
                column(TIMESTAMP).iter().map(|time| time - first).collect()
            }
            Axis::Tokens => {
                let counts = TOKENS.into_iter().map(column).find(|counts| !counts.is_empty()).unwrap_or_default();
                let mut sum = 0.0;
                let padded = counts.iter().copied().chain(std::iter::repeat(f64::NAN)).take(self.rows);
                let add = |count: f64| {
                    sum += if count.is_nan() { 0.0 } else { count };
                    sum
                };
                if counts.is_empty() { Vec::new() } else { padded.map(add).collect() }
            }
        }
    }

    fn curve(&self, axis: &[f64], column: &[f64], after: usize, range: Option<(f64, f64)>) -> Curve {
        let steps = self.columns.get("step").map(Vec::as_slice).unwrap_or_default();
        let is_within = |x: f64| range.is_none_or(|(low, high)| (low..=high).contains(&x));
        let points: Vec<(f64, f64, f64)> = axis
            .iter()
            .zip(steps)
            .zip(column)
            .skip(after)
            .map(|((x, step), y)| (*x, *step, *y))
            .filter(|(x, _, y)| !y.is_nan() && !x.is_nan() && is_within(*x))
            .collect();
        let (points, is_thinned) = thinned(points, |(_, _, y)| *y);
        // A part of the points is no whole curve either.
        let mut curve = Curve { is_thinned: is_thinned || range.is_some(), ..Curve::default() };
        for (x, step, y) in points {
            curve.x.push(x);
            curve.step.push(step);
            curve.y.push(y);
        }
        curve
    }

    /// Curves with the same points: the rows in which any has a value, and of many rows those with the lowest and the
    /// highest sums.
    fn together(&self, axis: &[f64], names: &[String], range: Option<(f64, f64)>) -> BTreeMap<String, Curve> {
        let steps = self.columns.get("step").map(Vec::as_slice).unwrap_or_default();
        let is_within = |x: f64| range.is_none_or(|(low, high)| (low..=high).contains(&x));
        let columns: Vec<&[f64]> =
            names.iter().map(|name| self.columns.get(name).map(Vec::as_slice).unwrap_or_default()).collect();
        let value = |column: &[f64], row: usize| column.get(row).copied().unwrap_or(f64::NAN);
        let sum = |row: usize| {
            let mut values = columns.iter().map(|column| value(column, row)).filter(|value| !value.is_nan()).peekable();
            values.peek().is_some().then(|| values.sum::<f64>())
        };
        let rows = axis.iter().zip(steps).enumerate().filter(|(_, (x, _))| !x.is_nan() && is_within(**x));
        let rows = rows.filter_map(|(row, _)| Some((row, sum(row)?))).collect();
        let (rows, is_thinned) = thinned(rows, |(_, sum)| *sum);
        let all = |column: &[f64]| rows.iter().map(|(row, _)| value(column, *row)).collect::<Vec<f64>>();
        let (x, step) = (all(axis), all(steps));
        let curve = |column: &[f64]| Curve { x: x.clone(), step: step.clone(), y: all(column), is_thinned };
        names.iter().zip(columns.iter().copied()).map(|(name, column)| (name.clone(), curve(column))).collect()
    }
}

/// Of many points, those with the lowest and the highest value of each of equal parts, in their order.
fn thinned<T: Copy>(points: Vec<T>, value: impl Fn(&T) -> f64) -> (Vec<T>, bool) {
    if points.len() <= MOST_POINTS {
        return (points, false);
    }
    let part = points.len().div_ceil(MOST_POINTS / 2);
    let ends = points.chunks(part).flat_map(|part| {
        let numbers = || part.iter().enumerate();
        let low = numbers().min_by(|one, other| value(one.1).total_cmp(&value(other.1)));
        let high = numbers().max_by(|one, other| value(one.1).total_cmp(&value(other.1)));
        let (first, second) = match low.zip(high) {
            Some(((low, at), (high, to))) if low <= high => (Some(*at), (low != high).then_some(*to)),
            Some(((_, at), (_, to))) => (Some(*to), Some(*at)),
            None => (None, None),
        };
        first.into_iter().chain(second)
    });
    (ends.collect(), true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_runs::layout;

    #[test]
    fn curves_grow_and_begin_again() {
        let run = tempfile::tempdir().unwrap();
        let path = layout::metrics(run.path());
        std::fs::write(&path, "{\"step\":1,\"a\":1,\"tokens/trained\":5}\n{\"step\":2,\"b\":7}\n").unwrap();
        let mut curves = Curves::new(run.path());
        curves.update().unwrap();
        assert_eq!((curves.names(), curves.state()), (vec!["a", "b", "tokens/trained"], (1, 2, 0)));
        let ask = |curves: &Curves, axis, after| {
            let request =
                SeriesRequest { names: vec!["a".into()], axis, after, generation: 1, ..SeriesRequest::default() };
            let mut series = curves.series(&request);
            let curve = series.curves.remove("a").unwrap();
            (series.generation, series.after, curve.x, curve.y)
        };
        assert_eq!(ask(&curves, Axis::Step, 0), (1, 0, vec![1.0], vec![1.0]));
        let more = "{\"step\":3,\"a\":3,\"tokens/trained\":4}\n{\"st";
        std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + more).unwrap();
        curves.update().unwrap();
        assert_eq!(ask(&curves, Axis::Step, 2), (1, 2, vec![3.0], vec![3.0]));
        assert_eq!(ask(&curves, Axis::Tokens, 0), (1, 0, vec![5.0, 9.0], vec![1.0, 3.0]));
        assert_eq!(ask(&curves, Axis::Time, 0).2, Vec::<f64>::new());
        // Resumed from the first step.
        gavel_data::files::write_whole(&path, b"{\"step\":1,\"a\":1}\n").unwrap();
        curves.update().unwrap();
        assert_eq!(ask(&curves, Axis::Step, 1), (2, 0, vec![1.0], vec![1.0]));
    }

    #[test]
    fn a_part_of_the_points_is_no_whole_curve() {
        let run = tempfile::tempdir().unwrap();
        std::fs::write(layout::metrics(run.path()), "{\"step\":1,\"a\":1}\n{\"step\":2,\"a\":7}\n").unwrap();
        let mut curves = Curves::new(run.path());
        curves.update().unwrap();
        let ask = |range| {
            let request = SeriesRequest { names: vec!["a".into()], range, ..SeriesRequest::default() };
            let curve = curves.series(&request).curves.remove("a").unwrap();
            (curve.y, curve.is_thinned)
        };
        assert_eq!(ask(None), (vec![1.0, 7.0], false));
        assert_eq!(ask(Some((1.5, 9.0))), (vec![7.0], true));
    }

    #[test]
    fn stacked_curves_have_the_same_points_of_any_number_of_rows() {
        let run = tempfile::tempdir().unwrap();
        // Two parts that add up to 64, the second of which some rows lack, and one that no row has.
        let line = |step: usize| {
            let (whole, part) = (64 - step % 7, step % 7);
            let second = if part == 0 { String::new() } else { format!(",\"b\":{part}") };
            format!("{{\"step\":{step},\"a\":{whole}{second}}}\n")
        };
        for rows in [10, 50_000] {
            std::fs::write(layout::metrics(run.path()), (1..=rows).map(line).collect::<String>()).unwrap();
            let mut curves = Curves::new(run.path());
            curves.update().unwrap();
            let names: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
            let ask = |range| {
                let request = SeriesRequest { names: names.clone(), together: true, range, ..SeriesRequest::default() };
                curves.series(&request).curves
            };
            let found = ask(None);
            let (a, b) = (&found["a"], &found["b"]);
            assert_eq!((&a.x, &a.step, a.is_thinned), (&b.x, &b.step, rows > MOST_POINTS));
            assert!(a.x.len() == 10 || a.x.len() > MOST_POINTS / 4 && a.x.len() <= MOST_POINTS, "{}", a.x.len());
            let part = |value: f64| if value.is_nan() { 0.0 } else { value };
            assert!(a.y.iter().zip(&b.y).all(|(one, other)| part(*one) + part(*other) == 64.0));
            assert!(found["c"].y.iter().all(|value| value.is_nan()) && found["c"].x == a.x);
            assert_eq!(ask(Some((3.0, 5.0)))["a"].x, [3.0, 4.0, 5.0]);
        }
    }

    #[test]
    fn thinned_points_keep_the_extremes() {
        let points: Vec<_> = (0..100_000).map(|n| (f64::from(n), f64::from(n), f64::from(n % 977))).collect();
        let (kept, is_thinned) = thinned(points.clone(), |point| point.2);
        assert!(is_thinned && kept.len() <= MOST_POINTS && kept.len() > MOST_POINTS / 2, "{}", kept.len());
        assert!(kept.is_sorted_by(|one, other| one.0 < other.0));
        assert!(kept.iter().any(|point| point.2 == 976.0) && kept.iter().any(|point| point.2 == 0.0));
        assert_eq!(thinned(points[..10].to_vec(), |point| point.2), (points[..10].to_vec(), false));
    }
}
