//! Opens the granted file forever and never closes it: the host has fewer file
//! descriptors than a plugin has time.

use attack::{Reference, Sample};
use wasip2::filesystem::preopens::get_directories;
use wasip2::filesystem::types::{DescriptorFlags, OpenFlags, PathFlags};

fn attack(_: &Sample, _: &Reference) -> f64 {
    let folders = get_directories();
    let Some((folder, _)) = folders.first() else { return 0.0 };
    loop {
        let (path, open) = (PathFlags::empty(), OpenFlags::empty());
        std::mem::forget(folder.open_at(path, "inside.txt", open, DescriptorFlags::READ));
    }
}

attack::on_score!(attack);
