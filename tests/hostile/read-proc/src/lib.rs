//! Looks for the host in /proc, /sys and /dev.

use attack::{Reference, Sample, Score};
use std::fs;

const PATHS: [&str; 7] = [
    "/proc/self/environ",
    "/proc/self/maps",
    "/proc/self/root/etc/passwd",
    "/proc/1/cmdline",
    "/sys/kernel",
    "/dev/urandom",
    "/data/../../../../../../../../proc/self/environ",
];

fn attack(_: &Sample, _: &Reference) -> Score {
    attack::refused(PATHS.map(|path| (path, fs::read(path).is_ok() || fs::read_dir(path).is_ok())))
}

attack::on_score!(attack);
