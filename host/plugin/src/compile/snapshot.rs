//! A snapshot of a component after `init`: fresh instances start with the
//! contents of its memories and globals at that time.

use crate::imports::State;
use gavel_data::panics;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use wasmtime::Store;
use wasmtime::component::{ComponentNamedList, Instance, Lift, Lower, WasmList};
use wasmtime_wizer::{ComponentContext, ComponentInstanceState, Wizer};

/// Why there is no snapshot of a component, so that `init` runs in each instance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NoSnapshot {
    #[error("it has grants, and `init` must see in each call what they give")]
    Granted,
    #[error("a component of this form has no snapshot: {0}")]
    Form(String),
    #[error("`init` printed or opened something, and leaves handles of its own instance open")]
    Handles,
    #[error("its memory cannot be read after `init`: {0}")]
    Unreadable(String),
    #[error("the snapshot does not start: {0}")]
    Unusable(String),
}

/// A component whose memories and globals the host can read.
pub(crate) struct Instrumented<'a> {
    wizer: Wizer,
    context: ComponentContext<'a>,
}

/// Adds functions to a component that read its memories and globals. The result
/// is compiled and run in place of the component. Else returns why there is none.
pub(crate) fn instrument(component: &[u8]) -> Result<Vec<u8>, String> {
    try_instrument(&Wizer::new(), component).map(|(_, wasm)| wasm)
}

fn try_instrument<'a>(wizer: &Wizer, component: &'a [u8]) -> Result<(ComponentContext<'a>, Vec<u8>), String> {
    match panics::caught(|| wizer.instrument_component(component)) {
        Ok(done) => done.map_err(|error| format!("{error:#}")),
        Err(_) => Err(UNKNOWN_FORM.into()),
    }
}

impl<'a> Instrumented<'a> {
    /// The reader for instances of the component that [`instrument`] returns for
    /// this one.
    pub(crate) fn new(component: &'a [u8]) -> Result<Self, NoSnapshot> {
        let wizer = Wizer::new();
        let (context, _) = try_instrument(&wizer, component).map_err(NoSnapshot::Form)?;
        Ok(Self { wizer, context })
    }

    /// A component with the current contents of `instance`. The instance cannot be
    /// used after that, since reading a memory grows it.
    pub(crate) async fn take(&self, store: &mut Store<State>, instance: Instance) -> Result<Vec<u8>, NoSnapshot> {
        // Resources are handles into this instance's store.
        if !store.data().table.is_empty() {
            return Err(NoSnapshot::Handles);
        }
        // The host reads the memories, so they do not count as output of the plugin.
        store.set_hostcall_fuel(usize::MAX);
        // An error only means that this engine does not meter fuel.
        let _ = store.set_fuel(u64::MAX);
        let mut reader = Reader { store, instance, memories: HashMap::new(), error: None };
        let wasm = {
            let mut snapshot = pin!(self.wizer.snapshot_component(&self.context, &mut reader));
            // wizer asserts what it does not check, and no component may end the host.
            poll_fn(|cx| match panics::caught(|| snapshot.as_mut().poll(cx)) {
                Ok(poll) => poll,
                Err(_) => Poll::Ready(Err(wasmtime::Error::msg(UNKNOWN_FORM))),
            })
            .await
        };
        match reader.error {
            Some(error) => Err(NoSnapshot::Unreadable(error)),
            None => wasm.map_err(|error| NoSnapshot::Form(format!("{error:#}"))),
        }
    }
}

const UNKNOWN_FORM: &str = "it has parts that wizer does not support";

/// Reads an instance through the functions that the instrumentation added.
/// The first error is kept, and then nothing more is read.
struct Reader<'a> {
    store: &'a mut Store<State>,
    instance: Instance,
    /// The memories that were read, since each is asked for twice, and reading it grows it.
    memories: HashMap<String, Vec<u8>>,
    error: Option<String>,
}

impl Reader<'_> {
    async fn call<R>(&mut self, interface: &str, function: &str) -> Option<R>
    where
        R: Lift + Send + Sync + 'static,
        (R,): ComponentNamedList + Lift,
        (): Lower,
    {
        if self.error.is_some() {
            return None;
        }
        match self.try_call(interface, function).await {
            Ok(value) => Some(value),
            Err(error) => {
                self.error = Some(error.root_cause().to_string());
                None
            }
        }
    }

    async fn try_call<R>(&mut self, interface: &str, function: &str) -> wasmtime::Result<R>
    where
        R: Lift + Send + Sync + 'static,
        (R,): ComponentNamedList + Lift,
    {
        let missing = || wasmtime::Error::msg(format!("{interface} does not export {function}"));
        let (_, exports) = self.instance.get_export(&mut *self.store, None, interface).ok_or_else(missing)?;
        let (_, index) = self.instance.get_export(&mut *self.store, Some(&exports), function).ok_or_else(missing)?;
        let function = self.instance.get_typed_func::<(), (R,)>(&mut *self.store, index)?;
        Ok(function.call_async(&mut *self.store, ()).await?.0)
    }
}

impl ComponentInstanceState for Reader<'_> {
    async fn call_func_ret_list_u8(&mut self, instance: &str, func: &str, contents: impl FnOnce(&[u8]) + Send) {
        if !self.memories.contains_key(func) {
            let list: Option<WasmList<u8>> = self.call(instance, func).await;
            let bytes = list.map(|list| list.as_le_slice(&*self.store).to_vec()).unwrap_or_default();
            self.memories.insert(func.to_owned(), bytes);
        }
        contents(&self.memories[func]);
    }

    async fn call_func_ret_s32(&mut self, instance: &str, func: &str) -> i32 {
        self.call(instance, func).await.unwrap_or_default()
    }

    async fn call_func_ret_s64(&mut self, instance: &str, func: &str) -> i64 {
        self.call(instance, func).await.unwrap_or_default()
    }

    async fn call_func_ret_f32(&mut self, instance: &str, func: &str) -> u32 {
        self.call::<f32>(instance, func).await.unwrap_or_default().to_bits()
    }

    async fn call_func_ret_f64(&mut self, instance: &str, func: &str) -> u64 {
        self.call::<f64>(instance, func).await.unwrap_or_default().to_bits()
    }
}
