//! The requests of a plugin with a grant for a server, against real servers.

use crate::common::{Sampled, guest, sample, sandbox};
use gavel_data::{Budget, Outcome};
use gavel_endpoint::{Limiter, LimiterTable};
use gavel_plugin::{Grants, HttpServers, Limits, LoadError, Plugin, PluginSpec, Sandbox, Tape};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A server that counts the requests that reach it.
struct Server {
    port: u16,
    asked: Arc<AtomicUsize>,
}

impl Server {
    /// Answers `/ok` with `hello`, `/N` with N bytes, and `/half/N` with N of the
    /// 2 N bytes that it announces; redirects `/to/URL` to the URL, and does not
    /// answer `/silent`.
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                count.fetch_add(1, Ordering::SeqCst);
                let path = path(&stream);
                let half = path.strip_prefix("/half/").map(|size| size.parse::<usize>().unwrap());
                if let Some(size) = half.or(path[1..].parse().ok()) {
                    let announced = if half.is_some() { 2 * size } else { size };
                    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {announced}\r\n\r\n").unwrap();
                    // The client may have gone.
                    let _ = stream.write_all(&long(size));
                    continue;
                }
                match path.strip_prefix("/to/") {
                    Some(url) => write!(stream, "HTTP/1.1 302 Found\r\nlocation: {url}\r\ncontent-length: 0\r\n\r\n"),
                    None if path == "/silent" => {
                        silent.push(stream);
                        continue;
                    }
                    None => write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"),
                }
                .unwrap();
            }
        });
        Self { port, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn long(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8).collect()
}

/// The path of the request that comes in.
fn path(stream: &TcpStream) -> String {
    let head: Vec<String> =
        BufReader::new(stream).lines().map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
    head[0].split(' ').nth(1).unwrap().to_owned()
}

async fn load(sandbox: &Sandbox, params: Value, http: &[String]) -> Result<Plugin, LoadError> {
    load_with(sandbox, params, http, Duration::from_secs(60)).await
}

async fn load_with(sandbox: &Sandbox, params: Value, http: &[String], deadline: Duration) -> Result<Plugin, LoadError> {
    let limits = Limits { deadline, cpu: Duration::from_secs(60), ..Limits::default() };
    let grants = Grants { http: http.to_vec(), ..Grants::default() };
    let params = serde_json::from_value(params).unwrap();
    Plugin::load(sandbox, PluginSpec { params, limits, grants, ..PluginSpec::new("fetch", guest("fetch")) }).await
}

/// What `fetch` gets for each URL.
async fn fetch(urls: &[String], http: &[String]) -> Vec<Value> {
    let sandbox = sandbox();
    let plugin = load(&sandbox, json!({ "urls": urls }), http).await.unwrap();
    plugin.score(&sample(), 1).await.note().as_array().unwrap().clone()
}

#[tokio::test]
async fn without_a_grant_it_does_not_load_and_the_hint_is_the_line_to_add() {
    let sandbox = sandbox();
    let error = load(&sandbox, json!({"urls": []}), &[]).await.err().unwrap();
    assert!(matches!(&error, LoadError::NotGranted { import, .. } if import.starts_with("wasi:http/")), "{error}");
    let text = error.to_string();
    assert!(text.contains(r#"hint: add grant = { http = ["https://HOST"] } to its [[reward]] table"#), "{text}");
}

#[tokio::test]
async fn a_granted_server_answers_and_its_other_ports_do_not() {
    let (granted, other) = (Server::start(), Server::start());
    let seen = fetch(&[granted.url("/ok"), other.url("/ok")], &[granted.url("")]).await;
    assert_eq!(seen[0], json!({"status": 200, "body": "hello"}));
    assert!(seen[1]["error"].as_str().unwrap().contains("HttpRequestDenied"), "{seen:?}");
    assert_eq!((granted.asked(), other.asked()), (1, 0));
}

#[tokio::test]
async fn a_redirect_is_checked_like_any_request() {
    let (granted, other) = (Server::start(), Server::start());
    let there = granted.url(&format!("/to/{}", granted.url("/ok")));
    let elsewhere = granted.url(&format!("/to/{}", other.url("/ok")));
    let seen = fetch(&[there, elsewhere], &[granted.url("")]).await;
    assert_eq!(seen[0]["body"], "hello");
    assert!(seen[1]["error"].as_str().unwrap().contains("HttpRequestDenied"), "{seen:?}");
    assert_eq!((granted.asked(), other.asked()), (3, 0));
}

#[tokio::test]
async fn what_lies_inside_is_refused_however_it_is_written() {
    let server = Server::start();
    let port = server.port;
    let urls = [
        "http://169.254.169.254/latest/meta-data/".into(),
        format!("http://[::ffff:169.254.169.254]:{port}/"),
        format!("http://localhost:{port}/ok"),
        format!("http://127.0.0.2:{port}/ok"),
        format!("http://user@127.0.0.1:{port}/ok"),
        format!("http://2130706433:{port}/ok"),
        format!("https://127.0.0.1:{port}/ok"),
    ];
    let seen = fetch(&urls, &["http://*.example.com".into(), server.url("")]).await;
    for (url, answer) in urls.iter().zip(&seen) {
        let error = answer["error"].as_str().unwrap_or_else(|| panic!("{url}: {answer}"));
        assert!(error.contains("HttpRequestDenied") || error.contains("HttpRequestUriInvalid"), "{url}: {error}");
    }
    assert_eq!(server.asked(), 0);
}

#[tokio::test]
async fn a_body_arrives_whole_or_is_an_error() {
    let (server, sandbox) = (Server::start(), sandbox());
    let sizes: Vec<usize> = (0..=22).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]).collect();
    let urls: Vec<String> = sizes.iter().map(|size| server.url(&format!("/{size}"))).collect();
    let plugin = load(&sandbox, json!({ "urls": urls, "measure": true }), &[server.url("")]).await.unwrap();
    let seen = plugin.score(&sample(), 1).await.note();
    for (size, seen) in sizes.into_iter().zip(seen.as_array().unwrap()) {
        let sum: u64 = long(size).into_iter().map(u64::from).sum();
        assert_eq!(seen["body"], json!([size, sum]));
    }
    let halves: Vec<String> = [1, 65_536, 1 << 20].iter().map(|size| server.url(&format!("/half/{size}"))).collect();
    for half in fetch(&halves, &[server.url("")]).await {
        assert!(half["error"].is_string(), "{half}");
    }
}

#[tokio::test]
async fn localhost_is_asked_where_it_is_granted() {
    let server = Server::start();
    let localhost = format!("http://localhost:{}", server.port);
    assert_eq!(fetch(&[format!("{localhost}/ok")], &[localhost]).await[0]["body"], "hello");
}

#[tokio::test]
async fn a_refusal_is_told_in_the_outcome() {
    let server = Server::start();
    let sandbox = sandbox();
    let params = json!({"urls": ["http://169.254.169.254/latest/meta-data/iam?token=abc"], "must": true});
    let plugin = load(&sandbox, params, &[server.url("")]).await.unwrap();
    let outcome = plugin.score(&sample(), 1).await.outcome;
    let Outcome::Unavailable(what) = outcome else { panic!("{outcome:?}") };
    assert!(what.ends_with("; the request to http://169.254.169.254:80 was refused: it is not granted"), "{what}");
}

#[tokio::test]
async fn a_silent_server_is_given_up_at_the_guests_time_out_or_at_the_deadline() {
    let server = Server::start();
    let sandbox = sandbox();
    let urls = [server.url("/silent")];

    // The clock is virtual, but a timer beside a request runs in real time.
    let plugin = load(&sandbox, json!({"urls": urls, "patience": 300}), &[server.url("")]).await.unwrap();
    let start = Instant::now();
    assert_eq!(plugin.score(&sample(), 1).await.note(), json!([{"error": "no answer in time"}]));
    assert!(start.elapsed() >= Duration::from_millis(300));

    let deadline = Duration::from_secs(2);
    let plugin = load_with(&sandbox, json!({"urls": urls}), &[server.url("")], deadline).await.unwrap();
    let start = Instant::now();
    let outcome = plugin.score(&sample(), 1).await.outcome;
    assert!(matches!(outcome, Outcome::OutOfBudget { which: Budget::Deadline, .. }), "{outcome:?}");
    assert!(start.elapsed() >= deadline);
}

#[tokio::test]
async fn answers_come_in_time_beside_a_timer() {
    let server = Server::start();
    let sandbox = sandbox();
    let params = json!({"urls": [server.url("/ok")], "patience": 30_000});
    let plugin = load(&sandbox, params, &[server.url("")]).await.unwrap();
    assert_eq!(plugin.score(&sample(), 1).await.note()[0]["body"], "hello");
}

#[tokio::test]
async fn what_servers_answered_is_on_the_tape_and_nobody_is_asked_again() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let urls = [server.url("/ok"), server.url(&format!("/to/{}", server.url("/ok"))), "http://127.0.0.1:1/".to_owned()];
    let granted = [server.url(""), "http://127.0.0.1:1".to_owned()];
    let run = async |tape: Tape, urls: &[String]| {
        let sandbox = sandbox();
        sandbox.use_tape(tape);
        let plugin = load(&sandbox, json!({ "urls": urls }), &granted).await.unwrap();
        plugin.score(&sample(), 1).await.outcome
    };
    let recorded = run(Tape::record(folder.path().into()), &urls).await;
    assert!(
        matches!(&recorded, Outcome::Scored(score) if score.note.as_ref().unwrap().contains("hello")),
        "{recorded:?}"
    );
    let asked = server.asked();
    assert_eq!(asked, 3);
    assert_eq!(run(Tape::replay(folder.path()).unwrap(), &urls).await, recorded);
    assert_eq!(server.asked(), asked);
    let other = [server.url("/other")];
    let outcome = run(Tape::replay(folder.path()).unwrap(), &other).await;
    assert!(
        matches!(&outcome, Outcome::Unavailable(what) if what.contains("/other") && what.contains("not recorded")),
        "{outcome:?}"
    );
    assert_eq!(server.asked(), asked);
}

async fn load_granted(sandbox: &Sandbox, urls: &[String], grants: Grants) -> Result<Plugin, LoadError> {
    let limits = Limits { deadline: Duration::from_secs(60), ..Limits::default() };
    let params = serde_json::from_value(json!({ "urls": urls })).unwrap();
    Plugin::load(sandbox, PluginSpec { params, limits, grants, ..PluginSpec::new("fetch", guest("fetch")) }).await
}

#[tokio::test]
async fn requests_wait_for_the_turns_of_a_limiter() {
    let (sandbox, server) = (sandbox(), Server::start());
    let limited = |name: &str| Grants { http: vec![server.url("")], limit: Some(name.into()), ..Grants::default() };
    let error = load_granted(&sandbox, &[], limited("slow")).await.err().unwrap().to_string();
    assert!(error.contains("grant.limit: there is no limiter `slow` (known: none)"), "{error}");

    let table =
        LimiterTable { requests_per_second: Some(20.0), concurrency: NonZeroUsize::new(1), ..Default::default() };
    sandbox.add_limiter("slow", Limiter::open(&table).unwrap());
    let plugin = load_granted(&sandbox, &vec![server.url("/ok"); 5], limited("slow")).await.unwrap();
    let start = Instant::now();
    let seen = plugin.score(&sample(), 1).await;
    assert_eq!(*seen.note().as_array().unwrap(), vec![json!({"status": 200, "body": "hello"}); 5]);
    assert!(start.elapsed() >= Duration::from_millis(150), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_server_that_is_gone_is_answered_for_by_another() {
    let (sandbox, server) = (sandbox(), Server::start());
    // Nobody listens there.
    let gone = "http://127.0.0.1:1/ok".to_owned();
    let http = vec![gone.trim_end_matches("/ok").to_owned(), server.url("")];
    let servers = HttpServers { urls: vec![gone.clone(), server.url("/ok")], on_endpoint_down: Default::default() };
    let grants = Grants { http, servers: Some(servers), ..Grants::default() };
    let plugin = load_granted(&sandbox, &vec![gone; 6], grants).await.unwrap();
    let seen = plugin.score(&sample(), 1).await.note();
    let answered = seen.as_array().unwrap().iter().filter(|each| each["body"] == "hello").count();
    // The first one was asked once, before it was known to be gone.
    assert!(answered >= 5 && answered == server.asked(), "{seen}");
}
