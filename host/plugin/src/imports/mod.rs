//! The host's side of what components import: the contract's interfaces, and
//! those of WASI that grants decide about. What an import does is in `grant`,
//! `chat` and `exec`; here it meets the contract's types and a call's state.

mod chat;
mod chat_request;
mod exec;
mod samples;

use crate::bindings::Scorers;
use crate::grant::{HasMonotonicClock, HasPoll, HasPreopens};
use crate::state::State;
use wasmtime::component::{HasSelf, Linker};
use wasmtime::{Engine, Result};
use wasmtime_wasi::p2::bindings::clocks::monotonic_clock;
use wasmtime_wasi::p2::bindings::filesystem::preopens;
use wasmtime_wasi::p2::bindings::io::poll;

/// All that components may import. The interfaces are there for all; a plugin
/// that imports one without its grant is refused before it is linked.
pub(crate) fn linker(engine: &Engine) -> Result<Linker<State>> {
    let mut linker = Linker::new(engine);
    wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
    // These take the place of WASI's own.
    linker.allow_shadowing(true);
    monotonic_clock::add_to_linker::<_, HasMonotonicClock>(&mut linker, |state: &mut State| {
        state.grants.monotonic_clock(&mut state.table)
    })?;
    poll::add_to_linker::<_, HasPoll>(&mut linker, |state| state.grants.poll(&mut state.table))?;
    preopens::add_to_linker::<_, HasPreopens>(&mut linker, |state| state.grants.preopens(&mut state.table))?;
    linker.allow_shadowing(false);
    wasmtime_wasi_http::p2::add_only_http_to_linker_async(&mut linker)?;
    Scorers::add_to_linker::<_, HasSelf<_>>(&mut linker, |state| state)?;
    Ok(linker)
}
