//! Never comes back from `init`.

fn attack() -> Result<(), String> {
    loop {
        std::hint::black_box(());
    }
}

attack::on_init!(attack);
