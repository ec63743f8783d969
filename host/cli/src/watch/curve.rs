//! The values of a metric over the steps, in bounded memory.

/// The most points of a curve that are kept.
const MOST_POINTS: usize = 4096;
/// The heights of a spark line.
const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Steps and values. Of a long run, every second, fourth, … value is kept, and the last.
pub struct Curve {
    points: Vec<(f64, f64)>,
    last: (f64, f64),
    /// Of how many values one is kept.
    stride: usize,
    /// The values since the last that was kept.
    skipped: usize,
}

impl Curve {
    pub fn new(step: f64, value: f64) -> Self {
        Self { points: vec![(step, value)], last: (step, value), stride: 1, skipped: 0 }
    }

    /// Adds the value of a later step.
    pub fn push(&mut self, step: f64, value: f64) {
        self.last = (step, value);
        self.skipped += 1;
        if self.skipped < self.stride {
            return;
        }
        self.skipped = 0;
        self.points.push(self.last);
        if self.points.len() > MOST_POINTS {
            let mut number = 0;
            self.points.retain(|_| {
                number += 1;
                number % 2 == 1
            });
            self.stride *= 2;
        }
    }

    /// The last value.
    pub fn last(&self) -> f64 {
        self.last.1
    }

    /// Steps and values; the last is among them.
    pub fn points(&self) -> Vec<(f64, f64)> {
        let kept = self.points.iter().copied();
        kept.chain((self.skipped > 0).then_some(self.last)).collect()
    }

    /// The lowest and the highest value.
    pub fn range(&self) -> (f64, f64) {
        let points = self.points();
        let values = || points.iter().map(|point| point.1);
        (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max))
    }

    /// The curve in at most `width` characters, each as high as the mean of its part.
    pub fn spark(&self, width: usize) -> String {
        let points = self.points();
        let parts = width.min(points.len());
        let (low, high) = self.range();
        let block = |part: usize| {
            let values = &points[part * points.len() / parts..(part + 1) * points.len() / parts];
            let mean = values.iter().map(|point| point.1).sum::<f64>() / values.len() as f64;
            let height = if high > low { (mean - low) / (high - low) } else { 0.5 };
            BLOCKS[((height * BLOCKS.len() as f64) as usize).min(BLOCKS.len() - 1)]
        };
        (0..parts).map(block).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(values: impl IntoIterator<Item = f64>) -> Curve {
        let mut values = (0..).map(f64::from).zip(values);
        let (step, value) = values.next().unwrap();
        let mut curve = Curve::new(step, value);
        values.for_each(|(step, value)| curve.push(step, value));
        curve
    }

    #[test]
    fn a_spark_line_is_as_wide_as_its_place_or_its_curve() {
        assert_eq!(curve([0.0, 1.0, 2.0, 7.0]).spark(10), "▁▂▃█");
        assert_eq!(curve([3.0, 3.0]).spark(10), "▅▅");
        assert_eq!(curve((0..100).map(f64::from)).spark(4), "▁▃▆█");
        assert_eq!(curve([1.0]).spark(0), "");
    }

    #[test]
    fn a_long_curve_keeps_its_shape_and_its_last_value() {
        let long = curve((0..100_001).map(f64::from));
        let points = long.points();
        assert!((MOST_POINTS / 2..=MOST_POINTS + 1).contains(&points.len()), "{}", points.len());
        assert_eq!((points[0], points[points.len() - 1]), ((0.0, 0.0), (100_000.0, 100_000.0)));
        assert!(points.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert_eq!((long.range(), long.last()), ((0.0, 100_000.0), 100_000.0));
    }
}
