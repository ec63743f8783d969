//! Takes memory in `init` until it is refused.

fn attack() -> Result<(), String> {
    let mut blocks = Vec::new();
    loop {
        blocks.push(std::hint::black_box(vec![1_u8; 1 << 20]));
    }
}

attack::on_init!(attack);
