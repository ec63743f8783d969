//! The alternative without a sandbox: a minimal loop over bare wasmtime that only reads the score.

use gavel::plugin::{references, samples, types};
use gavel_data::Sample;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use wasmtime::component::{Component, HasSelf, Linker, Resource, ResourceTable};
use wasmtime::{Config, Engine, Result, Store, UpdateDeadline};
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "reward-plugin",
    imports: { default: trappable },
    exports: { default: async },
});

struct State {
    wasi: WasiCtx,
    table: ResourceTable,
    sample: Arc<Sample>,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.table }
    }
}

pub struct Bare {
    engine: Engine,
    pre: RewardPluginPre<State>,
    yields: bool,
}

/// An engine whose guests are interrupted at every tick.
#[allow(dead_code)]
pub fn yielding_engine(tick: Duration) -> Engine {
    let engine = Engine::new(Config::new().epoch_interruption(true)).unwrap();
    let ticked = engine.weak();
    std::thread::spawn(move || {
        while let Some(engine) = ticked.upgrade() {
            engine.increment_epoch();
            std::thread::sleep(tick);
        }
    });
    engine
}

impl Bare {
    #[allow(dead_code)]
    pub fn load(path: &Path) -> Self {
        Self::new(&Engine::new(&Config::new()).unwrap(), path, false)
    }

    /// Loads a component in an engine that interrupts its guests; an interrupted guest lets others run.
    #[allow(dead_code)]
    pub fn load_yielding(engine: &Engine, path: &Path) -> Self {
        Self::new(engine, path, true)
    }

    fn new(engine: &Engine, path: &Path, yields: bool) -> Self {
        let mut linker = Linker::new(engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker).unwrap();
        RewardPlugin::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state).unwrap();
        let component = Component::from_file(engine, path).unwrap();
        let pre = RewardPluginPre::new(linker.instantiate_pre(&component).unwrap()).unwrap();
        Self { engine: engine.clone(), pre, yields }
    }

    pub async fn score(&self, sample: &Arc<Sample>) -> f64 {
        let state = State { wasi: WasiCtx::builder().build(), table: ResourceTable::new(), sample: sample.clone() };
        let mut store = Store::new(&self.engine, state);
        if self.yields {
            store.set_epoch_deadline(1);
            store.epoch_deadline_callback(|_| Ok(UpdateDeadline::Yield(1)));
        }
        let instance = self.pre.instantiate_async(&mut store).await.unwrap();
        instance.gavel_plugin_lifecycle().call_init(&mut store, "{}").await.unwrap().unwrap();
        let (sample, reference) = (Resource::new_borrow(0), Resource::new_borrow(0));
        match instance.gavel_plugin_reward().call_score(&mut store, sample, reference).await.unwrap() {
            Ok(types::Verdict::Scored(score)) => score.value,
            other => panic!("{other:?}"),
        }
    }
}

impl types::Host for State {}
impl samples::Host for State {}
impl references::Host for State {}

/// An import that the benchmark's component does not call.
fn unused<T>() -> Result<T> {
    Err(wasmtime::Error::msg("not part of the benchmark"))
}

impl types::HostMedia for State {
    fn media_type(&mut self, _: Resource<types::Media>) -> Result<String> {
        unused()
    }
    fn size(&mut self, _: Resource<types::Media>) -> Result<u64> {
        unused()
    }
    fn read(&mut self, _: Resource<types::Media>, _: u64, _: u32) -> Result<Vec<u8>> {
        unused()
    }
    fn drop(&mut self, _: Resource<types::Media>) -> Result<()> {
        Ok(())
    }
}

impl samples::HostTrajectory for State {
    fn message_count(&mut self, _: Resource<samples::Trajectory>) -> Result<u32> {
        unused()
    }
    fn message(&mut self, _: Resource<samples::Trajectory>, _: u32) -> Result<Option<types::Message>> {
        unused()
    }
    fn response(&mut self, _: Resource<samples::Trajectory>) -> Result<String> {
        unused()
    }
    fn finish_reason(&mut self, _: Resource<samples::Trajectory>) -> Result<types::FinishReason> {
        unused()
    }
    fn turns(&mut self, _: Resource<samples::Trajectory>) -> Result<u32> {
        unused()
    }
    fn tool_turns(&mut self, _: Resource<samples::Trajectory>) -> Result<u32> {
        unused()
    }
    fn prompt_tokens(&mut self, _: Resource<samples::Trajectory>) -> Result<Option<u32>> {
        unused()
    }
    fn response_tokens(&mut self, _: Resource<samples::Trajectory>) -> Result<Option<u32>> {
        unused()
    }
    fn policy_version(&mut self, _: Resource<samples::Trajectory>) -> Result<Option<u64>> {
        unused()
    }
    fn speaker(&mut self, _: Resource<samples::Trajectory>) -> Result<String> {
        unused()
    }
    fn opening(&mut self, _: Resource<samples::Trajectory>) -> Result<Vec<types::Message>> {
        unused()
    }
    fn functions(&mut self, _: Resource<samples::Trajectory>) -> Result<Vec<types::ToolSpec>> {
        unused()
    }
    fn calls(&mut self, _: Resource<samples::Trajectory>) -> Result<Vec<samples::EndedCall>> {
        unused()
    }
    fn turn_finish_reason(&mut self, _: Resource<samples::Trajectory>, _: u32) -> Result<Option<types::FinishReason>> {
        unused()
    }
    fn message_tokens(&mut self, _: Resource<samples::Trajectory>, _: u32) -> Result<Option<u32>> {
        unused()
    }
    fn state(&mut self, _: Resource<samples::Trajectory>, _: String) -> Result<Option<String>> {
        unused()
    }
    fn drop(&mut self, _: Resource<samples::Trajectory>) -> Result<()> {
        Ok(())
    }
}

impl samples::HostSample for State {
    fn task_id(&mut self, _: Resource<samples::Sample>) -> Result<String> {
        unused()
    }
    fn data_source(&mut self, _: Resource<samples::Sample>) -> Result<Option<String>> {
        unused()
    }
    fn group_index(&mut self, _: Resource<samples::Sample>) -> Result<u32> {
        unused()
    }
    fn prompt(&mut self, _: Resource<samples::Sample>) -> Result<Vec<types::Message>> {
        unused()
    }
    fn trajectory_count(&mut self, _: Resource<samples::Sample>) -> Result<u32> {
        unused()
    }
    fn trajectory(&mut self, _: Resource<samples::Sample>, _: u32) -> Result<Option<Resource<samples::Trajectory>>> {
        unused()
    }
    fn response(&mut self, _: Resource<samples::Sample>) -> Result<String> {
        Ok(self.sample.response())
    }
    fn verdict(&mut self, _: Resource<samples::Sample>, _: String) -> Result<Option<types::PriorVerdict>> {
        unused()
    }
    fn extra(&mut self, _: Resource<samples::Sample>) -> Result<Option<String>> {
        unused()
    }
    fn drop(&mut self, _: Resource<samples::Sample>) -> Result<()> {
        Ok(())
    }
}

impl references::HostReference for State {
    fn ground_truth(&mut self, _: Resource<references::Reference>) -> Result<Option<String>> {
        Ok(self.sample.task.reference.ground_truth.clone())
    }
    fn column(&mut self, _: Resource<references::Reference>, _: String) -> Result<Option<String>> {
        unused()
    }
    fn column_names(&mut self, _: Resource<references::Reference>) -> Result<Vec<String>> {
        unused()
    }
    fn columns(&mut self, _: Resource<references::Reference>) -> Result<String> {
        unused()
    }
    fn drop(&mut self, _: Resource<references::Reference>) -> Result<()> {
        Ok(())
    }
}
