//! TensorBoard event files: records framed as in TFRecord (length, its CRC,
//! data, its CRC), each a protocol-buffer `tensorflow.Event`. The two messages
//! that scalars need are small enough to be written by hand
//! (tensorflow/core/util/event.proto, tensorflow/core/framework/summary.proto).

use crate::metrics::{Metrics, TIMESTAMP};
use gavel_data::Shown;
use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Writes the numbers of steps to one event file.
pub(crate) struct EventWriter(BufWriter<File>);

impl EventWriter {
    /// A new event file in `folder`, named as TensorBoard looks for it.
    pub(crate) fn create(folder: &Path) -> Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        // TensorBoard reads the files of a folder in the order of their names.
        let name = format!("events.out.tfevents.{}.{:09}.gavel", now.as_secs(), now.subsec_nanos());
        let mut writer = Self(BufWriter::new(File::create_new(folder.join(name))?));
        let mut event = event();
        bytes(&mut event, 3, b"brain.Event:2");
        writer.record(&event)?;
        Ok(writer)
    }

    /// Removes `step` and later steps from the curves of the files before this one, as `SummaryWriter(purge_step=…)` of
    /// torch does: a session starts at this step.
    pub(crate) fn purge(&mut self, step: u64) -> Result<()> {
        let mut event = event();
        tag(&mut event, 2, 0);
        varint(&mut event, step);
        // SessionLog { status: START }
        bytes(&mut event, 7, b"\x08\x01");
        self.record(&event)?;
        self.0.flush()
    }

    /// Adds every number of a step.
    pub(crate) fn write(&mut self, step: u64, metrics: &Metrics) -> Result<()> {
        let mut summary = Vec::new();
        for (name, value) in metrics.as_json() {
            // An event has its step and its time.
            let Some(value) = value.as_f64().filter(|_| name != "step" && name != TIMESTAMP) else { continue };
            let mut scalar = Vec::new();
            bytes(&mut scalar, 1, Shown(name).to_string().as_bytes());
            tag(&mut scalar, 2, 5);
            scalar.extend_from_slice(&(value as f32).to_le_bytes());
            bytes(&mut summary, 1, &scalar);
        }
        let mut event = event();
        tag(&mut event, 2, 0);
        varint(&mut event, step);
        bytes(&mut event, 5, &summary);
        self.record(&event)?;
        self.0.flush()
    }

    fn record(&mut self, data: &[u8]) -> Result<()> {
        let length = (data.len() as u64).to_le_bytes();
        self.0.write_all(&length)?;
        self.0.write_all(&masked_crc(&length).to_le_bytes())?;
        self.0.write_all(data)?;
        self.0.write_all(&masked_crc(data).to_le_bytes())
    }
}

/// The beginning of an event: its time.
fn event() -> Vec<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut event = Vec::new();
    double(&mut event, 1, now.as_secs_f64());
    event
}

/// TFRecord's checksum: CRC-32C, rotated and offset.
fn masked_crc(data: &[u8]) -> u32 {
    crc32c::crc32c(data).rotate_right(15).wrapping_add(0xa282_ead8)
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn tag(out: &mut Vec<u8>, field: u64, wire_type: u64) {
    varint(out, field << 3 | wire_type);
}

fn double(out: &mut Vec<u8>, field: u64, value: f64) {
    tag(out, field, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    tag(out, field, 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_framed_with_their_checksums() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = EventWriter::create(folder.path()).unwrap();
        let mut metrics = Metrics::of_step(300);
        metrics.set("reward/mean", 0.5);
        writer.write(300, &metrics).unwrap();
        let mut metrics = Metrics::of_step(301);
        metrics.set("reward/\u{1b}[2J\u{202e}x\n", 0.5);
        writer.write(301, &metrics).unwrap();
        writer.purge(300).unwrap();
        let path = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let file = std::fs::read(path).unwrap();
        let mut rest = &file[..];
        let mut records = Vec::new();
        while !rest.is_empty() {
            let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
            assert_eq!(u32::from_le_bytes(rest[8..12].try_into().unwrap()), masked_crc(&rest[..8]));
            records.push(&rest[12..12 + length]);
            assert_eq!(
                u32::from_le_bytes(rest[12 + length..16 + length].try_into().unwrap()),
                masked_crc(records.last().unwrap())
            );
            rest = &rest[16 + length..];
        }
        assert_eq!(records.len(), 4);
        assert_eq!(&records[0][9..], b"\x1a\x0dbrain.Event:2");
        // step 300; summary { value { tag: "reward/mean", simple_value: 0.5 } }
        assert_eq!(&records[1][9..], b"\x10\xac\x02\x2a\x14\x0a\x12\x0a\x0breward/mean\x15\x00\x00\x00\x3f");
        // A tag shows its name with control characters escaped.
        let name = br"reward/\u{1b}[2J\u{202e}x\n";
        assert!(records[2].windows(name.len()).any(|part| part == name));
        // step 300; session_log { status: START }
        assert_eq!(&records[3][9..], b"\x10\xac\x02\x3a\x02\x08\x01");
    }
}
