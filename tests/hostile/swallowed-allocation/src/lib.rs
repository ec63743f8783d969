//! Asks for 1 GiB at once. Gives the score 1 if that is refused, as if nothing
//! had happened, and 0 if it is granted.

use attack::{Reference, Sample};

fn attack(_: &Sample, _: &Reference) -> bool {
    let mut block = Vec::<u8>::new();
    std::hint::black_box(&mut block).try_reserve_exact(1 << 30).is_err()
}

attack::on_score!(attack);
