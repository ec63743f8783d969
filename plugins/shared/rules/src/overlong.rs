//! DAPO's soft penalty of length (<https://arxiv.org/abs/2503.14476>, equation
//! 13), with verl's names of its parts.

use serde::Deserialize;

/// A penalty that starts where the last `buffer` of `max_response` begins and
/// grows to `factor` at `max_response`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlong {
    /// The longest response.
    pub max_response: u32,
    /// The last part of it, over which the penalty grows.
    pub buffer: u32,
    /// The penalty of the longest response.
    #[serde(default = "Overlong::default_factor")]
    pub factor: f64,
}

impl Overlong {
    /// The default penalty of the longest response.
    pub fn default_factor() -> f64 {
        1.0
    }

    /// Refuses numbers that make no penalty, with a sentence that names the
    /// parameter.
    pub fn check(&self) -> Result<(), String> {
        if self.buffer == 0 {
            return Err("`buffer` is 0: give the length over which the penalty grows".into());
        }
        if self.buffer > self.max_response {
            return Err(format!(
                "`buffer` ({}) is larger than `max_response` ({}): give the last part of the longest response",
                self.buffer, self.max_response
            ));
        }
        if !(self.factor.is_finite() && self.factor > 0.0) {
            return Err(format!(
                "`factor` is {}: give the penalty of the longest response, a number above 0",
                self.factor
            ));
        }
        Ok(())
    }

    /// The penalty of a response of `length`: from `-factor` to 0.
    pub fn penalty(&self, length: u32) -> f64 {
        let free = self.max_response - self.buffer;
        let over = f64::from(length.saturating_sub(free)) / f64::from(self.buffer);
        // Not `-over`: the penalty of a short response is 0, not -0.
        (0.0 - over * self.factor).max(-self.factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_penalty_grows_over_the_buffer_and_then_stays() {
        let overlong = Overlong { max_response: 100, buffer: 20, factor: 0.5 };
        let penalties = [0, 80, 81, 90, 100, 500].map(|length| overlong.penalty(length));
        assert_eq!(penalties, [0.0, 0.0, -0.025, -0.25, -0.5, -0.5]);
        assert!(penalties[0].is_sign_positive());
    }

    #[test]
    fn numbers_that_make_no_penalty_are_refused() {
        let check = |max_response, buffer, factor| Overlong { max_response, buffer, factor }.check();
        assert!(check(10, 10, 1.0).is_ok());
        assert!(check(10, 0, 1.0).unwrap_err().starts_with("`buffer` is 0"));
        assert!(check(10, 11, 1.0).unwrap_err().starts_with("`buffer` (11)"));
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(check(10, 5, factor).unwrap_err().starts_with("`factor`"));
        }
    }
}
