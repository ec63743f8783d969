//! How the room for keys and values grows with a response. The prediction of a
//! run's memory uses the same rule.

/// Room is added in steps of this many tokens.
pub const CHUNK: usize = 64;
/// For so many places of rows there is a spare place, in which rows that grow can move.
const SPARE: usize = 8;

/// The room, in tokens, that a row of `tokens` tokens needs.
pub fn room_for(tokens: usize) -> usize {
    tokens.next_multiple_of(CHUNK)
}

/// The next room, in tokens, of rows that have `room` and need it for `tokens`.
/// It grows by at least a quarter, so that a long response is not copied at
/// every chunk.
pub fn grown_room(room: usize, tokens: usize) -> usize {
    room_for(tokens).max(room_for(room * 5 / 4))
}

/// The places of rows that have `places`, with spare ones.
pub fn with_spare(places: usize) -> usize {
    places + places / SPARE / CHUNK * CHUNK
}

/// The final room, in tokens, of a row whose prompt has `prompt` tokens and
/// which ends with `tokens` tokens, and its share of the spare places where there are many rows.
pub fn final_room(prompt: usize, tokens: usize) -> usize {
    let mut room = room_for(prompt).max(CHUNK);
    while room < tokens {
        room = grown_room(room, room + 1);
    }
    room + room / SPARE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_grows_by_a_quarter_in_whole_chunks() {
        assert_eq!([0, 1, 64, 65].map(room_for), [0, 64, 64, 128]);
        assert_eq!(
            (grown_room(0, 1), grown_room(64, 65), grown_room(320, 321), grown_room(64, 700)),
            (64, 128, 448, 704)
        );
        // 64, 128, 192, 256, 320, 448, and an eighth of each
        assert_eq!([1, 64, 65, 129, 193, 321].map(|tokens| final_room(1, tokens)), [72, 72, 144, 216, 288, 504]);
        assert_eq!(final_room(100, 100), 144);
    }

    #[test]
    fn many_rows_have_no_more_than_their_final_rooms() {
        for rows in [1, 3, 8, 64, 1000] {
            for tokens in [1, 64, 65, 500, 4000] {
                let rooms: usize = (0..rows).map(|_| final_room(1, tokens) * 8 / 9).sum();
                assert!(with_spare(rooms) <= rows * final_room(1, tokens), "{rows} rows of {tokens}");
            }
        }
    }
}
