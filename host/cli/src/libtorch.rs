//! Which libtorch this process has loaded.

/// Its folder, as far as the system tells.
pub fn loaded() -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let path = maps.lines().find_map(|line| {
        let path = &line[line.find('/')?..];
        path.strip_suffix("/libtorch_cpu.so")
    })?;
    Some(path.to_owned())
}
