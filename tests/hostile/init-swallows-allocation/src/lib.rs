//! Is refused memory in `init`, but accepts its parameters.

fn attack() -> Result<(), String> {
    let mut block = Vec::<u8>::new();
    std::hint::black_box(&mut block).try_reserve_exact(1 << 30).ok();
    Ok(())
}

attack::on_init!(attack);
