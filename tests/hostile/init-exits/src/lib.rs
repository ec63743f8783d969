//! Ends its process in `init`.

fn attack() -> Result<(), String> {
    std::process::exit(0)
}

attack::on_init!(attack);
