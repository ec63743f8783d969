//! A program that a plugin runs: its first argument names what it does.

use std::io::{Write, copy, read_to_string, stdin, stdout};
use std::process::exit;

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let (job, size) = args.get(1).and_then(|job| job.split_once('-')).unzip();
    match job.or(args.get(1).map(String::as_str)) {
        Some("echo") => print!("{:?} {}", args, read_to_string(stdin()).unwrap_or_default()),
        Some("exit") => exit(7),
        Some("loop") => while std::hint::black_box(true) {},
        Some("bomb") => {
            let mut all: Vec<Vec<u8>> = Vec::new();
            loop {
                all.push(vec![1; 1 << 20]);
            }
        }
        Some("panic") => panic!("the child panics"),
        Some("flood") => loop {
            let _ = stdout().write_all(&[b'x'; 4096]);
        },
        Some("reach") => {
            let reached = [
                std::fs::read("/etc/passwd").is_ok(),
                std::fs::write("out", "x").is_ok(),
                std::env::vars().next().is_some(),
                std::net::TcpStream::connect("127.0.0.1:80").is_ok(),
            ];
            print!("{reached:?}");
        }
        Some("chance") => {
            // WASI's random numbers seed a hash map.
            let state = std::collections::hash_map::RandomState::new();
            print!("{}", std::hash::BuildHasher::hash_one(&state, 1));
        }
        // Copies its input.
        Some("copy") => drop(copy(&mut stdin(), &mut stdout())),
        // Writes a number of bytes in one write each, as a program that expects complete writes.
        Some("once") => {
            let bytes = vec![b'x'; size.and_then(|size| size.parse().ok()).unwrap_or_default()];
            let stream = wasip2::cli::stdout::get_stdout();
            let most = stream.check_write().unwrap_or_default().min(bytes.len() as u64) as usize;
            let _ = stream.write(&bytes[..most]);
        }
        other => eprint!("no job {other:?}"),
    }
}
