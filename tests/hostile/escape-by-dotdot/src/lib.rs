//! Climbs out of the granted folder with `..`.

use attack::{Reference, Sample, Score};
use std::fs;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{DescriptorFlags, OpenFlags, PathFlags};

const WAYS_OUT: [&str; 6] = [
    "../secret.txt",
    "./../secret.txt",
    "x/../../secret.txt",
    "inside.txt/../../secret.txt",
    "../granted/../secret.txt",
    "../../../../../../../../etc/passwd",
];

fn attack(_: &Sample, _: &Reference) -> Score {
    let folders = get_directories();
    let open = |path: &str| {
        let by_handle = folders.iter().any(|(folder, _)| {
            folder.open_at(PathFlags::SYMLINK_FOLLOW, path, OpenFlags::empty(), DescriptorFlags::READ).is_ok()
        });
        by_handle || fs::read(format!("/data/{path}")).is_ok()
    };
    let there = [("no folder was granted", folders.is_empty())];
    attack::refused(there.into_iter().chain(WAYS_OUT.map(|path| (path, open(path)))))
}

attack::on_score!(attack);
