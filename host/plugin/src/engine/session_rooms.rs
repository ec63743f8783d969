//! The room that an episode has for its sessions.

use crate::engine::instance_slots::SessionRoom;

/// The room for the instances that an episode may keep.
pub struct SessionRooms {
    _rooms: Vec<SessionRoom>,
}

impl SessionRooms {
    /// All of these.
    pub(crate) fn of(rooms: Vec<SessionRoom>) -> Self {
        Self { _rooms: rooms }
    }
}
