//! When a plugin is called: for which data sources, under which condition on
//! another plugin's score, and after which plugins.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// When a plugin of a run is called; always by default.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct When {
    /// The gate: a condition on another plugin's score.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only_if: Option<Condition>,
    /// The data sources that it is for; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub data_sources: Vec<SourcePattern>,
    /// The plugins that it waits for and whose verdicts it sees; only for judgers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<String>,
}

impl When {
    /// Whether it is for tasks of this data source.
    pub fn is_for(&self, data_source: Option<&str>) -> bool {
        self.data_sources.is_empty() || self.data_sources.iter().any(|pattern| pattern.matches(data_source))
    }
}

/// A condition on a plugin's score, written `format > 0`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Condition {
    /// The plugin's name in the run.
    pub plugin: String,
    comparison: Comparison,
    number: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    AtLeast,
    AtMost,
    Equal,
    Unequal,
    More,
    Less,
}

impl Comparison {
    /// `>=` comes before `>`, since the first sign that matches is used.
    const ALL: [Self; 6] = [Self::AtLeast, Self::AtMost, Self::Equal, Self::Unequal, Self::More, Self::Less];

    fn sign(self) -> &'static str {
        match self {
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
            Self::Equal => "==",
            Self::Unequal => "!=",
            Self::More => ">",
            Self::Less => "<",
        }
    }
}

impl Condition {
    /// Whether it holds for the `score` of the plugin.
    pub fn holds(&self, score: f64) -> bool {
        match self.comparison {
            Comparison::AtLeast => score >= self.number,
            Comparison::AtMost => score <= self.number,
            Comparison::Equal => score == self.number,
            Comparison::Unequal => score != self.number,
            Comparison::More => score > self.number,
            Comparison::Less => score < self.number,
        }
    }
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("{text:?} is not a condition; write NAME > NUMBER, such as \"format > 0\" (also >=, <, <=, ==, !=)")
        };
        let at = text.find(['>', '<', '=', '!']).ok_or_else(wrong)?;
        let (plugin, rest) = text.split_at(at);
        let (comparison, number) = Comparison::ALL
            .into_iter()
            .find_map(|comparison| Some((comparison, rest.strip_prefix(comparison.sign())?)))
            .ok_or_else(wrong)?;
        let number: f64 = number.trim().parse().map_err(|_| wrong())?;
        let plugin = plugin.trim();
        if plugin.is_empty() || plugin.contains(char::is_whitespace) || !number.is_finite() {
            return Err(wrong());
        }
        Ok(Self { plugin: plugin.to_owned(), comparison, number })
    }
}

impl TryFrom<String> for Condition {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Condition> for String {
    fn from(condition: Condition) -> Self {
        condition.to_string()
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.plugin, self.comparison.sign(), self.number)
    }
}

/// A data source, in which `*` stands for any characters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct SourcePattern(pub String);

impl SourcePattern {
    /// Whether the pattern matches. Only `*` matches a row without a data source.
    fn matches(&self, data_source: Option<&str>) -> bool {
        let Some(text) = data_source else { return self.0 == "*" };
        let Some((first, rest)) = self.0.split_once('*') else { return self.0 == text };
        let Some(mut text) = text.strip_prefix(first) else { return false };
        let mut parts: Vec<&str> = rest.split('*').collect();
        let last = parts.pop().unwrap_or_default();
        for part in parts {
            match text.find(part) {
                Some(at) => text = &text[at + part.len()..],
                None => return false,
            }
        }
        text.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_written_as_it_is_read() {
        for (text, shown, holds) in [
            ("format > 0", "format > 0", [false, false, true]),
            ("f>=0", "f >= 0", [false, true, true]),
            ("f < 0.0", "f < 0", [true, false, false]),
            ("f<= -0", "f <= -0", [true, true, false]),
            ("f == 0", "f == 0", [false, true, false]),
            ("f != 0", "f != 0", [true, false, true]),
        ] {
            let condition: Condition = text.parse().unwrap();
            assert_eq!(condition.to_string(), shown);
            assert_eq!([-1.0, 0.0, 1.0].map(|score| condition.holds(score)), holds, "{text}");
        }
        for wrong in ["", "format", "format > ", "> 0", "format = 0", "format > nan", "a b > 0", "format > 0 1"] {
            assert!(wrong.parse::<Condition>().unwrap_err().contains("is not a condition"), "{wrong}");
        }
    }

    #[test]
    fn a_star_stands_for_anything() {
        let matches = |pattern: &str, source| SourcePattern(pattern.into()).matches(Some(source));
        assert!(matches("openai/gsm8k", "openai/gsm8k") && !matches("openai/gsm8k", "openai/gsm8k2"));
        assert!(matches("math*", "math") && matches("math*", "math_dapo") && !matches("math*", "HuggingFaceH4/MATH"));
        assert!(matches("*/MATH-*", "HuggingFaceH4/MATH-500") && !matches("*/MATH-*", "MATH-500"));
        assert!(matches("a*b*c", "a-b-b-c") && !matches("a*b*c", "a-c-b") && !matches("ab*bc", "abc"));
        assert!(matches("*", "") && !SourcePattern("math*".into()).matches(None));
        let when = |patterns: &[&str]| When {
            data_sources: patterns.iter().map(|pattern| SourcePattern((*pattern).into())).collect(),
            ..When::default()
        };
        assert!(when(&[]).is_for(None) && when(&["*"]).is_for(None) && !when(&["x"]).is_for(None));
        assert!(when(&["x", "y*"]).is_for(Some("yes")));
    }
}
