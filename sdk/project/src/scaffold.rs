//! A new project: a template of its language, filled in, and a copy of the
//! language's SDK.

use crate::embedded;
use crate::error::Error;
use crate::language::Language;
use crate::manifest::Project;
use crate::name;
use crate::tool::Tool;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The kind of a new plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Scores one sample.
    Reward,
    /// Scores the samples of a group, which it may compare.
    Judger,
    /// Gives the rows of a dataset.
    Taskset,
    /// Offers functions that the policy may call.
    Tool,
    /// Attempts a task, over conversations with the policy.
    Agent,
    /// Turns the rewards of groups into advantages.
    Advantage,
    /// Draws the tasks of a run.
    Sampler,
}

impl Kind {
    /// All of them. Each has a template in every language.
    pub const ALL: [Self; 7] =
        [Self::Reward, Self::Judger, Self::Taskset, Self::Tool, Self::Agent, Self::Advantage, Self::Sampler];

    /// Its word in `--kind`; also its folder below `template/`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reward => "reward",
            Self::Judger => "judger",
            Self::Taskset => "taskset",
            Self::Tool => "tool",
            Self::Agent => "agent",
            Self::Advantage => "advantage",
            Self::Sampler => "sampler",
        }
    }

    /// What it does, in a few words.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Reward => "Scores one sample",
            Self::Judger => "Scores the samples of a group, which it may compare",
            Self::Taskset => "Gives the rows of a dataset",
            Self::Tool => "Offers functions that the policy may call",
            Self::Agent => "Attempts a task, over conversations with the policy",
            Self::Advantage => "Turns the rewards of groups into advantages",
            Self::Sampler => "Draws the tasks of a run",
        }
    }
}

impl FromStr for Kind {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == word);
        found.ok_or_else(|| Error::Kind { found: word.to_owned() })
    }
}

/// The language of a new plugin; two languages may share an SDK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Template {
    /// Rust.
    Rust,
    /// Python.
    Python,
    /// JavaScript.
    Js,
    /// TypeScript, with the SDK of JavaScript.
    Ts,
    /// C.
    C,
    /// C++, with the SDK of C.
    Cpp,
}

impl Template {
    /// Every template.
    pub const ALL: [Self; 6] = [Self::Rust, Self::Python, Self::Js, Self::Ts, Self::C, Self::Cpp];

    /// Its word in `--lang`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ts => "ts",
            Self::Cpp => "cpp",
            _ => self.language().as_str(),
        }
    }

    /// The language of its SDK and its build.
    pub fn language(self) -> Language {
        match self {
            Self::Rust => Language::Rust,
            Self::Python => Language::Python,
            Self::Js | Self::Ts => Language::Js,
            Self::C | Self::Cpp => Language::C,
        }
    }

    /// Its folder among the embedded files.
    fn folder(self) -> String {
        match self {
            Self::Ts | Self::Cpp => format!("{}/template/{}", self.language().as_str(), self.as_str()),
            _ => format!("{}/template", self.as_str()),
        }
    }
}

impl FromStr for Template {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|template| template.as_str() == word);
        found.ok_or_else(|| Error::Language { found: word.to_owned() })
    }
}

/// Its name in prose.
impl fmt::Display for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ts => f.write_str("TypeScript"),
            Self::Cpp => f.write_str("C++"),
            _ => self.language().fmt(f),
        }
    }
}

/// The settings of a new plugin.
#[derive(Debug, Clone, Copy)]
pub struct New<'a> {
    /// The name of the plugin and of its folder.
    pub name: &'a str,
    /// Its language.
    pub template: Template,
    /// Its kind.
    pub kind: Kind,
}

/// A new project.
#[derive(Debug)]
pub struct Created {
    /// The project.
    pub project: Project,
    /// The tools that must be installed before it builds on this machine.
    pub missing: Vec<&'static Tool>,
}

/// Creates the project `new` in a folder of its name below `parent`.
///
/// # Errors
/// The name is not allowed, the folder exists and is not empty, or it cannot be
/// written.
pub fn create(new: New<'_>, parent: &Path) -> Result<Created, Error> {
    name::check(new.name)?;
    let mut files = template(new);
    files.extend(sdk(new.template.language()));
    write(parent.join(new.name), &files)
}

/// Files of a project by their paths in it.
pub(crate) type Files = BTreeMap<PathBuf, Vec<u8>>;

/// The files of the template, with `{{name}}` filled in.
pub(crate) fn template(new: New<'_>) -> Files {
    let folder = format!("{}/{}", new.template.folder(), new.kind.as_str());
    embedded::under(&folder)
        .map(|(path, bytes)| {
            // Binary files have nothing to fill in.
            let filled = std::str::from_utf8(bytes).map(|text| text.replace("{{name}}", new.name).into_bytes());
            (PathBuf::from(path), filled.unwrap_or_else(|_| bytes.to_vec()))
        })
        .collect()
}

/// The copy of a language's SDK below `vendor/`, with its licence.
pub(crate) fn sdk(language: Language) -> Files {
    let (from, to) = language.toolchain().sdk();
    let folder = Path::new("vendor").join(to);
    let files = embedded::under(from).filter(|(path, _)| !path.starts_with("template/") && !path.starts_with("tests/"));
    files.chain([("LICENSE", embedded::licence())]).map(|(path, bytes)| (folder.join(path), bytes.to_vec())).collect()
}

/// Writes a new project and finds the missing tools.
pub(crate) fn write(folder: PathBuf, files: &Files) -> Result<Created, Error> {
    let taken = match fs::read_dir(&folder) {
        Ok(mut entries) => entries.next().is_some(),
        // Also if it is a file.
        Err(_) => folder.symlink_metadata().is_ok(),
    };
    if taken {
        return Err(Error::Exists { folder });
    }
    for (path, bytes) in files {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(Error::file("make", parent))?;
        }
        fs::write(&path, bytes).map_err(Error::file("write", &path))?;
    }
    let project = Project::open(&folder)?;
    let missing = project.manifest.language.toolchain().missing(&project.folder);
    Ok(Created { project, missing })
}
