//! Why a plugin cannot be loaded. A failure in a call is not an error, but an
//! outcome.

use crate::compile::{LoadBudget, TooCostly};
use crate::grant::GrantError;
use gavel_data::{Shown, ShownLines};
use std::io;
use std::path::{Path, PathBuf};

/// A plugin that does not load.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum LoadError {
    /// The engine itself does not start.
    #[error("cannot start the WebAssembly engine: {0}")]
    Engine(String),
    /// The address space of the process is limited to too little.
    #[error(
        "the address space of this process is limited to {} MiB, and plugins need {} MiB\nhint: `ulimit -v unlimited` lifts the limit",
        limit >> 20,
        needed >> 20
    )]
    AddressSpace {
        /// Bytes.
        limit: u64,
        /// Bytes, with what the process has used.
        needed: u64,
    },
    /// The file cannot be read.
    #[error("plugin `{plugin}`: cannot read {}: {source}{}", path.display(), where_it_is_missing(path, source))]
    Read { plugin: String, path: PathBuf, source: io::Error },
    /// A core module where a component is needed.
    #[error(
        "plugin `{plugin}`: {} is a core WebAssembly module, not a component\nhint: build it for the target wasm32-wasip2, or wrap it with `wasm-tools component new`",
        path.display()
    )]
    CoreModule { plugin: String, path: PathBuf },
    /// Source code, or a plugin's folder, where its component is needed.
    #[error(
        "plugin `{plugin}`: {} is not a component{}",
        path.display(),
        match path.is_dir() {
            true => format!(", but a folder\nhint: run `gavel plugin build {}`, which prints the path of the component", path.display()),
            false => format!(", but source code\nhint: create a plugin from it with `gavel plugin new` (for a reward function in Python, add --from-verl {0} or --from-trl {0}), then run `gavel plugin build`", path.display()),
        }
    )]
    Source { plugin: String, path: PathBuf },
    /// The file is not WebAssembly, or broken.
    #[error("plugin `{plugin}`: {} is not a valid component: {}", path.display(), ShownLines(what))]
    Invalid {
        plugin: String,
        path: PathBuf,
        /// The compiler's message.
        what: String,
    },
    /// Compiling it could use up the whole machine, by its form alone.
    #[error(
        "plugin `{plugin}`: {} is not compiled: {what}\nhint: {}",
        path.display(),
        match what {
            TooCostly::Size { .. } => "raise resources.loading.size, if you trust it",
            _ => "no toolchain builds such a component; check where it comes from",
        }
    )]
    TooCostly {
        plugin: String,
        path: PathBuf,
        /// What there is too much of.
        what: TooCostly,
    },
    /// The compiler did not end within its limits.
    #[error(
        "plugin `{plugin}`: compiling {} took more than {allowed}\nhint: raise resources.loading.{}, if you trust it",
        path.display(),
        which.key()
    )]
    Exceeded {
        plugin: String,
        path: PathBuf,
        which: LoadBudget,
        /// Its value, in words.
        allowed: String,
    },
    /// Built for another version of the contract.
    #[error(
        "plugin `{plugin}` was built for the contract gavel:plugin@{found}; this gavel speaks {known}\nhint: use a gavel that speaks {found}, or rebuild the plugin with the SDK of this version"
    )]
    UnknownContract {
        plugin: String,
        found: String,
        /// The versions that this host supports.
        known: String,
    },
    /// Parts of it are built for different versions of the contract.
    #[error(
        "plugin `{plugin}` is built for gavel:plugin@{first} and for gavel:plugin@{second}\nhint: build all of its parts with one SDK"
    )]
    MixedContracts { plugin: String, first: String, second: String },
    /// It lacks an export that a plugin needs.
    #[error(
        "plugin `{plugin}` does not export gavel:plugin/{needed} (of the contract it exports: {})\nhint: a plugin exports `lifecycle` and one of `reward`, `judger`, `taskset`, `tool`, `agent`, `advantage` and `sampler`; see wit/",
        if exported.is_empty() { "nothing".to_owned() } else { Shown(exported.join(", ")).to_string() }
    )]
    MissingExport {
        plugin: String,
        needed: &'static str,
        /// The interfaces of the contract that are there.
        exported: Vec<String>,
    },
    /// A program that cannot be run.
    #[error(
        "program `{program}` does not export wasi:cli/run\nhint: build it as a command, such as a crate with a `main` for wasm32-wasip2"
    )]
    NoProgram { program: String },
    /// A program that imports more than its arguments and its input.
    #[error(
        "program `{program}` imports {}, which is not available to programs\nhint: rebuild it without that import",
        Shown(import)
    )]
    ProgramImport { program: String, import: String },
    /// It sees the answer key and acts for the policy.
    #[error(
        "plugin `{plugin}` exports both {scorer} and {actor}: a component that sees the answer key must not act for the policy\nhint: split it into two components"
    )]
    BothFamilies {
        plugin: String,
        /// The interface that is given the answer key.
        scorer: &'static str,
        /// The interface that acts for the policy.
        actor: &'static str,
    },
    /// It decides what is learned and acts for the policy.
    #[error(
        "plugin `{plugin}` exports both {decider} and {actor}: a component that decides what is learned must not act for the policy\nhint: split it into two components"
    )]
    DecidesAndActs {
        plugin: String,
        /// The interface that decides what is learned.
        decider: &'static str,
        /// The interface that acts for the policy.
        actor: &'static str,
    },
    /// It acts for the policy and imports the answer key.
    #[error(
        "plugin `{plugin}` exports {actor} and imports {}: what acts for the policy must not see the answer key\nhint: rebuild it without that import",
        Shown(import)
    )]
    AnswerKey {
        plugin: String,
        /// The interface that acts for the policy.
        actor: &'static str,
        import: String,
    },
    /// A component where a tool is needed.
    #[error(
        "plugin `{plugin}` is not a tool: it does not export gavel:plugin/tool\nhint: a reward belongs in a [[reward]] table"
    )]
    NotATool { plugin: String },
    /// A component where an agent is needed.
    #[error(
        "plugin `{plugin}` is not an agent: it does not export gavel:plugin/agent\nhint: name a component with an agent in agent.path; a tool belongs in a [[tool]] table"
    )]
    NotAnAgent { plugin: String },
    /// A component where an advantage is needed.
    #[error(
        "plugin `{plugin}` does not turn rewards into advantages: it does not export gavel:plugin/advantage\nhint: name such a component in plugin.{plugin}.path; `gavel plugin new --kind advantage` makes one"
    )]
    NotAnAdvantage { plugin: String },
    /// A component where a sampler is needed.
    #[error(
        "plugin `{plugin}` does not draw tasks: it does not export gavel:plugin/sampler\nhint: name such a component in plugin.{plugin}.path; `gavel plugin new --kind sampler` makes one"
    )]
    NotASampler { plugin: String },
    /// It is not an agent, but imports what only agents have.
    #[error(
        "plugin `{plugin}` imports {}, which only agents have\nhint: rebuild it without that import, or export gavel:plugin/agent",
        Shown(import)
    )]
    NoEpisode { plugin: String, import: String },
    /// A tool that does not list its functions.
    #[error("tool `{plugin}` does not list its functions: {}", ShownLines(what))]
    NoSpecs { plugin: String, what: String },
    /// A tool that describes a function wrongly.
    #[error("tool `{plugin}`: {}", ShownLines(what))]
    Function { plugin: String, what: String },
    /// A session of the tool or the agent would never have room.
    #[error(
        "a session of plugin `{plugin}` may use {asked} bytes of memory, more than the {allowed} bytes that all sessions may have together\nhint: lower its memory limit"
    )]
    SessionMemory {
        plugin: String,
        asked: usize,
        /// The limit of all.
        allowed: usize,
    },
    /// The sessions of a trajectory together may use more memory than all sessions may have.
    #[error(
        "the sessions of one sample ({}) may use {asked} bytes of memory together, more than the {allowed} bytes that all sessions may have\nhint: lower their memory limits, or raise resources.plugin_memory",
        plugins.join(", ")
    )]
    SessionMemories {
        /// Their names in the run.
        plugins: Vec<String>,
        /// The sum of their limits.
        asked: usize,
        /// The limit of all.
        allowed: usize,
    },
    /// A trajectory has more sessions than all trajectories may have at once.
    #[error(
        "one sample has {} sessions ({}), more than the {allowed} that the address space has room for\nhint: `ulimit -v unlimited` lifts its limit",
        plugins.len(),
        plugins.join(", ")
    )]
    SessionSlots {
        /// Their names in the run.
        plugins: Vec<String>,
        /// The most of all.
        allowed: usize,
    },
    /// It imports an interface that is not granted.
    #[error(
        "plugin `{plugin}` imports {}, which is not granted to it\nhint: {}",
        Shown(import),
        not_granted(plugin, *grant)
    )]
    NotGranted {
        plugin: String,
        import: String,
        /// What to write in its grants, where a grant for it exists.
        grant: Option<&'static str>,
    },
    /// A grant that cannot be given.
    #[error("plugin `{plugin}`: {source}")]
    Grant {
        plugin: String,
        /// The grant, and why.
        source: GrantError,
    },
    /// Its range of scores is not a range.
    #[error(
        "plugin `{plugin}` declares scores from {min} to {max}, which is not a range\nhint: declare two finite numbers, the lower one first, or no range"
    )]
    ScoreRange {
        plugin: String,
        /// The lowest score, as declared.
        min: f64,
        /// The highest score, as declared.
        max: f64,
    },
    /// `reuse` is set, but it does not declare itself pure.
    #[error(
        "plugin `{plugin}` cannot be reused: it does not declare itself pure\nhint: remove `reuse`, or declare it pure in its `info` if the same input always gives the same verdict"
    )]
    NotPure { plugin: String },
    /// Its memory limit is higher than the limit of all plugins together.
    #[error(
        "plugin `{plugin}` may use {asked} bytes of memory in a call, more than the {allowed} bytes of all plugins together\nhint: lower its memory limit"
    )]
    MemoryLimit {
        plugin: String,
        asked: usize,
        /// The limit of all.
        allowed: usize,
    },
    /// Its types differ from the types of the contract.
    #[error(
        "plugin `{plugin}` does not match the contract: {}\nhint: rebuild it against the wit/ of this version",
        ShownLines(what)
    )]
    Mismatch {
        plugin: String,
        /// The linker's message.
        what: String,
    },
    /// `init` refused the parameters.
    #[error("plugin `{plugin}` refuses its parameters {params}: {}", ShownLines(what))]
    Params {
        plugin: String,
        /// The parameters, as JSON.
        params: String,
        /// The plugin's message.
        what: String,
    },
    /// `init` failed.
    #[error("plugin `{plugin}` failed to initialise with the parameters {params}: {}", ShownLines(what))]
    Init {
        plugin: String,
        /// The parameters, as JSON.
        params: String,
        what: String,
    },
}

fn not_granted(plugin: &str, grant: Option<&str>) -> String {
    match grant {
        Some(line) => format!(
            "add grant = {{ {line} }} to its [[reward]] table, or --grant '{plugin}={{ {line} }}' to gavel score"
        ),
        None => "no grant gives it; rebuild the plugin without that import".to_owned(),
    }
}

/// A hint that names the command for a missing component.
fn where_it_is_missing(path: &Path, source: &io::Error) -> String {
    if source.kind() != io::ErrorKind::NotFound {
        return String::new();
    }
    // A plugin's component is FOLDER/build/NAME.wasm.
    let folder = path.parent().filter(|folder| folder.ends_with("build")).and_then(Path::parent);
    let command = match folder.map(|folder| if folder == Path::new("") { Path::new(".") } else { folder }) {
        Some(folder) if folder.is_dir() => format!("run `gavel plugin build {}`", folder.display()),
        _ if path.parent().is_some_and(|folder| folder.ends_with("target/plugins")) => {
            "the standard plugins are built with `cargo xtask plugins`".to_owned()
        }
        _ => "build the plugin with `gavel plugin build FOLDER`, which prints the path of its component".to_owned(),
    };
    format!("\nhint: {command}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_component_has_the_command_that_makes_it() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path();
        let missing = |path: &Path| where_it_is_missing(path, &io::ErrorKind::NotFound.into());
        let build = folder.join("build/polite.wasm");
        assert_eq!(missing(&build), format!("\nhint: run `gavel plugin build {}`", folder.display()));
        assert!(missing(Path::new("target/plugins/math.wasm")).contains("`cargo xtask plugins`"));
        assert!(missing(Path::new("x.wasm")).contains("`gavel plugin build FOLDER`"));
        assert_eq!(where_it_is_missing(&build, &io::ErrorKind::PermissionDenied.into()), "");
    }
}
