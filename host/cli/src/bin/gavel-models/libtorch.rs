//! Which libtorch this process has loaded.

/// The folder of the libtorch that is loaded, if the system reports it.
pub fn loaded() -> Option<String> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let path = maps.lines().find_map(|line| {
        let path = &line[line.find('/')?..];
        path.strip_suffix("/libtorch_cpu.so")
    })?;
    Some(path.to_owned())
}
