//! The steps of a response, and how their values become one score.

use std::ops::Range;

/// The steps that a process reward model gives values to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepsConfig {
    /// What a step is.
    pub each: Each,
    /// How the values become the score.
    pub score: StepsScore,
}

/// What a step is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Each {
    /// A part of the response between separators.
    Part {
        /// The text between two steps.
        separator: String,
        /// A text that takes the place of each separator and follows the last step. The value is read at its last
        /// token; without it, at the last token of the step.
        mark: Option<String>,
    },
    /// A token.
    Token,
}

/// How the values of steps become the score.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepsScore {
    /// The least value.
    Min,
    /// The mean.
    Mean,
    /// The value of the last step.
    Last,
    /// The product, which is for probabilities.
    Product,
}

impl StepsScore {
    /// The score of these values, of which there is at least one.
    pub(super) fn of(self, values: &[f64]) -> f64 {
        match self {
            Self::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
            Self::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Self::Last => values.last().copied().unwrap_or(f64::NAN),
            Self::Product => values.iter().product(),
        }
    }
}

/// A response that is divided into steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Divided {
    /// What the model reads in place of the response.
    pub(super) text: String,
    /// The bytes of each step in the response.
    pub(super) steps: Vec<Range<usize>>,
    /// The bytes of `text` whose last token has the value of each step.
    pub(super) read: Vec<Range<usize>>,
}

/// Divides a response at separators. Parts that are only white space are not steps; a response that is only white space
/// is one step.
pub(super) fn divide(response: &str, separator: &str, mark: Option<&str>) -> Divided {
    let mut steps = Vec::new();
    let mut start = 0;
    for part in response.split(separator) {
        if !part.trim().is_empty() {
            steps.push(start..start + part.len());
        }
        start += part.len() + separator.len();
    }
    if steps.is_empty() {
        steps.push(0..response.len());
    }
    let Some(mark) = mark else {
        let read = steps.iter().map(|step| step.start..step.start + response[step.clone()].trim_end().len()).collect();
        return Divided { text: response.to_owned(), steps, read };
    };
    let (mut text, mut read) = (String::new(), Vec::new());
    for step in &steps {
        text.push_str(&response[step.clone()]);
        read.push(text.len()..text.len() + mark.len());
        text.push_str(mark);
    }
    Divided { text, steps, read }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_divided_at_separators() {
        let response = "First.\n\n\n\nThen 2. \n\n";
        let found = divide(response, "\n\n", None);
        assert_eq!(found.steps, [0..6, 10..18]);
        assert_eq!((found.read, found.text.as_str()), (vec![0..6, 10..17], response));
        let found = divide(response, "\n\n", Some("<s>"));
        assert_eq!(found.steps, [0..6, 10..18]);
        assert_eq!((found.text.as_str(), found.read), ("First.<s>Then 2. <s>", vec![6..9, 17..20]));
        for only in ["a", "", "\n\n \n\n"] {
            let found = divide(only, "\n\n", Some("+")).steps;
            assert!(found.len() == 1 && found[0] == (0..only.len()), "{only:?}: {found:?}");
        }
    }

    #[test]
    fn values_become_a_score() {
        let values = [0.5, 0.25, 0.75];
        let all = [StepsScore::Min, StepsScore::Mean, StepsScore::Last, StepsScore::Product];
        assert_eq!(all.map(|score| score.of(&values)), [0.25, 0.5, 0.75, 0.09375]);
    }
}
