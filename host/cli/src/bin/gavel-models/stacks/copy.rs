//! Copies of the registers and the stack of a thread.

use anyhow::{Context, Result, ensure};
use framehop::UnwindRegsNative;
use libc::{SIGURG, c_int, c_void, siginfo_t, ucontext_t};
use std::cell::UnsafeCell;
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::IntoRawFd;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How much of a stack is copied, from its innermost frame on.
const MOST_BYTES: usize = 1 << 20;
/// The thread whose stack is wanted, or one of the states below.
static WANTED: AtomicI32 = AtomicI32::new(NOBODY);
const NOBODY: i32 = 0;
const COPYING: i32 = -1;
const COPIED: i32 = -2;

/// `/proc/self/mem`, whose reading fails where there is no memory: reading the stack beyond its end would end the process.
static MEMORY: AtomicI32 = AtomicI32::new(-1);

/// The last copy.
static PLACE: Place = Place(UnsafeCell::new(Place::EMPTY));

struct Place(UnsafeCell<(Registers, usize, [u8; MOST_BYTES])>);

impl Place {
    const EMPTY: (Registers, usize, [u8; MOST_BYTES]) =
        (Registers { instruction: 0, stack: 0, frame: 0, link: 0 }, 0, [0; MOST_BYTES]);
}

// SAFETY: the thread that moves `WANTED` to `COPYING` has the place until it moves it on, and in `COPIED` only
// `Copy::of_thread` has it, of which one runs at a time.
unsafe impl Sync for Place {}

#[derive(Clone, Copy)]
struct Registers {
    instruction: u64,
    stack: u64,
    frame: u64,
    /// The return address, where the machine keeps one.
    #[cfg_attr(target_arch = "x86_64", expect(dead_code, reason = "the return address is on the stack"))]
    link: u64,
}

impl Registers {
    #[cfg(target_arch = "x86_64")]
    fn of(context: &ucontext_t) -> Self {
        let [instruction, stack, frame] = [libc::REG_RIP, libc::REG_RSP, libc::REG_RBP]
            .map(|number| context.uc_mcontext.gregs[number as usize] as u64);
        Self { instruction, stack, frame, link: 0 }
    }

    #[cfg(target_arch = "aarch64")]
    fn of(context: &ucontext_t) -> Self {
        let machine = &context.uc_mcontext;
        Self { instruction: machine.pc, stack: machine.sp, frame: machine.regs[29], link: machine.regs[30] }
    }
}

/// Lets the threads of this process be asked for their stacks.
///
/// # Errors
/// The system refuses a handler of signals, or another part of the process has one for the signal.
pub fn prepare() -> Result<()> {
    static IS_PREPARED: Mutex<bool> = Mutex::new(false);
    let mut is_prepared = IS_PREPARED.lock().unwrap_or_else(PoisonError::into_inner);
    if *is_prepared {
        return Ok(());
    }
    let memory = File::open("/proc/self/mem").context("cannot read the memory of this process")?;
    // SAFETY: zeros are a value of both structures. `answer` calls only functions that a handler may call.
    unsafe {
        let mut earlier: libc::sigaction = MaybeUninit::zeroed().assume_init();
        ensure_done(libc::sigaction(SIGURG, std::ptr::null(), &mut earlier))?;
        let is_free = [libc::SIG_DFL, libc::SIG_IGN].contains(&earlier.sa_sigaction);
        ensure!(is_free, "another part of this process waits for SIGURG");
        // Before the handler, which reads it.
        MEMORY.store(memory.into_raw_fd(), Ordering::Relaxed);
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = answer as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        ensure_done(libc::sigaction(SIGURG, &action, std::ptr::null_mut()))?;
    }
    *is_prepared = true;
    Ok(())
}

fn ensure_done(result: c_int) -> Result<()> {
    ensure!(result == 0, "cannot wait for signals: {}", std::io::Error::last_os_error());
    Ok(())
}

/// The handler of the signal: copies the stack of this thread if it is wanted.
extern "C" fn answer(_: c_int, _: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the function has no conditions.
    let own = unsafe { libc::gettid() };
    if WANTED.compare_exchange(own, COPYING, Ordering::Acquire, Ordering::Relaxed).is_err() {
        return;
    }
    // SAFETY: the system gives the context. The place belongs to this thread until `WANTED` is moved on. What reading
    // leaves in `errno` must not be seen by the code that was interrupted.
    unsafe {
        let (registers, length, stack) = &mut *PLACE.0.get();
        *registers = Registers::of(&*context.cast::<ucontext_t>());
        let errno = *libc::__errno_location();
        let memory = MEMORY.load(Ordering::Relaxed);
        let read = libc::pread64(memory, stack.as_mut_ptr().cast(), MOST_BYTES, registers.stack as i64);
        *libc::__errno_location() = errno;
        *length = usize::try_from(read).unwrap_or_default();
    }
    WANTED.store(COPIED, Ordering::Release);
}

/// Whether a thread would not notice the signal.
fn blocks_the_signal(thread: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/self/task/{thread}/status")).unwrap_or_default();
    let blocked = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    let blocked = blocked.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    blocked.is_some_and(|mask| mask & 1 << (SIGURG - 1) != 0)
}

/// The registers and the stack of a thread at one moment.
pub struct Copy {
    registers: Registers,
    stack: Vec<u8>,
}

impl Copy {
    /// Interrupts a thread of this process and copies its stack; nothing if it does not answer until then, or has ended.
    pub fn of_thread(thread: i32, until: Instant) -> Option<Self> {
        if blocks_the_signal(thread) {
            return None;
        }
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let change = |from, to| WANTED.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
        // The copy of one that took too long.
        let _ = change(COPIED, NOBODY);
        // It fails while an earlier thread still copies: the place is its own.
        change(NOBODY, thread).ok()?;
        // SAFETY: it sends a signal that has a handler to a thread of this process.
        let sent = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, SIGURG) };
        while sent == 0 && Instant::now() < until {
            if WANTED.load(Ordering::Acquire) == COPIED {
                // SAFETY: no thread writes to the place in this state, and no other reads it.
                let (registers, length, stack) = unsafe { &*PLACE.0.get() };
                let copy = Self { registers: *registers, stack: stack.iter().take(*length).copied().collect() };
                WANTED.store(NOBODY, Ordering::Release);
                return Some(copy);
            }
            sleep(Duration::from_micros(100));
        }
        // A thread that begins to copy at this moment is left alone.
        let _ = change(thread, NOBODY);
        None
    }

    /// The address of the next instruction.
    pub fn instruction(&self) -> u64 {
        self.registers.instruction
    }

    /// What unwinding begins with.
    pub fn registers(&self) -> UnwindRegsNative {
        let Registers { stack, frame, .. } = self.registers;
        #[cfg(target_arch = "x86_64")]
        return UnwindRegsNative::new(self.registers.instruction, stack, frame);
        #[cfg(target_arch = "aarch64")]
        return UnwindRegsNative::new(self.registers.link, stack, frame);
    }

    /// The eight bytes of the stack at an address.
    pub fn word(&self, address: u64) -> Option<u64> {
        let at = usize::try_from(address.checked_sub(self.registers.stack)?).ok()?;
        let bytes = self.stack.get(at..at.checked_add(8)?)?;
        Some(u64::from_ne_bytes(bytes.try_into().ok()?))
    }
}
