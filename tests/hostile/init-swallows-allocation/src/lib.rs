//! Is refused memory in `init`, and accepts its parameters nevertheless.

fn attack() -> Result<(), String> {
    let mut block = Vec::<u8>::new();
    std::hint::black_box(&mut block).try_reserve_exact(1 << 30).ok();
    Ok(())
}

attack::on_init!(attack);
