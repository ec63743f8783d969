//! Changes the granted folder in every possible way.

use attack::{Reference, Sample, Score};
use std::fs::{self, File, OpenOptions};
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{DescriptorFlags, NewTimestamp, OpenFlags, PathFlags};

const FILE: &str = "/data/inside.txt";

fn attack(_: &Sample, _: &Reference) -> Score {
    let folders = get_directories();
    let Some((folder, _)) = folders.first() else { return Score::new(0.0).note("no folder was granted") };
    let mut open = OpenOptions::new();
    attack::refused([
        ("create a file", File::create("/data/new.txt").is_ok()),
        ("overwrite", fs::write(FILE, "changed").is_ok()),
        ("append", open.append(true).open(FILE).is_ok()),
        ("open for reading and writing", open.read(true).open(FILE).is_ok()),
        ("truncate", File::open(FILE).is_ok_and(|file| file.set_len(0).is_ok())),
        ("write to a file opened for reading", File::open(FILE).is_ok_and(|file| write(&file).is_ok())),
        ("remove", fs::remove_file(FILE).is_ok()),
        ("remove a link", fs::remove_file("/data/escape").is_ok()),
        ("rename", fs::rename(FILE, "/data/other.txt").is_ok()),
        ("make a folder", fs::create_dir("/data/folder").is_ok()),
        ("make a hard link", fs::hard_link(FILE, "/data/link").is_ok()),
        ("make a symbolic link", folder.symlink_at("inside.txt", "link").is_ok()),
        ("change a date", {
            let now = NewTimestamp::Now;
            folder.set_times_at(PathFlags::empty(), "inside.txt", now, now).is_ok()
        }),
        ("change what was opened for change", {
            let flags = DescriptorFlags::READ | DescriptorFlags::MUTATE_DIRECTORY;
            folder.open_at(PathFlags::empty(), ".", OpenFlags::DIRECTORY, flags).is_ok_and(|folder| {
                folder.create_directory_at("folder").is_ok() || folder.unlink_file_at("inside.txt").is_ok()
            })
        }),
    ])
}

fn write(mut file: &File) -> std::io::Result<()> {
    std::io::Write::write_all(&mut file, b"changed")
}

attack::on_score!(attack);
