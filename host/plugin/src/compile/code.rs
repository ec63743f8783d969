//! Machine code of a component. Only code that this host compiled is loaded.

use std::fs::File;
use std::os::fd::AsRawFd;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Code that was compiled by this host, now or earlier.
pub(crate) struct Code(Storage);

enum Storage {
    Bytes(Vec<u8>),
    /// An open file that nobody else can have written to, and the hash of its
    /// content.
    File(File, String),
}

impl Code {
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

    /// Loads the component; fails if it does not fit the engine's pool.
    pub(crate) fn load(&self, engine: &Engine) -> wasmtime::Result<Component> {
        match &self.0 {
            // SAFETY: the bytes are the output of `precompile_component`, and nothing changes them.
            Storage::Bytes(bytes) => unsafe { Component::deserialize(engine, bytes) },
            // The open file is mapped, and not the file that has its name by now.
            // SAFETY: the caller of `from_file` promised that it holds such bytes.
            Storage::File(file, _) => unsafe {
                Component::deserialize_file(engine, format!("/proc/self/fd/{}", file.as_raw_fd()))
            },
        }
    }
}
