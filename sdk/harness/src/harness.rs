//! The sandbox of a test.

use crate::chat::FakeChat;
use crate::error::HarnessError;
use crate::http::FakeHttp;
use crate::plugin::{LoadedPlugin, PluginBuilder};
use gavel_data::Sample;
use gavel_plugin::{
    Grants, Inspection, LoadError, Plugin, PluginSpec, ProgramSpec, Sandbox, SandboxConfig, Tape, inspect,
};
use gavel_runs::layout;
use gavel_scoring::recording::{Recording, RecordingError};
use gavel_scoring::stand_in;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

/// The sandbox that training uses, with fakes of the world outside.
pub struct Harness {
    sandbox: Arc<Sandbox>,
    replaying: bool,
}

impl Harness {
    /// A sandbox in which a plugin reaches its grants and the fakes.
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

    /// A sandbox without the world outside. Plugins get the answers on the tape of `recording`, a folder that a run or
    /// `gavel score --record` wrote. Use the samples and seeds of [`recorded`]; other samples make other requests.
    ///
    /// # Errors
    /// The engine does not start, or the tape cannot be read.
    pub fn replaying(recording: &Path) -> Result<Self, HarnessError> {
        let harness = Self { replaying: true, ..Self::new()? };
        harness.sandbox.use_tape(Tape::replay(&layout::tape(recording))?);
        // Programs are not recorded: they run again.
        match Recording::open(recording) {
            Ok(recording) => {
                for set in recording.plugin_sets() {
                    for program in recording.programs(set)? {
                        harness.program(program)?;
                    }
                }
                Ok(harness)
            }
            // A tape alone names no programs.
            Err(RecordingError::Nothing { .. }) => Ok(harness),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets `fake` answer requests to the endpoint `name`, of plugins that are
    /// loaded after this and granted `name`.
    pub fn chat(&self, name: impl Into<String>, fake: &FakeChat) -> &Self {
        self.sandbox.add_chat(name, Arc::new(fake.clone()), NonZeroUsize::MAX);
        self
    }

    /// Lets `fake` answer requests to the reward model `name`, of plugins that
    /// are loaded after this and granted `name`. Its texts are the scores.
    pub fn reward_model(&self, name: impl Into<String>, fake: &FakeChat) -> &Self {
        self.sandbox.add_reward_model(name, Arc::new(fake.clone()));
        self
    }

    /// Lets `fake` answer the requests of plugins that are loaded after this,
    /// in place of all servers. Only the first call counts.
    pub fn http(&self, fake: &FakeHttp) -> &Self {
        self.sandbox.answer_http(Arc::new(fake.clone()));
        self
    }

    /// Lets plugins that are loaded after this, and granted its name, run this program. It is not a fake. Its children
    /// do not see the world outside either.
    ///
    /// # Errors
    /// It is not a component with `wasi:cli/run`.
    pub fn program(&self, program: ProgramSpec) -> Result<&Self, LoadError> {
        self.sandbox.add_program(program)?;
        Ok(self)
    }

    /// Prepares to load the component in the file `path`. Its name is the
    /// file's, without `.wasm`.
    pub fn plugin(&self, path: impl AsRef<Path>) -> PluginBuilder<'_> {
        PluginBuilder::new(self, path.as_ref())
    }

    /// Loads a plugin as a run would.
    ///
    /// # Errors
    /// As for a run: the file, its imports, its parameters.
    pub fn load(&self, spec: PluginSpec) -> Result<LoadedPlugin, LoadError> {
        let spec = unlimited(spec);
        if self.replaying {
            stand_in(&self.sandbox, [&spec.grants]);
        }
        let (plugin, tool, agent) = self.sandbox.handle().block_on(async {
            let plugin = Plugin::load(&self.sandbox, spec).await?;
            let tool = plugin.tool().await?;
            let agent = plugin.agent()?;
            Ok::<_, LoadError>((plugin, tool, agent))
        })?;
        Ok(LoadedPlugin::new(plugin, tool, agent, self.sandbox.clone()))
    }

    /// The imports and exports of a component, as in a run with `spec`.
    pub(crate) fn inspect(&self, spec: PluginSpec) -> Result<Inspection, LoadError> {
        self.sandbox.handle().block_on(inspect(&self.sandbox, unlimited(spec)))
    }
}

/// A test sends no request to a real server, so its plugin waits for no limiter.
fn unlimited(spec: PluginSpec) -> PluginSpec {
    PluginSpec { grants: Grants { limit: None, servers: None, ..spec.grants }, ..spec }
}

fn threads() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// A recorded sample and the seed of its plugins' random numbers.
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
/// The folder is not a recording, or a file in it is damaged.
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
