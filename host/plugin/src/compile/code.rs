//! Machine code of a component, and of the modules that it imports where its code is
//! split off. Only code that this host compiled is loaded.

use std::fs::File;
use std::os::fd::AsRawFd;
use wasmtime::component::Component;
use wasmtime::{Engine, Module};

/// The code of a component, which this host compiled now or earlier.
pub(crate) struct Code {
    pub(crate) component: Stored,
    /// The code that it imports.
    pub(crate) modules: Vec<Stored>,
}

impl Code {
    /// The output of the compiler for code that imports none.
    pub(crate) fn alone(bytes: Vec<u8>) -> Self {
        Self { component: Stored::from_bytes(bytes), modules: Vec::new() }
    }

    /// Loads the component; fails if it does not fit the engine's pool.
    pub(crate) fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        match &self.component.0 {
            // SAFETY: the bytes are the output of `precompile_component`, and nothing changes them.
            Storage::Bytes(bytes) => unsafe { Component::deserialize(engine, bytes) },
            // SAFETY: the caller of `from_file` promised that it holds such bytes.
            Storage::File(file, _) => unsafe { Component::deserialize_file(engine, open_file(file)) },
        }
    }

    /// Loads the modules that the component imports; fails if one does not fit the engine's pool.
    pub(crate) fn load_modules(&self, engine: &Engine) -> wasmtime::Result<Vec<Module>> {
        let load = |module: &Stored| match &module.0 {
            // SAFETY: the bytes are the output of `precompile_module`, and nothing changes them.
            Storage::Bytes(bytes) => unsafe { Module::deserialize(engine, bytes) },
            // SAFETY: the caller of `from_file` promised that it holds such bytes.
            Storage::File(file, _) => unsafe { Module::deserialize_file(engine, open_file(file)) },
        };
        self.modules.iter().map(load).collect()
    }
}

/// The path of the open file itself, and not of the file that has its name by now.
fn open_file(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

/// Code in memory or in a file.
pub(crate) struct Stored(Storage);

enum Storage {
    Bytes(Vec<u8>),
    /// An open file that nobody else can have written to, and the hash of its
    /// content.
    File(File, String),
}

impl Stored {
    /// The output of the compiler.
    pub(crate) fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(Storage::Bytes(bytes))
    }

    /// The code in a file, whose BLAKE3 is `hash`.
    ///
    /// # Safety
    /// The file must hold the [`bytes`](Self::bytes) of code that this host
    /// compiled, and must not change from now on.
    pub(crate) unsafe fn from_file(file: File, hash: String) -> Self {
        Self(Storage::File(file, hash))
    }

    /// The code, unless it is in a file.
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        match &self.0 {
            Storage::Bytes(bytes) => Some(bytes),
            Storage::File(..) => None,
        }
    }

    /// BLAKE3 of the code, in hexadecimal.
    pub(crate) fn hash(&self) -> String {
        match &self.0 {
            Storage::Bytes(bytes) => blake3::hash(bytes).to_hex().to_string(),
            Storage::File(_, hash) => hash.clone(),
        }
    }
}
