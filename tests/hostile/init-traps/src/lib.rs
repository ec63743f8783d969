//! Panics in `init`.

fn attack() -> Result<(), String> {
    panic!("there is no beginning")
}

attack::on_init!(attack);
