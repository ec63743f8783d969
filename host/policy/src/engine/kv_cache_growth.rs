//! How the room for keys and values grows with a response. The prediction of a
//! run's memory uses the same rule.

/// Room is added in steps of this many tokens.
pub const CHUNK: usize = 64;

/// The room, in tokens, that a row of `tokens` tokens needs.
pub fn room_for(tokens: usize) -> usize {
    tokens.next_multiple_of(CHUNK)
}

/// The next room, in tokens, of rows that have `room` and need it for `tokens`.
/// It grows by at least half, so that a long response is not copied at every
/// chunk.
pub fn grown_room(room: usize, tokens: usize) -> usize {
    room_for(tokens).max(room_for(room * 3 / 2))
}

/// The final room, in tokens, of a row whose prompt has `prompt` tokens and
/// which ends with `tokens` tokens.
pub fn final_room(prompt: usize, tokens: usize) -> usize {
    let mut room = room_for(prompt).max(CHUNK);
    while room < tokens {
        room = grown_room(room, room + 1);
    }
    room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_grows_by_half_in_whole_chunks() {
        assert_eq!([0, 1, 64, 65].map(room_for), [0, 64, 64, 128]);
        assert_eq!(
            (grown_room(0, 1), grown_room(64, 65), grown_room(192, 193), grown_room(64, 700)),
            (64, 128, 320, 704)
        );
        // 64, 128, 192, 320, 512
        assert_eq!([1, 64, 65, 129, 193, 321].map(|tokens| final_room(1, tokens)), [64, 64, 128, 192, 320, 512]);
        assert_eq!(final_room(100, 100), 128);
    }
}
