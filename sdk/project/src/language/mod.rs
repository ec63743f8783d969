//! The languages that plugins are written in. What is particular to one is in
//! its module; the rest of the crate knows only [`Toolchain`].

mod c;
mod js;
pub(crate) mod python;
mod rust;

use crate::build::Step;
use crate::error::Error;
use crate::inputs::Inputs;
use crate::manifest::Project;
use crate::tool::Tool;
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
    /// All of them.
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

    /// Its name, and that of the language that has the same SDK and tools.
    pub fn with_dialect(self) -> &'static str {
        match self {
            Self::Rust => "Rust",
            Self::Python => "Python",
            Self::Js => "JavaScript, TypeScript",
            Self::C => "C, C++",
        }
    }

    /// What a build in the current folder would find missing on this machine, the packages of a project apart.
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

/// What the scaffold and the build must know of a language.
pub(crate) trait Toolchain {
    /// The folder of the SDK among the embedded files (`rust`), and the folder
    /// below a project's `vendor/` that its copy has (`gavel-sdk`). Its
    /// `template/` and `tests/` are not part of the copy.
    fn sdk(&self) -> (&'static str, &'static str);

    /// Finds the tools, and what they will make the component from. It may keep
    /// what it likes in the project's `build/`.
    fn prepare<'a>(&self, project: &'a Project, told: &mut dyn FnMut(Step<'_>)) -> Result<Prepared<'a>, Error>;

    /// What a build of the project in `folder` would find missing.
    fn missing(&self, folder: &Path) -> Vec<&'static Tool>;

    /// The same without what each project has to itself.
    fn missing_on_machine(&self) -> Vec<&'static Tool> {
        self.missing(Path::new("."))
    }

    /// What the author writes so that the component exports something, as a
    /// hint: `export a reward with …`.
    fn how_to_export(&self) -> &'static str;
}

/// A build that can begin.
pub(crate) struct Prepared<'a> {
    /// All that decides what is made; nothing where the tools are to be run
    /// each time, since they know themselves what changed, are quick where
    /// nothing did, and make the same of the same.
    pub inputs: Option<Inputs>,
    /// Makes the component's bytes.
    pub make: Box<dyn FnOnce() -> Result<Compiled, Error> + 'a>,
}

/// What a toolchain made.
pub(crate) struct Compiled {
    /// The component.
    pub component: Vec<u8>,
    /// What the tools printed, the warnings apart.
    pub said: String,
    /// What will not work although it builds, in lines.
    pub warnings: String,
    /// Files that were read beside the inputs, as far as the tools say it.
    pub elsewhere: Inputs,
}
