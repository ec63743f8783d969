//! The output that a plugin prints. Its end is kept for messages, and too much of
//! it ends the call.

use crate::budget::Limits;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

/// The bytes that are kept: enough for the end of a Python traceback, which has
/// the error.
const KEPT_BYTES: usize = 4096;

/// The error of a call that printed too much.
#[derive(Debug, thiserror::Error)]
#[error("more than {0} bytes were printed")]
pub(crate) struct LogFull(pub(crate) usize);

/// The output of a call, stdout and stderr together. It outlives the call's store.
#[derive(Clone)]
pub(crate) struct Log {
    limit: usize,
    /// The most bytes that are kept.
    kept: usize,
    /// The most bytes that a guest may write at once.
    at_once: usize,
    /// The bytes that were printed.
    total: Arc<AtomicUsize>,
    printed: Arc<Mutex<VecDeque<u8>>>,
}

impl Log {
    pub(crate) fn new(limits: &Limits) -> Self {
        let (limit, at_once) = (limits.log, limits.output);
        Self { limit, kept: KEPT_BYTES, at_once, total: Arc::default(), printed: Arc::default() }
    }

    /// A child's stdout and stderr, which share a limit and keep everything within
    /// it.
    pub(crate) fn pair(limit: usize) -> [Self; 2] {
        let total: Arc<AtomicUsize> = Arc::default();
        // A guest counts in 32 bits, with a sign.
        let at_once = i32::MAX as usize;
        let log = || Self { limit, kept: limit, at_once, total: total.clone(), printed: Arc::default() };
        [log(), log()]
    }

    /// The bytes that a guest may write at once: the rest of the limit and one byte
    /// more. So too much ends the call, and is not a short write, after which a
    /// guest might not write the rest.
    fn room(&self) -> usize {
        self.limit.saturating_sub(self.total.load(Ordering::Relaxed)).saturating_add(1).min(self.at_once)
    }

    /// The kept output.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect()
    }

    /// The end of the output, as text.
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
        // Only WASI 0.3 uses it, which is not linked.
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
                printed.extend(&bytes[bytes.len().saturating_sub(self.kept)..]);
                let over = printed.len().saturating_sub(self.kept);
                printed.drain(..over);
            }
            // For a child, the beginning up to the limit is kept.
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
        Ok(self.room())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes once as many bytes as allowed; returns their number, and whether it was too much.
    fn write(log: &mut Log, bytes: &[u8]) -> (usize, bool) {
        let most = log.check_write().unwrap().min(bytes.len());
        match log.write(bytes[..most].to_vec().into()) {
            Ok(()) => (most, false),
            Err(StreamError::Trap(error)) => (most, error.downcast_ref::<LogFull>().is_some()),
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn one_write_of_a_child_is_whole_or_its_end() {
        const LIMIT: usize = 1 << 20;
        for around in 0..=20 {
            for size in [(1 << around) - 1, 1 << around, (1 << around) + 1] {
                let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
                let [mut stdout, _] = Log::pair(LIMIT);
                assert_eq!(write(&mut stdout, &bytes), (size, size > LIMIT), "{size}");
                assert!(stdout.bytes() == bytes[..size.min(LIMIT)], "{size}");
                // The same limits hold for output in pieces.
                let [mut stdout, mut stderr] = Log::pair(LIMIT);
                let pieces: Vec<_> = bytes.chunks(4093).map(|piece| write(&mut stdout, piece)).collect();
                assert_eq!(pieces.iter().map(|(written, _)| written).sum::<usize>(), size);
                assert_eq!(pieces.iter().any(|(_, full)| *full), size > LIMIT);
                assert!(stdout.bytes() == bytes[..size.min(LIMIT)], "{size}");
                // Both share what is left.
                assert_eq!(write(&mut stderr, b"!"), (1, size >= LIMIT), "{size}");
            }
        }
        let [mut stdout, _] = Log::pair(LIMIT);
        assert_eq!(write(&mut stdout, &vec![0; 3 * LIMIT]), (LIMIT + 1, true));
        assert_eq!(stdout.bytes().len(), LIMIT);
    }

    #[test]
    fn the_end_of_a_large_write_is_kept() {
        let mut log = Log::new(&Limits { log: 1 << 20, output: 1 << 19, ..Limits::default() });
        let bytes = [vec![b'a'; 1 << 20], vec![b'b'; 5000]].concat();
        assert_eq!(write(&mut log, &bytes[5000..]), (1 << 19, false));
        assert_eq!(write(&mut log, &bytes[(1 << 19) + 5000..]), (1 << 19, false));
        assert_eq!(log.text(), format!("… {}", "b".repeat(KEPT_BYTES)));
        assert_eq!(write(&mut log, b"c"), (1, true));
    }

    #[test]
    fn both_outputs_of_a_child_share_what_it_may_print() {
        let [mut stdout, mut stderr] = Log::pair(10);
        stdout.write("123456".into()).unwrap();
        let Err(StreamError::Trap(error)) = stderr.write("abcdef".into()) else { panic!("12 bytes of 10") };
        assert!(error.downcast_ref::<LogFull>().is_some());
        assert_eq!((stdout.bytes(), stderr.bytes()), (b"123456".to_vec(), b"abcd".to_vec()));
    }
}
