//! What a plugin prints: the end is kept for messages, and a flood ends the
//! call.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

/// Enough for the end of a Python traceback, where its error stands.
const KEPT_BYTES: usize = 4096;
/// What a guest may write at once.
const CHUNK: usize = 64 << 10;

/// The error of a call that printed too much.
#[derive(Debug, thiserror::Error)]
#[error("more than {0} bytes were printed")]
pub(crate) struct LogFull(pub(crate) usize);

/// What a call printed, stdout and stderr in one. It outlives the call's store.
#[derive(Clone)]
pub(crate) struct Log {
    limit: usize,
    /// How much of the end is kept.
    kept: usize,
    printed: Arc<Mutex<Printed>>,
}

#[derive(Default)]
struct Printed {
    total: usize,
    end: VecDeque<u8>,
}

impl Log {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, kept: KEPT_BYTES, printed: Arc::default() }
    }

    /// Keeps all that may be printed.
    pub(crate) fn whole(limit: usize) -> Self {
        Self { limit, kept: limit, printed: Arc::default() }
    }

    /// What was printed, as far as it is kept.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).end.iter().copied().collect()
    }

    /// The end of what was printed.
    pub(crate) fn text(&self) -> String {
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, second) = printed.end.as_slices();
        let text = String::from_utf8_lossy(&[first, second].concat()).trim().to_owned();
        if printed.total > KEPT_BYTES { format!("… {text}") } else { text }
    }
}

impl IsTerminal for Log {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Log {
    fn async_stream(&self) -> Box<dyn tokio::io::AsyncWrite + Send + Sync> {
        // Only WASI 0.3 asks for it, which is not linked.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Log {
    async fn ready(&mut self) {}
}

#[wasmtime_wasi::async_trait]
impl OutputStream for Log {
    fn write(&mut self, bytes: bytes::Bytes) -> StreamResult<()> {
        let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        printed.total = printed.total.saturating_add(bytes.len());
        printed.end.extend(&bytes);
        // A child's output is its beginning, whatever came after the limit.
        match self.kept < self.limit {
            true => {
                let over = printed.end.len().saturating_sub(self.kept);
                printed.end.drain(..over);
            }
            false => printed.end.truncate(self.kept),
        }
        if printed.total > self.limit {
            return Err(StreamError::Trap(wasmtime::Error::new(LogFull(self.limit))));
        }
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(CHUNK)
    }
}
