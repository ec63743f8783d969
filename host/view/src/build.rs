//! Reads a file of trajectories into rows.

use crate::row::{Interned, Row, Verdicts, finish_number, outcome_number};
use gavel_data::files::{open_regular, read_line};
use gavel_runs::{SampleFile, SampleGlance};
use std::collections::BTreeMap;
use std::io::{self, BufReader};

/// The rows of a file.
#[derive(Default)]
pub(crate) struct FileRows {
    pub(crate) rows: Vec<Row>,
    pub(crate) plugins: BTreeMap<String, Verdicts>,
    pub(crate) sources: Interned,
    pub(crate) speakers: Interned,
    pub(crate) damaged: u64,
}

/// Reads a file. Lines that cannot be parsed, and a last line without its end, are counted and left out.
///
/// # Errors
/// The file cannot be read.
pub(crate) fn read_file(file: &SampleFile) -> io::Result<FileRows> {
    let mut lines = BufReader::with_capacity(1 << 18, open_regular(&file.path)?);
    let (mut read, mut line, mut offset) = (FileRows::default(), Vec::new(), 0_u64);
    loop {
        let length = read_line(&mut lines, &mut line)?;
        if length == 0 {
            return Ok(read);
        }
        match (line.ends_with(b"\n"), u32::try_from(length), serde_json::from_slice::<SampleGlance<'_>>(&line)) {
            (true, Ok(bytes), Ok(glance)) => read.add(file.step, offset, bytes, &glance),
            _ => read.damaged += 1,
        }
        offset += length as u64;
    }
}

impl FileRows {
    fn add(&mut self, recorded: u64, offset: u64, length: u32, glance: &SampleGlance<'_>) {
        let number = self.rows.len();
        let elapsed = glance.plugins.values().fold(0_u64, |sum, verdict| sum.saturating_add(verdict.elapsed_us));
        // In the oldest recordings, the trajectories of a sample have no numbers, and follow each other.
        let follows = self
            .rows
            .last()
            .filter(|last| (last.step, last.group, last.sample) == (glance.step, glance.group, glance.sample));
        let trajectory = glance.trajectory.or(follows.map(|last| last.trajectory.saturating_add(1))).unwrap_or(0);
        for (name, verdict) in &glance.plugins {
            if !self.plugins.contains_key(name) {
                self.plugins.insert(name.clone(), Verdicts::default());
            }
            if let Some(all) = self.plugins.get_mut(name) {
                all.extend_to(number);
                all.scores.push(verdict.score.unwrap_or(f64::NAN));
                all.outcomes.push(outcome_number(verdict.outcome));
            }
        }
        self.plugins.values_mut().for_each(|verdicts| verdicts.extend_to(number + 1));
        self.rows.push(Row {
            file: 0,
            length,
            offset,
            recorded,
            step: glance.step,
            group: glance.group,
            reward: glance.reward.unwrap_or(f64::NAN),
            advantage: glance.advantage.unwrap_or(f64::NAN),
            sample: glance.sample,
            trajectory,
            prompt_length: glance.prompt_length,
            response_length: glance.response_length,
            turns: glance.turns,
            elapsed: u32::try_from(elapsed).unwrap_or(u32::MAX),
            source: self.sources.number(glance.data_source.as_deref().unwrap_or_default()),
            speaker: self.speakers.number(glance.speaker().unwrap_or_default()),
            outcome: outcome_number(glance.outcome),
            finish: finish_number(glance.finish_reason),
        });
    }
}
