//! The job of a child: the first argument, as JSON.

use crate::call::{calling, testing};
use serde::Deserialize;
use serde_json::Value;

/// What a child does.
#[derive(Deserialize)]
pub struct Job {
    code: String,
    #[serde(default)]
    function: Option<String>,
    #[serde(default)]
    arguments: Vec<Value>,
    /// The statements of a test, which answer with `__answer`.
    #[serde(default)]
    test: Option<String>,
}

/// The source that a job runs, and whether it answers with values.
pub struct Source {
    pub text: String,
    pub answers: bool,
}

impl Job {
    pub fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text).map_err(|error| format!("the job is not JSON as programs/c describes it: {error}"))
    }

    /// # Errors
    /// The code does not have the function, or not with such parameters.
    pub fn source(self) -> Result<Source, String> {
        let Self { code, function, arguments, test } = self;
        Ok(match (test, function) {
            (Some(test), _) => Source { text: testing(&code, &test), answers: true },
            (None, Some(function)) => Source { text: calling(&code, &function, &arguments)?, answers: true },
            (None, None) => Source { text: code, answers: false },
        })
    }
}
