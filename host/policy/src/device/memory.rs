//! How much memory a device has.

use super::runtime::Runtime;
use crate::error::{PolicyError, Result};
use std::fs::read_to_string;
use std::path::PathBuf;
use tch::Device;

/// The memory of a device, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceMemory {
    /// All of the device's memory.
    pub total: u64,
    /// The memory that is not in use.
    pub free: u64,
}

/// The memory of `device`. On the CPU it is the machine's, or the part of it
/// that the control group of this process allows.
///
/// # Errors
/// The system does not report it.
pub fn memory(device: Device) -> Result<DeviceMemory> {
    match device {
        Device::Cuda(index) => {
            let [total, free] = Runtime::of(index)?.memory()?;
            Ok(DeviceMemory { total, free })
        }
        _ => {
            let machine = machine()?;
            Ok(control_group().map_or(machine, |limit| DeviceMemory {
                total: limit.total.min(machine.total),
                free: limit.free.min(machine.free),
            }))
        }
    }
}

/// Gives memory that tensors had back to `device`. libtorch keeps it on a GPU for the next tensors, which may have other
/// sizes. On the CPU it is given back as tensors are dropped.
///
/// # Errors
/// The device has failed.
pub fn give_back(device: Device) -> Result<()> {
    match device {
        // Without that part, libtorch uses the memory for the next tensors.
        Device::Cuda(_) if gavel_torch::cuda::has_part().is_ok() => Ok(gavel_torch::cuda::memory::give_back()?),
        _ => Ok(()),
    }
}

/// The most memory that libtorch used on a GPU, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryPeaks {
    /// The memory of tensors.
    pub allocated: u64,
    /// The memory that was held for them.
    pub reserved: u64,
}

/// The most memory that libtorch used on `device` since the last [reset](reset_peaks); `None` on the CPU.
///
/// # Errors
/// The device has failed.
pub fn peaks(device: Device) -> Result<Option<MemoryPeaks>> {
    let Device::Cuda(index) = device else { return Ok(None) };
    let [allocated, reserved] = gavel_torch::cuda::memory::peaks(index)?;
    Ok(Some(MemoryPeaks { allocated, reserved }))
}

/// Lets the [peaks] begin with what is in use now.
///
/// # Errors
/// The device has failed.
pub fn reset_peaks(device: Device) -> Result<()> {
    match device {
        Device::Cuda(index) => Ok(gavel_torch::cuda::memory::reset_peaks(index)?),
        _ => Ok(()),
    }
}

fn machine() -> Result<DeviceMemory> {
    const FILE: &str = "/proc/meminfo";
    let text = read_to_string(FILE).map_err(|source| PolicyError::Io { action: "read", path: FILE.into(), source })?;
    let missing = || PolicyError::Device { name: "cpu".into(), what: format!("{FILE} does not report the memory") };
    let field = |name| field(&text, name).map(|kibibytes| kibibytes * 1024).ok_or_else(missing);
    Ok(DeviceMemory { total: field("MemTotal:")?, free: field("MemAvailable:")? })
}

/// The number behind a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace().next()?.parse().ok()
}

/// Where the control groups of a version are, and the names of their files: the
/// limit, the memory in use, and the part of it that the kernel can reclaim
/// (cached files that have not been read for a while).
struct ControlGroups {
    root: &'static str,
    /// Before the group in a line of `/proc/self/cgroup`, after the first colon.
    line: &'static str,
    limit: &'static str,
    used: &'static str,
    inactive: &'static str,
}

const CONTROL_GROUPS: [ControlGroups; 2] = [
    ControlGroups {
        root: "/sys/fs/cgroup",
        line: ":/",
        limit: "memory.max",
        used: "memory.current",
        inactive: "inactive_file ",
    },
    ControlGroups {
        root: "/sys/fs/cgroup/memory",
        line: "memory:/",
        limit: "memory.limit_in_bytes",
        used: "memory.usage_in_bytes",
        inactive: "total_inactive_file ",
    },
];

/// The tightest limit of the control groups that the process is in.
fn control_group() -> Option<DeviceMemory> {
    let groups = read_to_string("/proc/self/cgroup").ok()?;
    let limits = CONTROL_GROUPS.iter().flat_map(|version| {
        let own = groups.lines().find_map(|line| line.split_once(':')?.1.strip_prefix(version.line));
        // A container sees its own group at the root, whatever its path is outside.
        let folder = PathBuf::from(version.root).join(own.unwrap_or_default());
        let folders: Vec<PathBuf> = folder.ancestors().map(PathBuf::from).collect();
        folders.into_iter().take_while(|folder| folder.starts_with(version.root)).filter_map(|folder| {
            let number = |file: &str| read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
            // Without a limit the file has `max`, or a number larger than the
            // memory of any machine.
            let (total, used) = (number(version.limit)?, number(version.used)?);
            let statistics = read_to_string(folder.join("memory.stat")).unwrap_or_default();
            let used = used.saturating_sub(field(&statistics, version.inactive).unwrap_or(0));
            Some(DeviceMemory { total, free: total.saturating_sub(used) })
        })
    });
    limits.min_by_key(|limit| limit.free)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_tells_its_memory() {
        let found = memory(Device::Cpu).unwrap();
        assert!(found.total > 64 << 20 && (1..=found.total).contains(&found.free), "{found:?}");
    }

    #[test]
    fn a_gpu_tells_its_memory_or_why_not() {
        match memory(Device::Cuda(0)) {
            Ok(found) => assert!(found.total > 1 << 30 && found.free <= found.total, "{found:?}"),
            Err(error) => assert!(error.to_string().starts_with("device cuda"), "{error}"),
        }
    }
}
