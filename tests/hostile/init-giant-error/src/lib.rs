//! Refuses its parameters with a text of 1 MiB.

fn attack() -> Result<(), String> {
    Err(format!("not these: {}", "é".repeat(1 << 19)))
}

attack::on_init!(attack);
