//! The panel: what is shown of a run, and where.

use super::lines::number;
use super::step_samples::{ShortSample, StepSamples};
use super::watched::Watched;
use crate::outcomes::listed;
use crate::runs::times::{short, since};
use crate::table::cut_to;
use gavel_data::{OutcomeKind, Shown};
use gavel_runs::RunState;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Axis, Block, Chart, Dataset, GraphType, Paragraph};

/// The columns that a terminal needs for metrics beside the other parts.
const WIDE: u16 = 90;
/// The rows that a terminal needs for samples.
const TALL: u16 = 20;
/// The characters of a metric's name.
const NAME: usize = 26;
/// The characters of a metric's last value.
const VALUE: usize = 9;

/// What the user has chosen to see.
pub struct View {
    /// The number of the metric that is drawn large.
    chosen: usize,
    coloured: bool,
}

impl View {
    pub fn with_colours(coloured: bool) -> Self {
        Self { chosen: 0, coloured }
    }

    /// Chooses the metric that is `by` below the chosen one, or the last or the first.
    pub fn choose(&mut self, by: isize, watched: &Watched) {
        self.chosen = self.chosen.saturating_add_signed(by).min(watched.curves.len().saturating_sub(1));
    }

    fn style(&self, colour: Color) -> Style {
        if self.coloured { Style::new().fg(colour) } else { Style::new() }
    }
}

/// Draws the run.
pub fn draw(frame: &mut Frame<'_>, watched: &Watched, view: &View) {
    let area = frame.area();
    let samples = if area.height >= TALL { 5 } else { 0 };
    let rows = [Constraint::Length(2), Constraint::Fill(1), Constraint::Length(samples), Constraint::Length(1)];
    let [head, body, below, foot] = Layout::vertical(rows).areas(area);
    frame.render_widget(header(watched, view, head.width), head);
    if body.width >= WIDE {
        let columns = [Constraint::Percentage(50), Constraint::Percentage(50)];
        let [left, right] = Layout::horizontal(columns).areas(body);
        draw_metrics(frame, watched, view, left);
        let others = outcomes(watched, view);
        let rows = [Constraint::Fill(1), Constraint::Length((others.len() as u16 + 2).min(right.height / 2))];
        let [chart, table] = Layout::vertical(rows).areas(right);
        draw_chart(frame, watched, view, chart);
        frame.render_widget(Paragraph::new(others).block(Block::bordered().title("outcomes and waits")), table);
    } else {
        draw_metrics(frame, watched, view, body);
    }
    if samples > 0 {
        frame.render_widget(sample_lines(watched.samples.as_ref(), view, below.width), below);
    }
    let keys = "q quit   ↑ ↓ choose a metric";
    frame.render_widget(Paragraph::new(keys).style(view.style(Color::DarkGray)), foot);
}

/// The state, the step, and the time left.
fn header(watched: &Watched, view: &View, width: u16) -> Paragraph<'static> {
    let found = &watched.overview;
    let colour = match found.state {
        RunState::Running => Color::Green,
        RunState::Failed => Color::Red,
        RunState::Ended | RunState::Stopped | RunState::Recording => Color::Yellow,
    };
    let mut parts = vec![match (found.step, found.steps) {
        (Some(step), Some(steps)) => format!("step {step}/{steps}"),
        (Some(step), None) => format!("step {step}"),
        (None, _) => "no step yet".to_owned(),
    }];
    if let Some(seconds) = watched.seconds_left() {
        parts.push(format!("{} left", short(seconds)));
    }
    if let Some(moment) = found.last_record {
        parts.push(format!("logged {} ago", since(moment)));
    }
    if let Some((name, share)) = found.waits_for() {
        parts.push(format!("the device waits for {} ({:.0} %)", Shown(name), share * 100.0));
    }
    if watched.damaged > 0 {
        parts.push(format!("{} damaged lines", watched.damaged));
    }
    let title = Line::from(vec![
        Span::styled(Shown(watched.run().display()).to_string(), Style::new().add_modifier(Modifier::BOLD)),
        Span::raw("  "),
        Span::styled(found.state.as_str(), view.style(colour).add_modifier(Modifier::BOLD)),
        Span::raw(format!("  {}", parts.join("  "))),
    ]);
    let second = match (&found.error, found.step.zip(found.steps)) {
        (Some(error), _) => Line::styled(cut_to(error, usize::from(width)), view.style(Color::Red)),
        (None, Some((step, steps))) => Line::styled(bar(step, steps, width), view.style(colour)),
        (None, None) => Line::default(),
    };
    Paragraph::new(vec![title, second])
}

/// How much of the steps is done, as a bar.
fn bar(step: u64, steps: u64, width: u16) -> String {
    let done = (step.min(steps) as f64 / steps.max(1) as f64 * f64::from(width)) as usize;
    "━".repeat(done) + &"╌".repeat(usize::from(width) - done)
}

/// The metrics with their last values, and a spark line each.
fn draw_metrics(frame: &mut Frame<'_>, watched: &Watched, view: &View, area: Rect) {
    let names = watched.names();
    let block = Block::bordered().title("metrics");
    let inner = block.inner(area);
    let rows = usize::from(inner.height);
    // The chosen metric stays in sight.
    let first = (view.chosen + 1).saturating_sub(rows.max(1));
    let width = usize::from(inner.width).saturating_sub(NAME + VALUE + 3);
    let line = |(at, name): (usize, &&str)| {
        let curve = &watched.curves[*name];
        let text = format!("{:<NAME$} {:>VALUE$}  ", cut_to(name, NAME - 1), number(curve.last()));
        let style = if at == view.chosen { Style::new().add_modifier(Modifier::REVERSED) } else { Style::new() };
        Line::from(vec![Span::styled(text, style), Span::styled(curve.spark(width), view.style(Color::Cyan))])
    };
    let lines: Vec<Line<'_>> = names.iter().enumerate().skip(first).take(rows).map(line).collect();
    let lines = if lines.is_empty() { vec![Line::raw("none yet")] } else { lines };
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// The curve of the chosen metric.
fn draw_chart(frame: &mut Frame<'_>, watched: &Watched, view: &View, area: Rect) {
    let names = watched.names();
    let Some(name) = names.get(view.chosen.min(names.len().saturating_sub(1))) else {
        frame.render_widget(Block::bordered(), area);
        return;
    };
    let curve = &watched.curves[*name];
    let points = curve.points();
    let (low, high) = curve.range();
    // A flat curve needs an axis too.
    let (low, high) = if high > low { (low, high) } else { (low - 0.5, high + 0.5) };
    let (from, to) = (points[0].0, points[points.len() - 1].0.max(points[0].0 + 1.0));
    let data = Dataset::default()
        .marker(Marker::Braille)
        .graph_type(GraphType::Line)
        .style(view.style(Color::Cyan))
        .data(&points);
    let axis = |range: [f64; 2], labels: [String; 2]| Axis::default().bounds(range).labels(labels);
    let chart = Chart::new(vec![data])
        .block(Block::bordered().title(Shown(name).to_string()))
        .x_axis(axis([from, to], [format!("step {from}"), to.to_string()]))
        .y_axis(axis([low, high], [number(low), number(high)]));
    frame.render_widget(chart, area);
}

/// The outcomes of each reward, and what the device waited for in the last step.
fn outcomes(watched: &Watched, view: &View) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    for (reward, [all, last]) in &watched.outcomes {
        let is_whole = all.keys().all(|kind| *kind == OutcomeKind::Scored.as_str());
        let style = if is_whole { Style::new() } else { view.style(Color::Yellow) };
        let in_step = if last.is_empty() { "nothing".to_owned() } else { listed(last) };
        lines.push(Line::styled(format!("{}: {in_step} in the last step", Shown(reward)), style));
        if !is_whole {
            lines.push(Line::styled(format!("  {} in all", listed(all)), style));
        }
    }
    let mut waits: Vec<_> = watched.overview.device_wait.iter().filter(|(_, seconds)| **seconds >= 0.001).collect();
    waits.sort_by(|one, other| other.1.total_cmp(one.1));
    let wait =
        |(name, seconds): (&String, &f64)| Line::raw(format!("waited {} s for {}", number(*seconds), Shown(name)));
    lines.extend(waits.into_iter().take(4).map(wait));
    if lines.is_empty() {
        lines.push(Line::raw("none yet"));
    }
    lines
}

/// The best and the worst sample of the newest step.
fn sample_lines(samples: Option<&StepSamples>, view: &View, width: u16) -> Paragraph<'static> {
    let Some(samples) = samples else {
        return Paragraph::new("no sample yet").block(Block::bordered().title("samples"));
    };
    let line = |title: &str, sample: &ShortSample, colour: Color| {
        let reward = sample.reward.map(number).unwrap_or_default();
        let text = format!("{title:<8} {reward:>VALUE$}  {:<12} {}", Shown(&sample.id), Shown(&sample.text));
        Line::styled(cut_to(&text, usize::from(width).saturating_sub(3)), view.style(colour))
    };
    let best = samples.best.as_ref().map(|sample| line("best", sample, Color::Green));
    let worst = samples.worst.as_ref().map(|sample| line("worst", sample, Color::Red));
    let unscored = samples.unscored.as_ref().map(|sample| line("no score", sample, Color::Yellow));
    let lines: Vec<Line<'_>> = best.into_iter().chain(worst).chain(unscored).collect();
    Paragraph::new(lines).block(Block::bordered().title(format!("samples of step {}", samples.step)))
}
