//! The engine that all plugins of a process share.

use crate::bindings::RewardPlugin;
use crate::error::LoadError;
use crate::state::State;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use wasmtime::component::{HasSelf, Linker};
use wasmtime::{Config, Engine};

/// How long a guest runs before it lets others run and its deadline is looked
/// at. Shorter ticks are fairer; below this they cost more than they give.
const TICK: Duration = Duration::from_millis(1);

/// Compiles components and runs their calls.
pub struct Sandbox {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<State>,
    stop: Arc<AtomicBool>,
    ticker: Option<JoinHandle<()>>,
}

impl Sandbox {
    /// Starts an engine and the thread that interrupts its guests.
    pub fn new() -> Result<Self, LoadError> {
        let engine = Engine::new(Config::new().epoch_interruption(true).cranelift_nan_canonicalization(true))
            .map_err(|error| LoadError::Engine(format!("{error:#}")))?;
        let linker = link(&engine).map_err(|error| LoadError::Engine(format!("{error:#}")))?;
        let stop = Arc::new(AtomicBool::new(false));
        let ticker = {
            let (engine, stop) = (engine.clone(), stop.clone());
            std::thread::Builder::new()
                .name("gavel-epoch".into())
                .spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        std::thread::sleep(TICK);
                        engine.increment_epoch();
                    }
                })
                .map_err(|error| LoadError::Engine(error.to_string()))?
        };
        Ok(Self { engine, linker, stop, ticker: Some(ticker) })
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(ticker) = self.ticker.take() {
            // The thread only sleeps and counts; were it to panic, there is nothing left to save.
            let _ = ticker.join();
        }
    }
}

fn link(engine: &Engine) -> wasmtime::Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    RewardPlugin::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
    Ok(linker)
}
