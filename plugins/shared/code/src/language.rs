//! The languages of the code.

use serde::Deserialize;

/// A language that a program of the sandbox runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Run by `programs/python`.
    Python,
    /// Run by `programs/javascript`.
    JavaScript,
    /// Run by `programs/c`.
    C,
}

impl Language {
    /// The name of the language, which is also the usual name of its program.
    pub fn name(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "javascript",
            Self::C => "c",
        }
    }

    /// Whether a fence with this word after it has code in the language.
    pub(crate) fn is_named(self, word: &str) -> bool {
        let names: &[&str] = match self {
            Self::Python => &["python", "python3", "py", "py3"],
            Self::JavaScript => &["javascript", "js", "node", "nodejs", "jsx", "mjs", "cjs"],
            Self::C => &["c", "c99", "c11", "h"],
        };
        names.iter().any(|name| word.eq_ignore_ascii_case(name))
    }

    /// Whether the program asks to repeat jobs that its interpreter is too
    /// small for.
    pub(crate) fn repeats_jobs(self) -> bool {
        self == Self::Python
    }
}
