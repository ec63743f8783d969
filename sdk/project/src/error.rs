//! Errors between a plugin's sources and its component.

use crate::manifest::MANIFEST;
use crate::tool::Tool;
use std::path::{Path, PathBuf};

/// An error: what is wrong, in a sentence, and a hint if there is something to
/// do.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Error {
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// Such as `read`.
        action: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// The folder is not a project.
    #[error(
        "there is no {MANIFEST} in {}\nhint: name the folder of a plugin, or make one with `gavel plugin new NAME --lang LANGUAGE`",
        folder.display()
    )]
    NoManifest { folder: PathBuf },
    /// The plugin has no component yet.
    #[error(
        "the plugin `{name}` is not built: there is no {}\nhint: run `gavel plugin build {}`",
        component.display(),
        folder.display()
    )]
    NotBuilt { name: String, component: PathBuf, folder: PathBuf },
    /// The path is a file.
    #[error(
        "{} is a file, and a plugin is a folder with a {MANIFEST}\nhint: name the folder{}",
        file.display(),
        if file.extension().is_some_and(|kind| kind == "py") {
            format!(", or make one of the function with `gavel plugin new NAME --from-verl {}` or --from-trl", file.display())
        } else {
            String::new()
        }
    )]
    NotAFolder { file: PathBuf },
    /// The manifest is not valid.
    #[error("{}: {what}{}", path.display(), hint(hint_text))]
    Manifest {
        path: PathBuf,
        /// The key, and what is wrong with it.
        what: String,
        /// What to do; may be empty.
        hint_text: String,
    },
    /// The name is not allowed for a plugin.
    #[error(
        "`{name}` cannot be the name of a plugin: {what}\nhint: take lower-case letters, digits and dashes, such as `exact-answer`"
    )]
    Name {
        name: String,
        /// The rule that it breaks.
        what: &'static str,
    },
    /// There is no such language.
    #[error(
        "there is no SDK for the language `{found}`\nhint: the languages are rust, python, js (also for TypeScript) and c (also for C++)"
    )]
    Language { found: String },
    /// There is no such kind of plugin.
    #[error(
        "`{found}` is not a kind of plugin\nhint: the kinds are {}",
        crate::Kind::ALL.map(crate::Kind::as_str).join(", ")
    )]
    Kind { found: String },
    /// The folder of a new project is not empty.
    #[error("{} exists and is not empty\nhint: take another name, or remove the folder", folder.display())]
    Exists { folder: PathBuf },
    /// A tool of the language is not installed.
    #[error(
        "{} is not installed: it {}{}\nhint: install it with `{}`",
        tool.name,
        tool.purpose,
        not_found_in(searched),
        tool.install
    )]
    MissingTool {
        tool: &'static Tool,
        /// The places where it was searched; may be empty.
        searched: String,
    },
    /// A tool of the language failed.
    #[error("{what}; its output:\n\n{}", said.trim_end())]
    Failed {
        what: String,
        /// The whole output of the tool.
        said: String,
    },
    /// The sources cannot be built.
    #[error("{what}\nhint: {hint_text}")]
    Source {
        /// What is wrong, with the file.
        what: String,
        hint_text: String,
    },
    /// The component does not match the manifest.
    #[error("{what}\nhint: {hint_text}")]
    Component { what: String, hint_text: String },
    /// The folder cannot be watched.
    #[error("cannot watch {}: {what}", folder.display())]
    Watch { folder: PathBuf, what: String },
}

fn hint(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("\nhint: {text}") }
}

fn not_found_in(searched: &str) -> String {
    if searched.is_empty() { String::new() } else { format!("; it is not in {searched}") }
}

impl Error {
    /// A tool that is not where the system has its tools.
    pub(crate) fn missing(tool: &'static Tool) -> Self {
        Self::MissingTool { tool, searched: String::new() }
    }

    /// For `map_err`: the file `path` could not be read, written, made….
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}
