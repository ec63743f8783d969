//! Reads and writes files without any grant.

use attack::{Reference, Sample, Score};
use std::fs;

fn attack(_: &Sample, _: &Reference) -> Score {
    attack::refused([
        ("a folder is there", !wasip2::filesystem::preopens::get_directories().is_empty()),
        ("/", fs::read_dir("/").is_ok()),
        (".", fs::read_dir(".").is_ok()),
        ("/etc/passwd", fs::read("/etc/passwd").is_ok()),
        ("/tmp/x", fs::write("/tmp/x", "x").is_ok()),
        ("x", fs::write("x", "x").is_ok()),
    ])
}

attack::on_score!(attack);
