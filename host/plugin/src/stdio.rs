//! What a plugin prints: the end is kept for messages, and a flood ends the
//! call.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
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
    /// How much of it is kept.
    kept: usize,
    /// What was printed of the limit.
    total: Arc<AtomicUsize>,
    printed: Arc<Mutex<VecDeque<u8>>>,
}

impl Log {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, kept: KEPT_BYTES, total: Arc::default(), printed: Arc::default() }
    }

    /// A child's stdout and stderr, which keep all that it may print in both
    /// together.
    pub(crate) fn pair(limit: usize) -> [Self; 2] {
        let total: Arc<AtomicUsize> = Arc::default();
        [(); 2].map(|()| Self { limit, kept: limit, total: total.clone(), printed: Arc::default() })
    }

    /// What was printed, as far as it is kept.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// The end of what was printed.
    pub(crate) fn text(&self) -> String {
        let printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
        let (first, second) = printed.as_slices();
        let text = String::from_utf8_lossy(&[first, second].concat()).trim().to_owned();
        if self.total.load(Ordering::Relaxed) > KEPT_BYTES { format!("… {text}") } else { text }
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
        let before = self.total.fetch_add(bytes.len(), Ordering::Relaxed);
        match self.kept < self.limit {
            true => {
                printed.extend(&bytes);
                let over = printed.len().saturating_sub(self.kept);
                printed.drain(..over);
            }
            // A child's output is its beginning, whatever came after the limit.
            false => printed.extend(bytes.iter().take(self.kept.saturating_sub(before))),
        }
        if before.saturating_add(bytes.len()) > self.limit {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_outputs_of_a_child_share_what_it_may_print() {
        let [mut stdout, mut stderr] = Log::pair(10);
        stdout.write("123456".into()).unwrap();
        let Err(StreamError::Trap(error)) = stderr.write("abcdef".into()) else { panic!("12 bytes of 10") };
        assert!(error.downcast_ref::<LogFull>().is_some());
        assert_eq!((stdout.bytes(), stderr.bytes()), (b"123456".to_vec(), b"abcd".to_vec()));
    }
}
