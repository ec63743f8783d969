//! Why a plugin cannot be used at all. What goes wrong in a call is no error
//! but an outcome.

use crate::compile::{LoadBudget, TooCostly};
use crate::grant::GrantError;
use gavel_data::{Shown, ShownLines};
use std::path::PathBuf;

/// A plugin that does not load.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The engine itself does not start.
    #[error("cannot start the WebAssembly engine: {0}")]
    Engine(String),
    /// The file cannot be read.
    #[error("plugin `{plugin}`: cannot read {}: {source}", path.display())]
    Read {
        /// The plugin's name in the run.
        plugin: String,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A core module where a component is needed.
    #[error(
        "plugin `{plugin}`: {} is a core WebAssembly module, not a component\nhint: build it for the target wasm32-wasip2, or wrap it with `wasm-tools component new`",
        path.display()
    )]
    CoreModule {
        /// The plugin's name in the run.
        plugin: String,
        /// The file.
        path: PathBuf,
    },
    /// Source code, or a plugin's folder, where its component is needed.
    #[error(
        "plugin `{plugin}`: {} is not a component{}",
        path.display(),
        match path.is_dir() {
            true => format!(", but a folder\nhint: gavel plugin build {} says where it puts the component", path.display()),
            false => format!(", but source code\nhint: make a plugin of it: gavel plugin new, with --from-verl {0} or --from-trl {0} for a reward function in Python; gavel plugin build makes the component", path.display()),
        }
    )]
    Source {
        /// The plugin's name in the run.
        plugin: String,
        /// The file or folder.
        path: PathBuf,
    },
    /// Not WebAssembly, or broken.
    #[error("plugin `{plugin}`: {} is not a valid component: {}", path.display(), ShownLines(what))]
    Invalid {
        /// The plugin's name in the run.
        plugin: String,
        /// The file.
        path: PathBuf,
        /// What the compiler says.
        what: String,
    },
    /// Its form alone says that compiling it could take all of the machine.
    #[error(
        "plugin `{plugin}`: {} is not compiled: {what}\nhint: {}",
        path.display(),
        match what {
            TooCostly::Size { .. } => "raise resources.loading.size, if you trust it",
            _ => "no toolchain builds such a component; ask where it comes from",
        }
    )]
    TooCostly {
        /// The plugin's name in the run.
        plugin: String,
        /// The file.
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
        /// The plugin's name in the run.
        plugin: String,
        /// The file.
        path: PathBuf,
        /// The limit.
        which: LoadBudget,
        /// Its value, as a reader knows it.
        allowed: String,
    },
    /// Built for another version of the contract.
    #[error(
        "plugin `{plugin}` was built for the contract gavel:plugin@{found}; this gavel speaks {known}\nhint: rebuild it with the SDK of this version"
    )]
    UnknownContract {
        /// The plugin's name in the run.
        plugin: String,
        /// Its contract.
        found: String,
        /// Ours.
        known: &'static str,
    },
    /// It does not export what a plugin exports.
    #[error(
        "plugin `{plugin}` does not export gavel:plugin/{needed} (of the contract it exports: {})\nhint: a plugin exports `lifecycle` and one of `reward`, `judger` and `taskset`; see wit/",
        if exported.is_empty() { "nothing".to_owned() } else { Shown(exported.join(", ")).to_string() }
    )]
    MissingExport {
        /// The plugin's name in the run.
        plugin: String,
        /// The interface.
        needed: &'static str,
        /// The interfaces of the contract that are there.
        exported: Vec<String>,
    },
    /// A program that cannot be run.
    #[error(
        "program `{program}` does not export wasi:cli/run\nhint: build it as a command: a crate with a `main` for wasm32-wasip2, say"
    )]
    NoProgram {
        /// Its name in the run.
        program: String,
    },
    /// A program that wants more than its arguments and its input.
    #[error(
        "program `{program}` imports {}, which no program gets\nhint: rebuild it without that import",
        Shown(import)
    )]
    ProgramImport {
        /// Its name in the run.
        program: String,
        /// The import.
        import: String,
    },
    /// It sees the answer key and acts for the policy.
    #[error(
        "plugin `{plugin}` exports both {scorer} and {actor}: what sees the answer key must not act for the policy\nhint: make two components of it"
    )]
    BothFamilies {
        /// The plugin's name in the run.
        plugin: String,
        /// The interface that is given the answer key.
        scorer: &'static str,
        /// The interface that acts for the policy.
        actor: &'static str,
    },
    /// It imports what nothing is granted for.
    #[error(
        "plugin `{plugin}` imports {}, which is not granted to it\nhint: {}",
        Shown(import),
        not_granted(plugin, *grant)
    )]
    NotGranted {
        /// The plugin's name in the run.
        plugin: String,
        /// The import.
        import: String,
        /// What to write in its grants, where a grant for it exists.
        grant: Option<&'static str>,
    },
    /// A grant that cannot be given.
    #[error("plugin `{plugin}`: {source}")]
    Grant {
        /// The plugin's name in the run.
        plugin: String,
        /// Which, and why.
        source: GrantError,
    },
    /// Its range of scores is none.
    #[error(
        "plugin `{plugin}` declares scores from {min} to {max}, which is not a range\nhint: declare two finite numbers, the lower one first, or no range"
    )]
    ScoreRange {
        /// The plugin's name in the run.
        plugin: String,
        /// The lowest score, as declared.
        min: f64,
        /// The highest score, as declared.
        max: f64,
    },
    /// Its instances are to be reused, and it does not say that they can be.
    #[error(
        "plugin `{plugin}` cannot be reused: it does not declare itself pure\nhint: remove `reuse`, or let its `info` say that the same input always gives the same verdict"
    )]
    NotPure {
        /// The plugin's name in the run.
        plugin: String,
    },
    /// Its memory limit is more than all plugins may have together.
    #[error(
        "plugin `{plugin}` may use {asked} bytes of memory in a call, more than the {allowed} bytes of all plugins together\nhint: lower its memory limit"
    )]
    MemoryLimit {
        /// The plugin's name in the run.
        plugin: String,
        /// Its limit.
        asked: usize,
        /// The limit of all.
        allowed: usize,
    },
    /// Its types are not those of the contract.
    #[error(
        "plugin `{plugin}` does not match the contract: {}\nhint: rebuild it against the wit/ of this version",
        ShownLines(what)
    )]
    Mismatch {
        /// The plugin's name in the run.
        plugin: String,
        /// What the linker says.
        what: String,
    },
    /// `init` refused the parameters.
    #[error("plugin `{plugin}` refuses its parameters {params}: {}", ShownLines(what))]
    Params {
        /// The plugin's name in the run.
        plugin: String,
        /// The parameters, as JSON.
        params: String,
        /// What the plugin says.
        what: String,
    },
    /// `init` did not come back.
    #[error("plugin `{plugin}` failed to initialise with the parameters {params}: {}", ShownLines(what))]
    Init {
        /// The plugin's name in the run.
        plugin: String,
        /// The parameters, as JSON.
        params: String,
        /// What happened.
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
