//! A client of c10d's TCPStore, which holds texts by key for all ranks (`shim/collectives.cpp`).

use super::error::{PeersError, Result};
use super::rendezvous::Rendezvous;
use crate::{checked, gavel_free};
use std::ffi::{CStr, CString, c_char};
use std::io;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::os::fd::{IntoRawFd, RawFd};
use std::time::{Duration, Instant};

/// c10d's store.
#[repr(C)]
pub(super) struct CStore {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn gavel_store_open(
        host: *const c_char,
        port: u16,
        serves: bool,
        listener: RawFd,
        timeout_ms: i64,
        out: *mut *mut CStore,
    ) -> *mut c_char;
    fn gavel_store_close(store: *mut CStore);
    fn gavel_store_set(store: *mut CStore, key: *const c_char, value: *const c_char) -> *mut c_char;
    fn gavel_store_claim(
        store: *mut CStore,
        key: *const c_char,
        wanted: *const c_char,
        value: *mut *mut c_char,
    ) -> *mut c_char;
    fn gavel_store_add(store: *mut CStore, key: *const c_char, delta: i64, sum: *mut i64) -> *mut c_char;
    fn gavel_store_has(store: *mut CStore, key: *const c_char, has: *mut bool) -> *mut c_char;
    fn gavel_store_get(
        store: *mut CStore,
        keys: *const *const c_char,
        count: usize,
        values: *mut *mut c_char,
    ) -> *mut c_char;
}

/// How long a taken port is tried again: the run before may be about to end.
const PORT_RETRIES: Duration = Duration::from_secs(10);

/// A client of the store, and the server too if this process serves it.
pub(super) struct Store(*mut CStore);

// SAFETY: c10d's store locks itself in each operation.
unsafe impl Send for Store {}
// SAFETY: as above.
unsafe impl Sync for Store {}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: the store was made by `gavel_store_open`, and nothing uses it any more.
        unsafe { gavel_store_close(self.0) }
    }
}

/// A text without a zero byte, as C has it.
pub(super) fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

/// A text that the shim allocated.
fn owned(text: *mut c_char) -> String {
    // SAFETY: the shim gives a string that nothing else owns; it is freed once, after it was copied.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        gavel_free(text);
        copy
    }
}

impl Store {
    /// The store of a run, which this process serves if it is its part. A taken port is tried again for some time.
    pub fn open(at: &Rendezvous) -> Result<Self> {
        let serves = at.is_served_by_rank_0 && at.rank == 0;
        let start = Instant::now();
        loop {
            match Self::connect(&at.address, at.port, serves, at.start_within) {
                Err(error) if serves && is_taken(&error) && start.elapsed() >= PORT_RETRIES => {
                    return Err(PeersError::PortTaken { port: at.port });
                }
                Err(error) if serves && is_taken(&error) => std::thread::sleep(Duration::from_millis(500)),
                Err(PeersError::Torch(what)) => {
                    return Err(PeersError::Unreachable { rank: at.rank, address: at.place(), what });
                }
                other => return other,
            }
        }
    }

    /// A connection to the store, which this process may serve: at a loopback address only there, as c10d itself listens on
    /// all networks. `timeout` limits connecting, and waiting for a key.
    pub fn connect(host: &str, port: u16, serves: bool, timeout: Duration) -> Result<Self> {
        let listener = match loopback(host).filter(|_| serves) {
            Some(address) => TcpListener::bind((address, port)).map_err(|error| unbound(port, &error))?.into_raw_fd(),
            None => -1,
        };
        let (host, timeout, mut out) = (c_text(host), timeout.as_millis() as i64, std::ptr::null_mut());
        // SAFETY: the text and the result outlive the call, and nothing else owns the listener.
        checked(unsafe { gavel_store_open(host.as_ptr(), port, serves, listener, timeout, &mut out) })?;
        Ok(Self(out))
    }

    pub(super) fn as_ptr(&self) -> *mut CStore {
        self.0
    }

    pub fn set(&self, key: &str, value: &str) -> Result<()> {
        let (key, value) = (c_text(key), c_text(value));
        // SAFETY: the store is open, and the texts outlive the call.
        Ok(checked(unsafe { gavel_store_set(self.0, key.as_ptr(), value.as_ptr()) })?)
    }

    /// Sets a key unless it is set, and returns its value.
    pub fn claim(&self, key: &str, value: &str) -> Result<String> {
        let (key, value, mut found) = (c_text(key), c_text(value), std::ptr::null_mut());
        // SAFETY: the store is open, and the texts and the result outlive the call.
        checked(unsafe { gavel_store_claim(self.0, key.as_ptr(), value.as_ptr(), &mut found) })?;
        Ok(owned(found))
    }

    /// Adds to a number, from 0, and returns it.
    pub fn add(&self, key: &str, delta: i64) -> Result<i64> {
        let (key, mut sum) = (c_text(key), 0);
        // SAFETY: the store is open, and the text and the result outlive the call.
        checked(unsafe { gavel_store_add(self.0, key.as_ptr(), delta, &mut sum) })?;
        Ok(sum)
    }

    /// Whether a key is set.
    pub fn has(&self, key: &str) -> Result<bool> {
        let (key, mut has) = (c_text(key), false);
        // SAFETY: as above.
        checked(unsafe { gavel_store_has(self.0, key.as_ptr(), &mut has) })?;
        Ok(has)
    }

    /// The values of keys that are set.
    pub fn get(&self, keys: &[String]) -> Result<Vec<String>> {
        let texts: Vec<CString> = keys.iter().map(|key| c_text(key)).collect();
        let pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        let mut values = vec![std::ptr::null_mut(); keys.len()];
        // SAFETY: the store is open; the lists have the length that is given, and they and the texts outlive the call.
        checked(unsafe { gavel_store_get(self.0, pointers.as_ptr(), keys.len(), values.as_mut_ptr()) })?;
        Ok(values.into_iter().map(owned).collect())
    }
}

/// The address of a host that only this machine reaches.
fn loopback(host: &str) -> Option<IpAddr> {
    match host {
        "localhost" => Some(Ipv4Addr::LOCALHOST.into()),
        _ => host.parse().ok().filter(IpAddr::is_loopback),
    }
}

fn unbound(port: u16, error: &io::Error) -> PeersError {
    match error.kind() {
        io::ErrorKind::AddrInUse => PeersError::PortTaken { port },
        _ => PeersError::Torch(format!("cannot listen at port {port}: {error}")),
    }
}

fn is_taken(error: &PeersError) -> bool {
    match error {
        PeersError::PortTaken { .. } => true,
        PeersError::Torch(text) => text.contains("EADDRINUSE"),
        _ => false,
    }
}
