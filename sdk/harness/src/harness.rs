//! The sandbox of a test.

use crate::chat::FakeChat;
use crate::error::HarnessError;
use crate::http::FakeHttp;
use crate::plugin::{LoadedPlugin, PluginBuilder};
use gavel_data::Sample;
use gavel_plugin::{Inspection, LoadError, Plugin, PluginSpec, ProgramSpec, Sandbox, SandboxConfig, Tape, inspect};
use gavel_runs::layout;
use gavel_scoring::chat::stand_in;
use gavel_scoring::recording::{Recording, RecordingError};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

/// A sandbox for plugins, the one that training has, and what stands in it for
/// the world outside.
pub struct Harness {
    sandbox: Arc<Sandbox>,
    replaying: bool,
}

impl Harness {
    /// A sandbox in which a plugin reaches what it is granted and what is faked.
    ///
    /// # Errors
    /// The engine does not start.
    pub fn new() -> Result<Self, HarnessError> {
        Self::start(SandboxConfig::with_threads(threads()))
    }

    /// A sandbox that keeps compiled plugins in `cache`.
    pub(crate) fn with_cache(cache: &Path) -> Result<Self, HarnessError> {
        Self::start(SandboxConfig { cache: Some(cache.to_owned()), ..SandboxConfig::with_threads(threads()) })
    }

    fn start(config: SandboxConfig) -> Result<Self, HarnessError> {
        Ok(Self { sandbox: Arc::new(Sandbox::new(config)?), replaying: false })
    }

    /// A sandbox in which nobody outside is asked: plugins get the answers that
    /// are on the tape of `recording`, a folder that `gavel score --record` or a
    /// run wrote. Its calls are those of [`recorded`]; another sample or
    /// another seed is another request.
    ///
    /// # Errors
    /// The engine does not start, or the tape cannot be read.
    pub fn replaying(recording: &Path) -> Result<Self, HarnessError> {
        let harness = Self { replaying: true, ..Self::new()? };
        harness.sandbox.use_tape(Tape::replay(&layout::tape(recording))?);
        // Programs are no part of the world outside: they are run again.
        match Recording::open(recording) {
            Ok(recording) => {
                for set in recording.plugin_sets() {
                    for program in recording.programs(set)? {
                        harness.program(program)?;
                    }
                }
                Ok(harness)
            }
            // A tape by itself names none.
            Err(RecordingError::Nothing { .. }) => Ok(harness),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets `fake` answer what plugins that are loaded after this, and granted
    /// `name`, ask the endpoint of this name.
    pub fn chat(&self, name: impl Into<String>, fake: &FakeChat) -> &Self {
        self.sandbox.add_chat(name, Arc::new(fake.clone()), NonZeroUsize::MAX);
        self
    }

    /// Lets `fake` answer the requests of plugins that are loaded after this, in
    /// place of all servers. The first one stays.
    pub fn http(&self, fake: &FakeHttp) -> &Self {
        self.sandbox.answer_http(Arc::new(fake.clone()));
        self
    }

    /// Lets plugins that are loaded after this, and granted its name, run this
    /// program. It is the real one: its children see nothing of the world
    /// outside either.
    ///
    /// # Errors
    /// It is no component with `wasi:cli/run`.
    pub fn program(&self, program: ProgramSpec) -> Result<&Self, LoadError> {
        self.sandbox.add_program(program)?;
        Ok(self)
    }

    /// The component in the file `path`, to be loaded. Its name is the file's,
    /// without `.wasm`.
    pub fn plugin(&self, path: impl AsRef<Path>) -> PluginBuilder<'_> {
        PluginBuilder::new(self, path.as_ref())
    }

    /// Loads a plugin as a run would.
    ///
    /// # Errors
    /// As for a run: the file, its imports, its parameters.
    pub fn load(&self, spec: PluginSpec) -> Result<LoadedPlugin, LoadError> {
        if self.replaying {
            stand_in(&self.sandbox, &spec.grants.chat);
        }
        let plugin = self.sandbox.handle().block_on(Plugin::load(&self.sandbox, spec))?;
        Ok(LoadedPlugin::new(plugin, self.sandbox.clone()))
    }

    /// What a component imports and exports, as a run with `spec` would have it.
    pub(crate) fn inspect(&self, spec: PluginSpec) -> Result<Inspection, LoadError> {
        self.sandbox.handle().block_on(inspect(&self.sandbox, spec))
    }
}

fn threads() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// A sample that was scored once, and what its plugins saw as random.
#[derive(Debug, Clone)]
pub struct Recorded {
    /// The sample.
    pub sample: Arc<Sample>,
    /// The seed.
    pub seed: u64,
}

/// The samples of a recording for which a plugin was called, in their order.
///
/// # Errors
/// The folder is no recording, or a file in it is damaged.
pub fn recorded(recording: &Path) -> Result<Vec<Recorded>, HarnessError> {
    let recording = Recording::open(recording)?;
    let mut found = Vec::new();
    for step in recording.steps() {
        for sample in recording.samples(step)? {
            let sample = sample.map_err(RecordingError::from)?;
            if let Some(seed) = sample.seed() {
                found.push(Recorded { sample: sample.sample, seed });
            }
        }
    }
    match recording.damage().lines.into_iter().next() {
        Some(damaged) => Err(RecordingError::from(damaged).into()),
        None => Ok(found),
    }
}
