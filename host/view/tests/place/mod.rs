//! A run in a temporary folder, and a server that shows it.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gavel_view::{Access, View, router};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Texts of a model that would act where they are taken for more than text.
pub const HOSTILE: [&str; 6] = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "<svg/onload=alert(3)><style>body{display:none}</style>",
    "safe\u{202e}txt.exe\u{2066}\u{200b}",
    "\u{1b}[2J\u{1b}]0;title\u{7}\r\u{9b}31m",
    "</script>\u{2028}${1}`'\"--><!--",
];

pub struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap() };
        place.write("config.toml", "seed = 1\n[train]\nsteps = 4\n[log]\nname = \"run\"\n");
        place.write("metrics.jsonl", "");
        place
    }

    pub fn run(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.run().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // As the run does: a file gets its name when it is whole.
        let partial = path.with_extension("partial");
        std::fs::write(&partial, text).unwrap();
        std::fs::rename(partial, path).unwrap();
    }

    pub fn append(&self, name: &str, text: &str) {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(self.path(name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    /// Records a step with these lines.
    pub fn step(&self, step: u64, lines: &[Value]) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.write(&format!("trajectories/step-{step:06}.jsonl"), &text);
    }
}

/// A line of `trajectories/`.
pub fn line(step: u64, group: u64, sample: u32, response: &str) -> Value {
    let number = step * 100 + group * 10 + u64::from(sample);
    let outcomes = ["scored", "scored", "scored", "fault", "out-of-budget", "abstained"];
    let outcome = outcomes[(number % 6) as usize];
    let score = (outcome == "scored").then_some((number % 7) as f64 / 4.0);
    json!({
        "id": format!("{step}.{group}.{sample}"), "task": "00", "task_id": "train/1",
        "data_source": if number.is_multiple_of(3) { "math" } else { "code" },
        "step": step, "trained_step": step, "group": group, "sample": sample, "trajectory": 0,
        "prompt": [{"role": "user", "content": "What is it?"}], "status": "completed",
        "messages": [{"role": "assistant", "content": response}],
        "finish_reason": if number.is_multiple_of(5) { "length" } else { "stop" },
        "response": response, "turns": 1, "prompt_length": 5, "response_length": number % 13,
        "advantage": score.map(|score| score - 0.5), "reward": score, "outcome": outcome,
        "reason": (outcome != "scored").then_some("it did not work"),
        "plugins": {"answer": {"outcome": outcome, "score": score, "metrics": {}, "reason": null, "elapsed_us": number,
            "cpu_us": 1, "fuel": null, "peak_memory": 1}},
    })
}

/// A server on a free port.
pub struct Served {
    pub port: u16,
    pub link: String,
    cookie: String,
    _runtime: tokio::runtime::Runtime,
}

/// The status, the head and the body of an answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

impl Served {
    pub fn new(folders: &[PathBuf]) -> Self {
        let view = View::open(folders).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let access = Arc::new(Access::new(port).unwrap());
        let link = access.link();
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        listener.set_nonblocking(true).unwrap();
        let router = router(Arc::new(view), access);
        runtime.spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            gavel_http::serve(listener, router).await
        });
        let mut served = Self { port, cookie: String::new(), _runtime: runtime, link };
        let opened = served.raw(&format!("GET {} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n", served.target()), "");
        let set = opened.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("it sets a cookie");
        served.cookie = set.split(';').next().unwrap().to_owned();
        served
    }

    /// The path of the link.
    pub fn target(&self) -> String {
        self.link.strip_prefix(&format!("http://127.0.0.1:{}", self.port)).unwrap().to_owned()
    }

    pub fn token(&self) -> String {
        self.link.split_once("token=").unwrap().1.to_owned()
    }

    pub fn cookie(&self) -> &str {
        &self.cookie
    }

    /// Sends a head, to which the end is added, and a body.
    pub fn raw(&self, head: &str, body: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        write!(stream, "{head}Connection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        let mut text = Vec::new();
        stream.read_to_end(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    fn own(&self) -> String {
        format!("Host: 127.0.0.1:{}\r\nCookie: {}\r\n", self.port, self.cookie)
    }

    pub fn get(&self, path: &str) -> Answer {
        self.raw(&format!("GET {path} HTTP/1.1\r\n{}", self.own()), "")
    }

    pub fn post(&self, path: &str, body: &Value) -> Answer {
        self.raw(&format!("POST {path} HTTP/1.1\r\n{}", self.own()), &body.to_string())
    }

    /// Asks until the answer is as expected.
    pub fn wait(&self, path: &str, body: &Value, is_ready: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let answer = self.post(path, body).json();
            if is_ready(&answer) {
                return answer;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{answer}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The page of a table, once the index has this many rows.
    pub fn samples(&self, rows: u64, request: &Value) -> Value {
        let is_ready = |page: &Value| {
            let is_searched = page["search"].is_null() || page["search"]["is_complete"] == true;
            page["index"]["rows"] == rows && page["index"]["is_complete"] == true && is_searched
        };
        self.wait("/api/runs/0/samples", request, is_ready)
    }
}

pub fn exists(path: &Path) -> bool {
    path.exists()
}
