//! Leaves the granted folder through symbolic links that lie in it.

use attack::{Reference, Sample, Score};
use std::fs;

fn attack(_: &Sample, _: &Reference) -> Score {
    let files = ["escape", "escape-relative", "escape-folder/secret.txt", "escape-folder/granted/inside.txt"];
    let listed = fs::read_dir("/data").map_or(0, Iterator::count);
    let attempts = files.map(|file| (file, fs::read(format!("/data/{file}")).is_ok()));
    attack::refused(attempts.into_iter().chain([
        ("the links are not there", listed != 4),
        ("the folder behind a link", fs::read_dir("/data/escape-folder").is_ok()),
        ("the size of a file behind a link", fs::metadata("/data/escape").is_ok()),
    ]))
}

attack::on_score!(attack);
