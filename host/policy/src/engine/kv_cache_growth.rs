//! How the room for keys and values grows with a response. The prediction of a
//! run's memory uses the same rule.

/// Room is added in steps of this many tokens.
pub const CHUNK: usize = 64;
/// For so many places of rows there is a spare place, for rows that grow or come.
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

/// The most room, in tokens, that a row of `tokens` tokens gets: a quarter more than it needs.
pub fn most_room(tokens: usize) -> usize {
    room_for(room_for(tokens) * 5 / 4)
}

/// The most room, in tokens, for a row that ends with `tokens` tokens, and its share of the spare places where there are
/// many rows.
pub fn final_room(tokens: usize) -> usize {
    let room = most_room(tokens.max(1));
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
        assert_eq!([1, 64, 65, 256, 257].map(most_room), [128, 128, 192, 320, 448]);
        assert_eq!([0, 1, 65, 257].map(final_room), [144, 144, 216, 504]);
    }

    #[test]
    fn rows_have_no_more_than_their_final_rooms() {
        for rows in [1, 3, 8, 64, 1000] {
            for tokens in [1, 64, 65, 500, 4000] {
                assert!(with_spare(rows * most_room(tokens)) <= rows * final_room(tokens), "{rows} rows of {tokens}");
                // However it grew.
                let mut room = 0;
                (1..=tokens).for_each(|now| room = if now > room { grown_room(room, now) } else { room });
                assert!(room <= most_room(tokens), "{room} for {tokens}");
            }
        }
    }
}
