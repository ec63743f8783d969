//! What a rank knows of its share of the groups.

use crate::error::Result;
use crate::ranks::Ranks;
use gavel_config::{RanksTable, Share};

/// How many groups became whole on all ranks together.
const WHOLE: &str = "whole";
/// Added to it by a rank that must stop, so that all ranks exchange what they know.
const STOPPING: i64 = 1 << 40;
/// How many groups ranks took to draw, if they share by load.
pub(super) const TAKEN: &str = "taken";

/// What a rank knows of its share of the groups.
pub(crate) struct GroupShare {
    pub(super) ranks: Ranks,
    share: Share,
    /// The most groups that this rank draws at once, with shares by load.
    pub(super) most_at_once: usize,
    /// The first draw that ranks take by load.
    pub(super) first: u64,
    /// The draw that this rank took before it was started.
    pub(super) ticket: Option<u64>,
    /// The draws whose groups are whole here, and that the others do not know yet.
    pub(super) ended: Vec<u64>,
    /// How many groups all ranks know to be whole since this process began.
    pub(super) known: i64,
    /// Whether any rank may have responses under way.
    pub(super) is_drawing: bool,
    /// Why this rank must stop, which the others do not know yet.
    pub(super) stop: Option<String>,
}

impl GroupShare {
    /// The share of a rank in a run that may have `room` groups under way, and whose engine decodes `at_once` of them.
    pub(crate) fn new(ranks: Ranks, table: &RanksTable, room: usize, at_once: usize) -> Self {
        let even = room.div_ceil(ranks.drawing()).min(at_once).max(1);
        let most_at_once = table.groups_at_once.unwrap_or(even);
        Self {
            ranks,
            share: table.share,
            most_at_once,
            first: 0,
            ticket: None,
            ended: Vec::new(),
            known: 0,
            is_drawing: false,
            stop: None,
        }
    }

    /// Whether this rank draws the group, without asking the others.
    pub(super) fn is_dealt(&self, draw: u64) -> bool {
        self.ranks.is_dealt(draw)
    }

    /// Whether this rank draws groups at all.
    pub(super) fn draws(&self) -> bool {
        self.ranks.draws(self.ranks.rank())
    }

    pub(super) fn is_by_load(&self) -> bool {
        self.ranks.are_several() && self.share == Share::Load
    }

    /// Notes that ranks take the draws from `draw` on by load.
    pub(super) fn begin(&mut self, draw: u64) {
        self.first = draw;
    }

    /// Stops all ranks when they next exchange what they know, which is now.
    pub(super) async fn stop(&mut self, why: String) -> Result<()> {
        if self.stop.is_none() {
            self.stop = Some(why);
            self.ranks.count(WHOLE, STOPPING).await?;
        }
        Ok(())
    }

    /// Tells the other ranks that one more group is whole, of which they will learn.
    pub(super) async fn end(&mut self, draw: u64) -> Result<()> {
        self.ended.push(draw);
        self.ranks.count(WHOLE, 1).await?;
        Ok(())
    }
}

/// Waits until `wanted` more groups are whole on all ranks together.
pub(super) async fn until_whole(ranks: Ranks, known: i64, wanted: usize) -> Result<()> {
    ranks.until_counted(WHOLE, known + wanted as i64).await
}
