//! Tries everything that a plugin may try without a grant, and gives the
//! results in the note, as JSON.

use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use serde_json::{Map, Value, json};
use std::io;
use std::time::{Duration, Instant, SystemTime};

struct Probe {
    params: Params,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct Params {
    /// Files to read.
    read: Vec<String>,
    /// Files to write to.
    write: Vec<String>,
    /// How long to sleep, in milliseconds.
    sleep: u64,
    /// Whether to fail, with the environment in the message.
    fail: bool,
}

impl Reward for Probe {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn score(&self, _: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        let env: Map<String, Value> = std::env::vars().map(|(name, value)| (name, value.into())).collect();
        if self.params.fail {
            return Err(Failure::internal(Value::Object(env).to_string()));
        }
        let (wall, monotonic) = (SystemTime::now(), Instant::now());
        std::thread::sleep(Duration::from_millis(self.params.sleep));
        let slept = json!({
            "wall": wall.elapsed().map_or(-1.0, |elapsed| elapsed.as_secs_f64()),
            "monotonic": monotonic.elapsed().as_secs_f64(),
        });
        let seen = json!({
            "read": each(&self.params.read, |path| std::fs::read_to_string(path)),
            "write": each(&self.params.write, |path| std::fs::write(path, "written").map(|()| "written".into())),
            "args": std::env::args().collect::<Vec<_>>(),
            "env": env,
            "now": wall.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |now| now.as_secs()),
            "slept": slept,
            "random": wasip2::random::random::get_random_bytes(80),
            "insecure": wasip2::random::insecure::get_insecure_random_bytes(80),
            "stdin": io::read_to_string(io::stdin()).unwrap_or_else(|error| error.to_string()),
            "socket": socket(),
        });
        Ok(Score::new(1.0).note(seen.to_string()).into())
    }
}

gavel_sdk::export_reward!(Probe);

/// The result of `attempt` for each path: a text, or the kind of error.
fn each(paths: &[String], attempt: impl Fn(&str) -> io::Result<String>) -> Vec<Value> {
    let told = |path: &String| match attempt(path) {
        Ok(text) => json!({ "ok": text }),
        Err(error) => json!({ "error": format!("{:?}", error.kind()) }),
    };
    paths.iter().map(told).collect()
}

/// Whether any network access works: a connection, or the address of a name.
fn socket() -> Value {
    use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
    json!({
        "tcp": TcpStream::connect("127.0.0.1:80").map(|_| ()).map_err(|error| error.to_string()).err(),
        "udp": UdpSocket::bind("127.0.0.1:0").map(|_| ()).map_err(|error| error.to_string()).err(),
        "name": ("localhost", 80).to_socket_addrs().map(|_| ()).map_err(|error| error.to_string()).err(),
    })
}
