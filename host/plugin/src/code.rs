//! Machine code of a component. Only what this host compiled becomes one.

use std::path::PathBuf;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Code that was compiled by this host, now or earlier.
pub(crate) struct Code(Form);

enum Form {
    Bytes(Vec<u8>),
    /// A file that nobody else can write to.
    File(PathBuf),
}

impl Code {
    /// Compiles a component.
    pub(crate) fn compile(engine: &Engine, component: &[u8]) -> wasmtime::Result<Self> {
        engine.precompile_component(component).map(|bytes| Self(Form::Bytes(bytes)))
    }

    /// The code in a file.
    ///
    /// # Safety
    /// The file must hold the [`bytes`](Self::bytes) of code that this host
    /// compiled, and must not change from now on.
    pub(crate) unsafe fn from_file(path: PathBuf) -> Self {
        Self(Form::File(path))
    }

    /// The code itself, where it is not in a file.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match &self.0 {
            Form::Bytes(bytes) => Some(bytes),
            Form::File(_) => None,
        }
    }

    /// Makes a component of it; fails where the component does not fit the
    /// engine's pool.
    pub(crate) fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        match &self.0 {
            // SAFETY: the bytes are what `precompile_component` gave, and nothing changes them.
            Form::Bytes(bytes) => unsafe { Component::deserialize(engine, bytes) },
            // SAFETY: who named the file promised that it holds such bytes.
            Form::File(path) => unsafe { Component::deserialize_file(engine, path) },
        }
    }
}
