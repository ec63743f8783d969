//! The host's side of `wasi:io/poll`. It tells the clock what the guest waits
//! for, and then calls the implementation in `wasmtime-wasi`.

use super::clock::Clock;
use wasmtime::component::{HasData, Resource, ResourceTable};
use wasmtime_wasi::p2::DynPollable;
use wasmtime_wasi::p2::bindings::io::poll;

pub(crate) struct Poll<'a> {
    pub(super) clock: &'a mut Clock,
    pub(super) table: &'a mut ResourceTable,
}

/// The type by which a linker finds it.
pub(crate) struct HasPoll;

impl HasData for HasPoll {
    type Data<'a> = Poll<'a>;
}

impl poll::Host for Poll<'_> {
    async fn poll(&mut self, pollables: Vec<Resource<DynPollable>>) -> wasmtime::Result<Vec<u32>> {
        self.clock.wait(pollables.iter().map(Resource::rep));
        poll::Host::poll(self.table, pollables).await
    }
}

impl poll::HostPollable for Poll<'_> {
    async fn ready(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<bool> {
        match self.clock.due(pollable.rep()) {
            Some(due) => Ok(due),
            None => poll::HostPollable::ready(self.table, pollable).await,
        }
    }

    async fn block(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        self.clock.wait(std::iter::once(pollable.rep()));
        poll::HostPollable::block(self.table, pollable).await
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> wasmtime::Result<()> {
        self.clock.forget(pollable.rep());
        poll::HostPollable::drop(self.table, pollable)
    }
}
