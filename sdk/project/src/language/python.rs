//! Python.

use super::{Compiled, Toolchain};
use crate::error::Error;
use crate::manifest::Project;
use crate::tool::Tool;

pub(super) struct Python;

impl Toolchain for Python {
    fn sdk(&self) -> (&'static str, &'static str) {
        ("python", "gavel")
    }

    fn build(&self, project: &Project) -> Result<Compiled, Error> {
        let what = format!("`{}` is in Python, which is not built yet", project.manifest.name);
        Err(Error::Source { what, hint_text: "write it in Rust".into() })
    }

    fn missing(&self, _: &Project) -> Vec<&'static Tool> {
        Vec::new()
    }

    fn how_to_export(&self) -> &'static str {
        "export it"
    }
}
