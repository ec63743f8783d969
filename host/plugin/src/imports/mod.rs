//! The host's side of the imports: the interfaces of the contract, and the WASI
//! interfaces that depend on grants. This module connects the contract's types
//! and a call's state with `grant`, `outside::chat` and `outside::exec`, which
//! implement the imports.

mod chat;
mod chat_request;
mod episode;
mod exec;
mod messages;
mod resources;
mod reward_model;
mod samples;
mod state;
mod stdio;
mod v0_1;

pub(crate) use messages::lower_finish_reason;
pub use resources::{ConversationRef, MediaRef, ReferenceRef, SampleRef, TaskRef, TrajectoryRef};
pub(crate) use state::{ChildIo, State, Traces, child_store, store};
pub(crate) use stdio::LogFull;

use crate::bindings::Plugins;
use crate::grant::{HasMonotonicClock, HasPoll, HasPreopens};
use wasmtime::component::{HasSelf, Linker};
use wasmtime::{Engine, Result};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::io::poll;

/// A linker with everything that components may import. A plugin that imports an
/// interface without its grant is refused before it is linked.
pub(crate) fn linker(engine: &Engine) -> Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    // These replace WASI's own.
    linker.allow_shadowing(true);
    monotonic_clock::add_to_linker::<_, HasMonotonicClock>(&mut linker, |state: &mut State| {
        state.grants.monotonic_clock(&mut state.table)
    })?;
    poll::add_to_linker::<_, HasPoll>(&mut linker, |state| state.grants.poll(&mut state.table))?;
    preopens::add_to_linker::<_, HasPreopens>(&mut linker, |state| state.grants.preopens(&mut state.table))?;
    linker.allow_shadowing(false);
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    Plugins::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
    v0_1::add_to_linker(&mut linker)?;
    Ok(linker)
}
