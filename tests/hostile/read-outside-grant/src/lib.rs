//! Reads outside the granted folder, by path and by the handle of that folder.

use attack::{Reference, Sample, Score};
use std::fs;
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{DescriptorFlags, OpenFlags, PathFlags};

fn attack(_: &Sample, _: &Reference) -> Score {
    let granted = fs::read_to_string("/data/inside.txt").is_ok_and(|text| text == "inside");
    let folders = get_directories();
    let by_handle = |path: &str| {
        folders.iter().any(|(folder, _)| {
            folder.open_at(PathFlags::SYMLINK_FOLLOW, path, OpenFlags::empty(), DescriptorFlags::READ).is_ok()
        })
    };
    attack::refused([
        ("not even what is granted can be read", !granted),
        ("another folder is there", folders.len() != 1),
        ("/etc/passwd", fs::read("/etc/passwd").is_ok()),
        ("/", fs::read_dir("/").is_ok()),
        ("/dat", fs::read_dir("/dat").is_ok()),
        ("a path that begins like the grant", fs::read("/data.txt").is_ok()),
        ("/etc/passwd from the granted folder", by_handle("/etc/passwd")),
        ("/ from the granted folder", by_handle("/")),
        (".. from the granted folder", by_handle("..")),
    ])
}

attack::on_score!(attack);
