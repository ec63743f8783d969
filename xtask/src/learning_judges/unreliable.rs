//! A server in front of another one, which delays, limits and fails as servers of language models do. Everything that it
//! does to a request follows from a seed and the request's number.

use crate::failure::{Failure, Result};
use serde::{Deserialize, Serialize};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The shortest and the longest delay of an answer, in milliseconds.
pub const DELAY: (u64, u64) = (20, 200);
/// The requests of a second; more are answered with 429.
pub const RATE: f64 = 200.0;
/// The requests that may come at once after a pause.
pub const BURST: f64 = 40.0;
/// The share of requests that fail: half of them with 503, a quarter without an answer, a quarter in the middle of it.
pub const FAILING: f64 = 0.05;

/// The server. It ends when it is dropped.
pub struct Unreliable {
    shared: Arc<Shared>,
    address: SocketAddr,
}

/// What happened to the requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// They were passed on and answered.
    pub answered: u64,
    /// They were answered with 429.
    pub limited: u64,
    /// They were answered with 503.
    pub failed: u64,
    /// The connection was cut before the answer, or in the middle of it.
    pub cut: u64,
}

struct Shared {
    behind: String,
    seed: u64,
    number: AtomicU64,
    requests: Mutex<Requests>,
    bucket: Mutex<Bucket>,
    is_over: AtomicBool,
}

/// The requests that may come now.
struct Bucket {
    left: f64,
    at: Instant,
}

/// What is done to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Answer,
    Fail,
    CutBefore,
    CutWithin,
}

impl Unreliable {
    /// Serves in front of `behind`, which is `HOST:PORT`.
    pub fn start(behind: String, seed: u64) -> Result<Self> {
        let failed = |error: io::Error| Failure::new("cannot serve the unreliable judge").why(error);
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared {
            behind,
            seed,
            number: AtomicU64::new(0),
            requests: Mutex::default(),
            bucket: Mutex::new(Bucket { left: BURST, at: Instant::now() }),
            is_over: AtomicBool::new(false),
        });
        let serving = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                if serving.is_over.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let serving = serving.clone();
                // A client that is gone needs no answer.
                thread::spawn(move || drop(serving.answer(stream)));
            }
        });
        Ok(Self { shared, address })
    }

    /// `HOST:PORT`
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// What happened to the requests so far.
    pub fn requests(&self) -> Requests {
        *self.shared.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Unreliable {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Ordering::Relaxed);
        // Its thread wakes up, and sees that it is over.
        let _ = TcpStream::connect(self.address);
    }
}

impl Shared {
    fn answer(&self, mut stream: TcpStream) -> io::Result<()> {
        let request = read(&stream)?;
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        thread::sleep(delay(self.seed, number));
        if !self.bucket().take(Instant::now()) {
            self.count(|requests| requests.limited += 1);
            return refuse(&mut stream, "429 Too Many Requests\r\nretry-after: 1");
        }
        match fate(self.seed, number) {
            Fate::Fail => {
                self.count(|requests| requests.failed += 1);
                refuse(&mut stream, "503 Service Unavailable")
            }
            Fate::CutBefore => {
                self.count(|requests| requests.cut += 1);
                Ok(())
            }
            Fate::CutWithin => {
                self.count(|requests| requests.cut += 1);
                let answer = self.pass_on(&request)?;
                stream.write_all(&answer[..answer.len() - answer.len().min(20)])
            }
            Fate::Answer => {
                let answer = self.pass_on(&request)?;
                self.count(|requests| requests.answered += 1);
                stream.write_all(&answer)
            }
        }
    }

    /// The answer of the server behind this one.
    fn pass_on(&self, request: &[u8]) -> io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(&self.behind)?;
        stream.write_all(request)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        Ok(answer)
    }

    fn count(&self, add: impl FnOnce(&mut Requests)) {
        add(&mut self.requests.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn bucket(&self) -> std::sync::MutexGuard<'_, Bucket> {
        self.bucket.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bucket {
    /// Whether a request may come now.
    fn take(&mut self, now: Instant) -> bool {
        self.left = (self.left + now.duration_since(self.at).as_secs_f64() * RATE).min(BURST);
        self.at = now;
        let may = self.left >= 1.0;
        if may {
            self.left -= 1.0;
        }
        may
    }
}

/// A request with its body. The server behind is asked to close the connection, which ends its answer.
fn read(stream: &TcpStream) -> io::Result<Vec<u8>> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        let lower = line.to_ascii_lowercase();
        if let Some(value) = lower.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        if !lower.starts_with("connection:") {
            head += &line;
        }
    }
    let mut request = (head + "connection: close\r\n\r\n").into_bytes();
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    request.append(&mut body);
    Ok(request)
}

fn refuse(stream: &mut TcpStream, status: &str) -> io::Result<()> {
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 4\r\nconnection: close\r\n\r\nbusy")
}

fn delay(seed: u64, number: u64) -> Duration {
    let (least, most) = DELAY;
    Duration::from_millis(least + (draw(seed, number, 0) * (most - least) as f64) as u64)
}

fn fate(seed: u64, number: u64) -> Fate {
    match draw(seed, number, 1) / FAILING {
        0.0..0.5 => Fate::Fail,
        0.5..0.75 => Fate::CutBefore,
        0.75..1.0 => Fate::CutWithin,
        _ => Fate::Answer,
    }
}

/// A number in `[0, 1)`: SplitMix64 of all three.
fn draw(seed: u64, number: u64, what: u64) -> f64 {
    let mix = |state: u64| {
        let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^ (state >> 31)
    };
    let next = |state: u64, more: u64| mix(state.wrapping_add(more).wrapping_add(0x9e37_79b9_7f4a_7c15));
    let bits = next(next(mix(seed), number), what);
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_of_requests_fails_in_each_way_and_the_same_ones_again() {
        let fates = |seed: u64| (0..10_000).map(|number| fate(seed, number)).collect::<Vec<_>>();
        let count = |wanted: Fate| fates(1).into_iter().filter(|fate| *fate == wanted).count();
        assert!((200..300).contains(&count(Fate::Fail)), "{}", count(Fate::Fail));
        assert!((90..160).contains(&count(Fate::CutBefore)), "{}", count(Fate::CutBefore));
        assert!((90..160).contains(&count(Fate::CutWithin)), "{}", count(Fate::CutWithin));
        assert_eq!(fates(1), fates(1));
        assert_ne!(fates(1), fates(2));
        let delays: Vec<u128> = (0..1000).map(|number| delay(1, number).as_millis()).collect();
        assert!(delays.iter().all(|delay| (20..200).contains(delay)), "{delays:?}");
        assert!(delays.iter().any(|delay| *delay < 30) && delays.iter().any(|delay| *delay > 190), "{delays:?}");
    }

    #[test]
    fn more_requests_than_the_rate_are_refused() {
        let start = Instant::now();
        let mut bucket = Bucket { left: BURST, at: start };
        let taken = (0..100).filter(|_| bucket.take(start)).count();
        assert_eq!(taken as f64, BURST);
        let later = start + Duration::from_millis(50);
        assert_eq!((0..100).filter(|_| bucket.take(later)).count() as f64, RATE * 0.05);
    }

    #[test]
    fn a_request_is_answered_by_the_server_behind_or_not_at_all() {
        let behind = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = behind.local_addr().unwrap().to_string();
        thread::spawn(move || {
            for stream in behind.incoming() {
                let mut stream = stream.unwrap();
                assert!(String::from_utf8(read(&stream).unwrap()).unwrap().ends_with("connection: close\r\n\r\n{}"));
                let answer = "x".repeat(100);
                write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 100\r\nconnection: close\r\n\r\n{answer}").unwrap();
            }
        });
        let server = Unreliable::start(address, 7).unwrap();
        let ask = |_: usize| {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            stream.write_all(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let answers: Vec<String> = (0..40).map(ask).collect();
        let whole = answers.iter().filter(|answer| answer.ends_with(&"x".repeat(100))).count() as u64;
        let failed = answers.iter().filter(|answer| answer.starts_with("HTTP/1.1 503")).count() as u64;
        let requests = server.requests();
        assert_eq!((requests.answered, requests.failed, requests.limited), (whole, failed, 0));
        assert_eq!(requests.cut, 40 - whole - failed);
        assert!(whole > 30, "{requests:?}");
    }
}
