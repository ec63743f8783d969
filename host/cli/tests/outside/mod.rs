//! What plugins in Python and JavaScript ask outside the sandbox: servers, and programs.

use crate::project::{self, Project, lines, stderr};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Barrier};
use std::time::Duration;

/// The imports of such a plugin, for its `plugin.toml`.
pub const IMPORTS: &str = "imports = [\"exec\", \"http\"]\n";

/// What such plugins are granted, for the command line.
pub fn granted(plugin: &str, http: &[String]) -> [String; 2] {
    ["--grant".into(), format!("{plugin}={{ exec = [\"python\"], http = {http:?} }}")]
}

/// The program that they run, for the command line.
pub fn program() -> [String; 2] {
    ["--exec".into(), format!("python={}", project::built("plugins/python.wasm").display())]
}

/// Serves until the test ends, at the port that it gives.
fn serve() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let pair = Arc::new(Barrier::new(2));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let pair = pair.clone();
            // A client may close the connection before its answer is complete.
            std::thread::spawn(move || drop(answer(stream.unwrap(), &pair)));
        }
    });
    port
}

/// Answers one request: `/to/URL` with a redirect, `/N` with N bytes, `/half` with half of the announced bytes, `/pair`
/// once two clients ask for it, `/silent` never, and `/echo` with the request.
fn answer(mut stream: TcpStream, pair: &Barrier) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let head: Vec<String> =
        reader.by_ref().lines().map(Result::unwrap_or_default).take_while(|line| !line.is_empty()).collect();
    let value = |name: &str| head.iter().find_map(|line| line.to_lowercase().strip_prefix(name).map(str::to_owned));
    let length = value("content-length: ").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let mut words = head[0].split(' ');
    let (method, path) = (words.next().unwrap(), words.next().unwrap());
    let mut reply = |status: &str, announced: usize, body: &[u8]| {
        write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {announced}\r\nconnection: close\r\n\r\n")?;
        stream.write_all(body)
    };
    if let Some(url) = path.strip_prefix("/to/") {
        return reply(&format!("302 Found\r\nlocation: {url}"), 0, b"");
    }
    match path {
        "/silent" => {
            std::thread::sleep(Duration::from_secs(600));
            Ok(())
        }
        "/pair" => {
            pair.wait();
            reply("200 OK", 4, b"pair")
        }
        "/half" => reply("200 OK", 10, b"hello"),
        "/busy" => reply("503 Service Unavailable", 4, b"busy"),
        "/echo" => {
            let head = format!("{method} {} {} ", value("content-type: ").unwrap(), value("x-a: ").unwrap());
            let said = [head.as_bytes(), &body].concat();
            reply("200 OK", said.len(), &said)
        }
        _ => match path[1..].parse() {
            Ok(size) => reply("200 OK", size, &bytes(size)),
            Err(_) => reply("404 Not Found", 4, b"none"),
        },
    }
}

/// Bytes that are not UTF-8.
fn bytes(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 256) as u8).collect()
}

/// Asks servers and runs programs through both plugins, which have [`IMPORTS`].
pub fn servers_and_programs_answer(project: &Project, python: &str, js: &str) {
    let (port, other) = (serve(), serve());
    let url = |path: &str| format!("http://127.0.0.1:{port}/{path}");
    let elsewhere = format!("http://127.0.0.1:{other}/5");
    let sum = |size: usize| bytes(size).into_iter().map(u64::from).sum::<u64>();
    let big = 3 << 20;
    let refused = format!("the request to http://127.0.0.1:{other} was refused: it is not granted");
    // The request, the outcomes in Python and in JavaScript, and what both report.
    let cases = [
        ("get", url("5"), ["scored"; 2], "200 5 10 \0\u{1}\u{2}\u{3}\u{4}".to_owned()),
        ("get", url("to//5"), ["scored"; 2], "200 5 10 ".into()),
        ("get", url(&format!("to/{elsewhere}")), ["fault", "unavailable"], refused.clone()),
        ("get", url("to/to"), ["fault"; 2], "/to/to redirects more than 10 times".into()),
        ("get", url("none"), ["scored"; 2], "404 4 432 none".into()),
        ("get", url("256"), ["scored"; 2], format!("200 256 {} ", sum(256))),
        ("get", url(&big.to_string()), ["scored"; 2], format!("200 {big} {} ", sum(big))),
        ("get", url("half"), ["unavailable"; 2], String::new()),
        ("get", "http://127.0.0.1:1/".into(), ["unavailable"; 2], "http://127.0.0.1:1 did not answer".into()),
        ("impatient", url("silent"), ["unavailable"; 2], "answer".into()),
        ("post", url("echo"), ["scored"; 2], "POST application/json 1 ".into()),
        ("post", url("busy"), ["unavailable"; 2], "/busy answered 503".into()),
        ("both", url("pair"), ["scored"; 2], "200 4 428 pair 200 4 428 pair".into()),
        ("run", "print(int(input()) * 6)".into(), ["scored"; 2], "true 42 true 42".into()),
        ("run", "while True: pass".into(), ["scored"; 2], "false false".into()),
    ];
    let row = |act: &str, response: &str| json!({"prompt": "?", "do": act, "response": response}).to_string() + "\n";
    project.write("outside.jsonl", &cases.iter().map(|(act, response, ..)| row(act, response)).collect::<String>());
    let http = [url(""), "http://127.0.0.1:1".into()].map(|url| url.trim_end_matches('/').to_owned());
    let args = |data: &str, plugin: &str| {
        let path = format!("{plugin}/build/{plugin}.wasm");
        let limits = ["--cpu", "60s", "--timeout", "300s"];
        let args = ["score", "--data", data, "--out", "outside.out.jsonl", "--plugin", &path];
        [&args[..], &limits].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let ask = |data: &str, plugin: &str| {
        let args = [&args(data, plugin)[..], &program(), &granted(plugin, &http)].concat();
        project.succeed(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let said: Vec<Value> =
            lines(&project.path("outside.out.jsonl")).into_iter().map(|row| row["plugins"][plugin].clone()).collect();
        said
    };
    for (at, plugin) in [python, js].into_iter().enumerate() {
        for ((act, asked, outcomes, words), said) in cases.iter().zip(ask("outside.jsonl", plugin)) {
            let reason = said["reason"].as_str().unwrap();
            assert!(said["outcome"] == outcomes[at] && reason.contains(words), "{plugin} {act} {asked}: {said}");
        }
    }

    // Python's own way to ask.
    let opened = [
        (url("to//4"), "scored", "200 4 \0\u{1}\u{2}\u{3}"),
        (url("busy"), "unavailable", "HTTP Error 503: Service Unavailable"),
        (url("none"), "fault", "urllib.error.HTTPError: HTTP Error 404: Not Found (main.py, line "),
        (elsewhere, "fault", &refused),
        ("http://127.0.0.1:1/".into(), "unavailable", "http://127.0.0.1:1 did not answer: connection refused"),
    ];
    project.write("opened.jsonl", &opened.iter().map(|(url, ..)| row("opened", url)).collect::<String>());
    for ((url, outcome, words), said) in opened.iter().zip(ask("opened.jsonl", python)) {
        assert!(said["outcome"] == *outcome && said["reason"].as_str().unwrap().contains(words), "{url}: {said}");
    }

    for plugin in [python, js] {
        let args = args("outside.jsonl", plugin);
        let output = project.run(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let said = stderr(&output);
        assert!(
            output.status.code() == Some(2) && said.contains("which is not granted to it\nhint: add grant = {"),
            "{said}"
        );
    }
}
