//! The room that an episode has for its sessions.

use crate::engine::instance_slots::SessionRoom;

/// The room for the instances that an episode may keep. `agent/session_rooms.rs` waits for it.
pub struct SessionRooms {
    _rooms: Vec<SessionRoom>,
}

impl SessionRooms {
    /// One episode's rooms, one for each of its plugins that keep their instances.
    pub(crate) fn of(rooms: Vec<SessionRoom>) -> Self {
        Self { _rooms: rooms }
    }
}
