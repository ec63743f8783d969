//! `plugin.toml`: a plugin's name, its language and its exports.

use crate::error::Error;
use crate::language::Language;
use crate::name;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The manifest's file in the folder of a project.
pub const MANIFEST: &str = "plugin.toml";

/// A plugin's folder and its manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Project {
    /// The folder.
    pub folder: PathBuf,
    /// Its `plugin.toml`.
    pub manifest: Manifest,
}

/// A validated `plugin.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The plugin's name, which is also its component's file name.
    pub name: String,
    /// The language that it is written in.
    pub language: Language,
    /// What it exports beside `lifecycle`; never empty.
    pub exports: BTreeSet<Export>,
    /// The interfaces that it imports from the host, beyond its sample.
    pub imports: BTreeSet<Import>,
    /// The settings of a build in Python.
    pub python: PythonTable,
    /// `[test]`, which the test harness reads.
    pub test: Option<toml::Table>,
}

/// `[python]`: how the packages of a plugin in Python are installed.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PythonTable {
    /// Whether `requirements.txt` names every package, so that further
    /// requirements of these are not installed.
    #[serde(default)]
    pub no_deps: bool,
}

/// An interface of the contract that a plugin exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Export {
    /// Scores one sample.
    Reward,
    /// Scores a group.
    Judger,
    /// Gives the rows of a dataset.
    Taskset,
    /// Offers functions to the policy.
    Tool,
    /// Attempts a task.
    Agent,
    /// Turns rewards into advantages.
    Advantage,
    /// Draws tasks.
    Sampler,
}

/// An import of a plugin that a run grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Import {
    /// Endpoints of chat completions.
    Chat,
    /// Reward models of the run.
    RewardModel,
    /// Programs that are run as children of a call.
    Exec,
    /// Servers, over `wasi:http`.
    Http,
}

impl Export {
    const ALL: [Self; 7] =
        [Self::Reward, Self::Judger, Self::Taskset, Self::Tool, Self::Agent, Self::Advantage, Self::Sampler];

    /// The name of the interface in the contract.
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
}

impl Import {
    pub(crate) const ALL: [Self; 4] = [Self::Chat, Self::RewardModel, Self::Exec, Self::Http];

    /// Its word in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::RewardModel => "reward-model",
            Self::Exec => "exec",
            Self::Http => "http",
        }
    }

    /// Whether it is an interface of the contract, which has the same name.
    pub(crate) fn of_contract(self) -> bool {
        self != Self::Http
    }
}

/// The keys of the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    plugin: WrittenPlugin,
    #[serde(default)]
    python: PythonTable,
    test: Option<toml::Table>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPlugin {
    name: String,
    language: String,
    exports: Vec<String>,
    #[serde(default)]
    imports: Vec<String>,
}

impl Project {
    /// Reads the project in `folder`.
    ///
    /// # Errors
    /// There is no `plugin.toml`, or it is not valid. The message names the
    /// file and the line or the key.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(MANIFEST);
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Error::NoManifest { folder: folder.to_owned() });
            }
            Err(_) if folder.is_file() => return Err(Error::NotAFolder { file: folder.to_owned() }),
            Err(error) => return Err(Error::file("read", &path)(error)),
        };
        let manifest = parse(&text).map_err(|Wrong { what, hint_text }| Error::Manifest { path, what, hint_text })?;
        Ok(Self { folder: folder.to_owned(), manifest })
    }

    /// The path of the built component: `build/NAME.wasm`.
    pub fn component(&self) -> PathBuf {
        self.build_folder().join(format!("{}.wasm", self.manifest.name))
    }

    /// The component of the last build, [`component`](Self::component).
    ///
    /// # Errors
    /// The plugin is not built.
    pub fn built(&self) -> Result<PathBuf, Error> {
        let component = self.component();
        if component.is_file() {
            return Ok(component);
        }
        Err(Error::NotBuilt { name: self.manifest.name.clone(), component, folder: self.folder.clone() })
    }

    /// The folder of everything that a build makes.
    pub(crate) fn build_folder(&self) -> PathBuf {
        self.folder.join("build")
    }
}

/// The component that a path names, which is the path itself or the built component of a plugin's folder; and the name of
/// the plugin, if the path has one.
///
/// # Errors
/// The folder's manifest is wrong, or the plugin is not built.
pub fn named_component(path: &Path) -> Result<(Option<String>, PathBuf), Error> {
    if !path.join(MANIFEST).is_file() {
        return Ok((path.file_stem().map(|stem| stem.to_string_lossy().into_owned()), path.to_owned()));
    }
    let project = Project::open(path)?;
    let component = project.built()?;
    Ok((Some(project.manifest.name), component))
}

struct Wrong {
    what: String,
    hint_text: String,
}

impl Wrong {
    fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: what.into(), hint_text: hint.into() }
    }
}

fn parse(text: &str) -> Result<Manifest, Wrong> {
    let written: Written = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
        let place = line.map(|line| format!("line {line}: ")).unwrap_or_default();
        Wrong::new(format!("{place}{}", error.message().trim()), "")
    })?;
    let WrittenPlugin { name, language, exports, imports } = written.plugin;
    name::check(&name).map_err(|error| Wrong::new(format!("plugin.name: {error}"), ""))?;
    let language = language.parse().map_err(|error| Wrong::new(format!("plugin.language: {error}"), ""))?;
    let exports = interfaces("plugin.exports", &exports, &Export::ALL, |export| export.as_str())?;
    if exports.is_empty() {
        return Err(Wrong::new(
            "plugin.exports: the plugin exports nothing",
            "name one or more of reward, judger, taskset, advantage and sampler, or of tool and agent, such as exports = [\"reward\"]",
        ));
    }
    let imports = interfaces("plugin.imports", &imports, &Import::ALL, |import| import.as_str())?;
    Ok(Manifest { name, language, exports, imports, python: written.python, test: written.test })
}

fn interfaces<T: Copy + Ord>(
    key: &str,
    written: &[String],
    known: &[T],
    name: impl Fn(T) -> &'static str,
) -> Result<BTreeSet<T>, Wrong> {
    let mut found = BTreeSet::new();
    for word in written {
        let Some(interface) = known.iter().copied().find(|known| name(*known) == word) else {
            let known: Vec<_> = known.iter().map(|known| name(*known)).collect();
            return Err(Wrong::new(format!("{key}: there is no `{word}`"), format!("known are: {}", known.join(", "))));
        };
        if !found.insert(interface) {
            return Err(Wrong::new(format!("{key}: `{word}` is listed twice"), ""));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
[plugin]
name = "polite"
language = "c"
exports = ["judger", "reward"]
imports = ["chat"]
[python]
no-deps = true
[test]
cases = "more.jsonl"
"#;

    #[test]
    fn a_manifest_is_read() {
        let Ok(manifest) = parse(WHOLE) else { panic!("refused") };
        assert_eq!(manifest.name, "polite");
        assert_eq!(manifest.language, Language::C);
        assert_eq!(manifest.exports, BTreeSet::from([Export::Reward, Export::Judger]));
        assert_eq!(manifest.imports, BTreeSet::from([Import::Chat]));
        assert!(manifest.python.no_deps);
        assert_eq!(manifest.test.unwrap()["cases"].as_str(), Some("more.jsonl"));
    }

    #[test]
    fn a_byte_order_mark_is_not_a_part_of_a_manifest() {
        assert!(parse(&format!("\u{feff}{WHOLE}")).is_ok());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (from, to, what) in [
            ("name = \"polite\"", "nam = \"polite\"", "line 3: unknown field `nam`"),
            ("name = \"polite\"\n", "", "line 2: missing field `name`"),
            ("\"polite\"", "\"Polite\"", "plugin.name: `Polite` cannot be the name of a plugin"),
            ("\"c\"", "\"go\"", "plugin.language: there is no SDK for the language `go`"),
            ("\"judger\", \"reward\"", "", "plugin.exports: the plugin exports nothing"),
            ("\"judger\", \"reward\"", "\"judge\"", "plugin.exports: there is no `judge`"),
            ("\"judger\", \"reward\"", "\"reward\", \"reward\"", "plugin.exports: `reward` is listed twice"),
            ("\"judger\", \"reward\"", "1", "line 5: invalid type: integer `1`, expected a string"),
            ("\"chat\"", "\"https\"", "plugin.imports: there is no `https`"),
            ("no-deps", "deps", "unknown field `deps`"),
            ("[test]", "[tests]", "unknown field `tests`"),
            ("[plugin]", "[plugin", "line 2: "),
        ] {
            let Err(wrong) = parse(&WHOLE.replace(from, to)) else { panic!("{to} was taken") };
            assert!(wrong.what.contains(what), "{to}: {}", wrong.what);
        }
    }
}
