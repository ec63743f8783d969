//! Curves of a run as a picture: an SVG file that needs nothing else.

use crate::failure::{Failure, Result};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;
use std::path::Path;

const SIZE: (u32, u32) = (860, 480);
const LEFT: RGBColor = RGBColor(0x1f, 0x77, 0xb4);
const RIGHT: RGBColor = RGBColor(0xd6, 0x27, 0x28);

/// A number of each step, with its name.
pub struct Series<'a> {
    /// What the axis and the legend show.
    pub name: &'a str,
    /// Step and number, in the order of steps; not empty.
    pub points: &'a [(u64, f64)],
}

impl Series<'_> {
    /// The numbers that the axis shows, with some room.
    fn range(&self) -> std::ops::Range<f64> {
        let numbers = || self.points.iter().map(|(_, number)| *number);
        let (least, most) = (numbers().fold(f64::INFINITY, f64::min), numbers().fold(f64::NEG_INFINITY, f64::max));
        let room = ((most - least) * 0.05).max(1e-6);
        least - room..most + room
    }

    fn line(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        self.points.iter().map(|&(step, number)| (step as f64, number))
    }
}

/// Writes a picture of two numbers over the same steps, each with an axis of its own, to the SVG file `path`.
pub fn write(path: &Path, title: &str, left: &Series<'_>, right: &Series<'_>) -> Result<()> {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    draw(&area, title, left, right)
        .map_err(|error| Failure::new(format!("cannot write {}", path.display())).why(error.to_string()))
}

fn draw(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    title: &str,
    left: &Series<'_>,
    right: &Series<'_>,
) -> std::result::Result<(), Box<dyn Error>> {
    area.fill(&WHITE)?;
    let last = left.points.iter().chain(right.points).map(|(step, _)| *step).max().unwrap_or(1).max(1);
    let steps = 0.0..last as f64;
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .right_y_label_area_size(60)
        .build_cartesian_2d(steps.clone(), left.range())?
        .set_secondary_coord(steps, right.range());
    chart
        .configure_mesh()
        .x_desc("step")
        .y_desc(left.name)
        .x_label_formatter(&|step: &f64| format!("{step:.0}"))
        .light_line_style(WHITE)
        .draw()?;
    chart.configure_secondary_axes().y_desc(right.name).draw()?;
    let key = |colour: RGBColor| {
        move |(x, y): (i32, i32)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2))
    };
    chart.draw_series(LineSeries::new(left.line(), LEFT.stroke_width(2)))?.label(left.name).legend(key(LEFT));
    chart
        .draw_secondary_series(LineSeries::new(right.line(), RIGHT.stroke_width(2)))?
        .label(right.name)
        .legend(key(RIGHT));
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::MiddleRight)
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

/// Writes a picture of several numbers over the same steps, with one axis, to the SVG file `path`.
pub fn write_many(path: &Path, title: &str, axis: &str, all: &[Series<'_>]) -> Result<()> {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    draw_many(&area, title, axis, all)
        .map_err(|error| Failure::new(format!("cannot write {}", path.display())).why(error.to_string()))
}

fn draw_many(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    title: &str,
    axis: &str,
    all: &[Series<'_>],
) -> std::result::Result<(), Box<dyn Error>> {
    area.fill(&WHITE)?;
    let last = all.iter().flat_map(|series| series.points).map(|(step, _)| *step).max().unwrap_or(1).max(1);
    let ranges = || all.iter().map(Series::range);
    let least = ranges().map(|range| range.start).fold(f64::INFINITY, f64::min);
    let most = ranges().map(|range| range.end).fold(f64::NEG_INFINITY, f64::max);
    // The names are to the right of the curves.
    let mut chart = ChartBuilder::on(area)
        .caption(title, ("sans-serif", 20))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(60)
        .build_cartesian_2d(0.0..last as f64 * 1.4, least..most)?;
    chart
        .configure_mesh()
        .x_desc("step")
        .y_desc(axis)
        .x_label_formatter(&|step: &f64| format!("{step:.0}"))
        .light_line_style(WHITE)
        .draw()?;
    for (number, series) in all.iter().enumerate() {
        let colour = Palette99::pick(number).to_rgba();
        let key = move |(x, y): (i32, i32)| PathElement::new(vec![(x, y), (x + 18, y)], colour.stroke_width(2));
        chart.draw_series(LineSeries::new(series.line(), colour.stroke_width(2)))?.label(series.name).legend(key);
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE)
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_curves_are_drawn_with_their_names() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("curves.svg");
        let [up, down] = [[(0, 1.0), (10, 3.0), (20, 4.0)], [(0, 0.3), (10, 0.6), (20, 0.2)]];
        let (left, right) = (Series { name: "score", points: &up }, Series { name: "accuracy", points: &down });
        write(&path, "A < B", &left, &right).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{svg}");
        for text in ["score", "accuracy", "A &lt; B", "#1F77B4", "#D62728"] {
            assert!(svg.contains(text), "no {text} in {svg}");
        }
        assert!(!svg.contains("href"), "it needs another file: {svg}");
        write_many(&path, "A", "accuracy", &[left, right]).unwrap();
        let many = std::fs::read_to_string(&path).unwrap();
        assert!(["score", "accuracy", "step"].iter().all(|text| many.contains(text)) && many.len() > 1000, "{many}");
        let (left, right) = (Series { name: "score", points: &up }, Series { name: "accuracy", points: &down });
        let nowhere = write(&folder.path().join("none/curves.svg"), "A", &left, &right).unwrap_err().to_string();
        assert!(nowhere.contains("curves.svg"), "{nowhere}");
    }
}
