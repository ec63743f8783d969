//! `gavel view`, as a user starts it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use project::{Project, stderr};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

/// A server that ends with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn project() -> Project {
    let project = Project::empty();
    std::fs::create_dir_all(project.path("runs/a")).unwrap();
    project.write("runs/a/config.toml", "seed = 1\n");
    project.write("runs/a/metrics.jsonl", "{\"step\":1,\"loss\":0.5}\n");
    project
}

#[test]
fn the_link_opens_the_page_and_a_signal_ends_the_server() {
    let project = project();
    let mut command = project.command(&["view"]);
    let mut server = Server(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (address, path) = line.trim().strip_prefix("open http://").unwrap().split_once('/').unwrap();
    assert!(address.starts_with("127.0.0.1:") && path.len() == "?token=".len() + 64, "{line}");
    let ask = |path: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(ask(path).starts_with("HTTP/1.1 200") && ask(path).contains("<title>gavel view</title>"));
    assert!(ask("").starts_with("HTTP/1.1 401") && ask("api/runs").starts_with("HTTP/1.1 401"));
    let ended = Command::new("kill").args(["-TERM", &server.0.id().to_string()]).status().unwrap();
    assert!(ended.success() && server.0.wait().unwrap().success());
}

#[test]
fn folders_without_runs_are_named() {
    let project = Project::empty();
    let output = project.run(&["view"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("there is no run in the folder runs\nhint: name the folder of a run"),
        "{}",
        stderr(&output)
    );
    std::fs::create_dir(project.path("other")).unwrap();
    let output = project.run(&["view", "other"]);
    assert!(stderr(&output).contains("other is no run"), "{}", stderr(&output));
}

#[test]
fn an_export_is_written_once() {
    let project = project();
    let output = project.succeed(&["view", "runs/a", "--export", "page"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("wrote ") && text.trim_end().ends_with("into page: open page/index.html"), "{text}");
    assert!(project.read("page/data/0/metrics.js").contains("loss"));
    let output = project.run(&["view", "runs/a", "--export", "page"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("page exists and has files\nhint: give --export a new"), "{}", stderr(&output));
    assert!(!project.run(&["view", "runs/a", "--export", "other", "--port", "1"]).status.success());
}
