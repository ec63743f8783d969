//! The languages that plugins are written in. Each has a module; the rest of
//! the crate uses only [`Toolchain`].

mod c;
mod js;
pub(crate) mod python;
mod rust;

use crate::build::Step;
use crate::error::Error;
use crate::inputs::Inputs;
use crate::manifest::Project;
use crate::tool::Tool;
pub use python::{own_python, use_environment};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A language with an SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Rust, by cargo.
    Rust,
    /// Python, by componentize-py.
    Python,
    /// JavaScript or TypeScript, by componentize-js.
    Js,
    /// C, by zig or clang.
    C,
}

impl Language {
    /// Every language.
    pub const ALL: [Self; 4] = [Self::Rust, Self::Python, Self::Js, Self::C];

    /// Its word in a manifest and in `--lang`; also its folder below `sdk/`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Python => "python",
            Self::Js => "js",
            Self::C => "c",
        }
    }

    /// Its name, and the name of the language that shares its SDK and tools.
    pub fn with_dialect(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Python => "Python",
            Self::Js => "JavaScript, TypeScript",
            Self::C => "C, C++",
        }
    }

    /// The tools that a build in the current folder would miss on this machine, without the packages of a project.
    pub fn missing_tools(self) -> Vec<&'static Tool> {
        self.toolchain().missing_on_machine()
    }

    pub(crate) fn toolchain(self) -> &'static dyn Toolchain {
        match self {
            Self::Rust => &rust::Rust,
            Self::Python => &python::Python,
            Self::Js => &js::Js,
            Self::C => &c::C,
        }
    }
}

/// The language's name in prose.
impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rust => "Rust",
            Self::Python => "Python",
            Self::Js => "JavaScript",
            Self::C => "C",
        })
    }
}

impl FromStr for Language {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|language| language.as_str() == word);
        found.ok_or_else(|| Error::Language { found: word.to_owned() })
    }
}

/// A language, for the scaffold and the build.
pub(crate) trait Toolchain {
    /// The folder of the SDK among the embedded files (`rust`), and the folder
    /// of its copy below a project's `vendor/` (`gavel-sdk`). `template/` and
    /// `tests/` are not copied.
    fn sdk(&self) -> (&'static str, &'static str);

    /// Finds the tools and their inputs. It may keep files in the project's
    /// `build/`.
    fn prepare<'a>(&self, project: &'a Project, told: &mut dyn FnMut(Step<'_>)) -> Result<Prepared<'a>, Error>;

    /// The tools that a build of the project in `folder` would miss.
    fn missing(&self, folder: &Path) -> Vec<&'static Tool>;

    /// The tools that a build would miss, without those that each project
    /// installs.
    fn missing_on_machine(&self) -> Vec<&'static Tool> {
        self.missing(Path::new("."))
    }

    /// A hint about exporting something from the component: `export a reward with …`.
    fn how_to_export(&self) -> &'static str;
}

/// A build that can begin.
pub(crate) struct Prepared<'a> {
    /// Everything that affects the component. `None` if the tools run each
    /// time: they know themselves what changed, are fast if nothing did, and
    /// are deterministic.
    pub inputs: Option<Inputs>,
    /// Makes the component's bytes.
    pub make: Box<dyn FnOnce() -> Result<Compiled, Error> + 'a>,
}

/// The result of a toolchain.
pub(crate) struct Compiled {
    /// The component.
    pub component: Vec<u8>,
    /// The output of the tools, without warnings.
    pub said: String,
    /// Warnings of code that builds but will not work, in lines.
    pub warnings: String,
    /// Files that were read beside the inputs, if the tools report them.
    pub elsewhere: Inputs,
}
