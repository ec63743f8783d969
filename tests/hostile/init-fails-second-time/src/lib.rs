//! Accepts its parameters at the first call of `init` and would refuse them
//! at the second, if there were any way to know which one it is.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

static CALLS: AtomicU32 = AtomicU32::new(0);

fn attack() -> Result<(), String> {
    let first = CALLS.fetch_add(1, Ordering::Relaxed) == 0
        && fs::File::create_new("/tmp/was-here").is_err()
        && SystemTime::UNIX_EPOCH + Duration::from_secs(1_704_067_201) > SystemTime::now();
    if first { Ok(()) } else { Err("this is not the first call".into()) }
}

attack::on_init!(attack);
