//! MCP servers as tools, of both eras of the protocol.
//!
//! They need what `cargo xtask test` provides: MCP's SDK and `mcp-server-time` in the Python that comes first, and
//! earlier releases in a folder of it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{HOSTILE, Scripted, hostile_server as hostile, limits, sandbox, server, task, text};
use gavel_agent::{
    Episode, EpisodeLimits, EpisodeProgress, McpSource, McpSpec, Policy, ToolLimits, ToolSet, ToolSource, Tools,
};
use gavel_data::{FinishReason, Role, ToolEnding, Trajectory};
use gavel_endpoint::{Limiter, LimiterTable};
use gavel_plugin::Sandbox;
use gavel_text::RenderOptions;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// The revision of 2026-07-28, which has no `initialize`, and those before it.
const SDKS: [&str; 2] = ["newest", "mcp-1.30.0"];
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_server.py");

fn program(sdk: &str, what: &str) -> McpSpec {
    server(McpSource::Program(["python3", SCRIPT, sdk, what].map(str::to_owned).to_vec()))
}

/// A server over HTTP, which ends when this is dropped.
struct Served {
    process: Child,
    url: String,
}

impl Served {
    fn start(sdk: &str, key: Option<&str>) -> Self {
        let mut python = Command::new("python3");
        python.args([SCRIPT, sdk, "http"]).envs(key.map(|key| ("MCP_TEST_KEY", key)));
        Self::of(python)
    }

    /// A server that misbehaves.
    fn hostile(way: &str, more: &[&str]) -> Self {
        let mut python = Command::new("python3");
        python.args([HOSTILE, way, "http"]).args(more);
        Self::of(python)
    }

    fn of(mut python: Command) -> Self {
        python.stdout(Stdio::piped()).process_group(0);
        let mut process = python.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim().to_owned() }
    }

    fn spec(&self) -> McpSpec {
        server(McpSource::Url(self.url.clone()))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let group = libc::pid_t::try_from(self.process.id()).unwrap();
        // SAFETY: it only sends a signal. The process was not waited for, so its id still names its group.
        assert_eq!(unsafe { libc::kill(-group, libc::SIGKILL) }, 0);
        self.process.wait().unwrap();
    }
}

/// A trajectory in which the policy makes these calls, one a turn.
fn calls(tool: impl Into<ToolSource>, calls: &[(&str, Value)]) -> Trajectory {
    turns(tool, calls.chunks(1))
}

/// A trajectory whose turns make these calls.
fn turns<'a>(tool: impl Into<ToolSource>, calls: impl Iterator<Item = &'a [(&'a str, Value)]>) -> Trajectory {
    let call = |(name, arguments): &(&str, Value)| {
        format!("<tool_call>\n{}\n</tool_call>", json!({"name": name, "arguments": arguments}))
    };
    let turn = |calls: &[(&str, Value)]| calls.iter().map(call).collect::<Vec<_>>().join("\n");
    let turns: Vec<String> = calls.map(turn).chain(["done".to_owned()]).collect();
    turns_in(&sandbox(), tool, &turns)
}

/// A trajectory of these responses.
fn turns_in(sandbox: &Sandbox, tool: impl Into<ToolSource>, turns: &[String]) -> Trajectory {
    let policy = Scripted::new(text("qwen2_5"), &turns.iter().map(String::as_str).collect::<Vec<_>>());
    sandbox.handle().block_on(async {
        let set = Arc::new(ToolSet::load(sandbox, vec![tool.into()]).await.unwrap());
        let task = task(json!({"prompt": "Go."}));
        let options = set.definitions();
        let prompt = policy.text.prompt_ids_with(&task.prompt, &RenderOptions::prompt(&options)).unwrap();
        let tools = ToolLimits { max_output_tokens: 2_000, ..limits().tools };
        let limits = EpisodeLimits { max_turns: 20, deadline: Duration::from_secs(300), tools, ..limits() };
        let tools = Some(Tools { set, limits });
        let (max_tokens, key) = (100_000, policy.conversation());
        let episode = Episode { task, index: 0, prompt, max_tokens, seed: 1, tool_seed: 2, key, tools };
        let first = policy.generate(vec![episode.first_request()]).await.unwrap().remove(0);
        episode.play(&policy, first, &EpisodeProgress::default()).await.unwrap().trajectories.remove(0)
    })
}

/// How each call ended, and what the policy read.
fn answers(trajectory: &Trajectory) -> Vec<(ToolEnding, String)> {
    assert_eq!(trajectory.finish_reason, FinishReason::Stop);
    let read = trajectory.messages.iter().filter(|message| message.role == Role::Tool);
    trajectory.report.tool_uses.iter().map(|tool_use| tool_use.ending).zip(read.map(|message| message.text())).collect()
}

fn refused(spec: McpSpec) -> String {
    let sandbox = sandbox();
    sandbox.handle().block_on(ToolSet::load(&sandbox, vec![spec.into()])).err().expect("it is taken").to_string()
}

#[test]
fn a_published_server_of_either_era_answers_the_policy() {
    for sdk in SDKS {
        let at = json!({"source_timezone": "Asia/Tokyo", "time": "09:30", "target_timezone": "UTC"});
        let mut no_time = at.clone();
        no_time.as_object_mut().unwrap().remove("time");
        let nowhere = json!({"timezone": "Mars/Olympus"});
        let trajectory = calls(
            program(sdk, "time"),
            &[("convert_time", at), ("convert_time", no_time), ("get_current_time", nowhere)],
        );
        let [(answered, time), (wrong, missing), (failed, nowhere)] = &answers(&trajectory)[..] else { panic!() };
        let time: Value = serde_json::from_str(time).unwrap();
        assert_eq!((answered, &time["time_difference"]), (&ToolEnding::Answered, &json!("-9.0h")), "{sdk}");
        assert!(time["target"]["datetime"].as_str().unwrap().ends_with("T00:30:00+00:00"), "{sdk}: {time}");
        // Gavel checks arguments against the schema; the server checks what the schema leaves open.
        assert_eq!((*wrong, missing.as_str()), (ToolEnding::CalledWrongly, "error: \"time\" is a required property"));
        assert_eq!(*failed, ToolEnding::Failed, "{sdk}");
        assert!(nowhere.starts_with("error: ") && nowhere.contains("Mars/Olympus"), "{sdk}: {nowhere}");
    }
}

#[test]
fn a_call_ends_in_every_way_over_stdio_and_http() {
    for sdk in SDKS {
        let served = Served::start(sdk, None);
        for spec in [program(sdk, "stdio"), served.spec()] {
            let way = format!("{sdk}, {}", spec.source);
            let trajectory = calls(
                spec,
                &[
                    ("add", json!({"a": 2, "b": 3})),
                    ("fail", json!({})),
                    ("flood", json!({"size": 70_000})),
                    ("flood", json!({"size": 1_000})),
                ],
            );
            let [add, fail, flood, short] = &answers(&trajectory)[..] else { panic!("{way}") };
            assert_eq!(*add, (ToolEnding::Answered, "5".to_owned()), "{way}");
            assert_eq!(fail.0, ToolEnding::Failed, "{way}");
            assert!(fail.1.contains("it is broken"), "{way}: {}", fail.1);
            let too_long = "error: the answer of `server` has 70000 bytes, more than the 65536 allowed";
            assert_eq!(*flood, (ToolEnding::OutOfBudget, too_long.to_owned()), "{way}");
            assert_eq!(*short, (ToolEnding::Answered, "x".repeat(1_000)), "{way}");
        }
    }
}

/// A client of the newest revision assumes an old one if the server is silent for 10 s.
#[test]
fn a_server_that_starts_slowly_is_of_either_era() {
    let add = |sdk: &str| answers(&calls(program(sdk, "late"), &[("add", json!({"a": 2, "b": 3}))]));
    std::thread::scope(|threads| {
        for each in SDKS.map(|sdk| threads.spawn(move || add(sdk))) {
            assert_eq!(each.join().unwrap(), [(ToolEnding::Answered, "5".to_owned())]);
        }
    });
}

#[test]
fn a_server_that_is_slow_or_ends_costs_a_call_and_is_started_again() {
    // Its time also holds for its start.
    let check = |sdk: &'static str| {
        let trajectory = calls(
            McpSpec { timeout: Duration::from_secs(30), ..program(sdk, "stdio") },
            &[("count", json!({})), ("end", json!({})), ("count", json!({})), ("wait", json!({"seconds": 600}))],
        );
        let away = (ToolEnding::Unavailable, "error: `server` does not answer".to_owned());
        let slow = (ToolEnding::OutOfBudget, "error: `server` did not answer within 30 s".to_owned());
        let one = || (ToolEnding::Answered, "1".to_owned());
        assert_eq!(answers(&trajectory), [one(), away, one(), slow], "{sdk}");
    };
    std::thread::scope(|threads| {
        for each in SDKS.map(|sdk| threads.spawn(move || check(sdk))) {
            each.join().unwrap();
        }
    });
}

#[test]
fn a_server_over_http_that_ends_costs_a_call_and_its_successor_is_asked() {
    for sdk in SDKS {
        let served = Served::start(sdk, None);
        let trajectory = calls(served.spec(), &[("count", json!({})), ("end", json!({})), ("count", json!({}))]);
        let away = (ToolEnding::Unavailable, "error: `server` does not answer".to_owned());
        let one = || (ToolEnding::Answered, "1".to_owned());
        assert_eq!(answers(&trajectory), [one(), away, one()], "{sdk}");
    }
}

#[test]
fn a_message_that_is_too_long_is_not_read() {
    for sdk in SDKS {
        let served = Served::start(sdk, None);
        for spec in [program(sdk, "stdio"), served.spec()] {
            let way = format!("{sdk}, {}", spec.source);
            let trajectory = calls(spec, &[("flood", json!({"size": 64 << 20})), ("add", json!({"a": 2, "b": 3}))]);
            let away = (ToolEnding::Unavailable, "error: `server` does not answer".to_owned());
            assert_eq!(answers(&trajectory), [away, (ToolEnding::Answered, "5".to_owned())], "{way}");
        }
    }
}

#[test]
fn the_calls_of_a_turn_are_made_at_once() {
    let served = Served::start("newest", None);
    for spec in [program("newest", "stdio"), served.spec()] {
        let way = spec.source.to_string();
        let calls = [("meet", json!({})), ("meet", json!({}))];
        let met = || (ToolEnding::Answered, "met".to_owned());
        assert_eq!(answers(&turns(spec, [&calls[..]].into_iter())), [met(), met()], "{way}");
    }
}

#[test]
fn secrets_reach_the_server_and_nobody_else() {
    let key = "a-key-of-tests-0451";
    // SAFETY: no other thread of this test program reads or writes these two variables.
    unsafe {
        std::env::set_var("GAVEL_TEST_MCP_KEY", key);
        std::env::set_var("GAVEL_TEST_MCP_OTHER", "hidden");
    }
    let spec = McpSpec { env: vec!["GAVEL_TEST_MCP_KEY".into()], ..program("newest", "stdio") };
    let names = ["GAVEL_TEST_MCP_KEY", "GAVEL_TEST_MCP_OTHER"];
    let trajectory = calls(spec, &names.map(|name| ("variable", json!({"name": name}))));
    let texts: Vec<String> = answers(&trajectory).into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["$GAVEL_TEST_MCP_KEY", "absent"]);

    for sdk in SDKS {
        let served = Served::start(sdk, Some(key));
        let with_key = McpSpec { api_key_env: Some("GAVEL_TEST_MCP_KEY".into()), ..served.spec() };
        let trajectory = calls(with_key, &[("add", json!({"a": 1, "b": 1}))]);
        assert_eq!(answers(&trajectory), [(ToolEnding::Answered, "2".to_owned())], "{sdk}");
        let error = refused(served.spec());
        assert!(error.starts_with("tool `server`: http://") && error.contains("401"), "{sdk}: {error}");
        let wrong = McpSpec { api_key_env: Some("GAVEL_TEST_MCP_OTHER".into()), ..served.spec() };
        let error = refused(wrong);
        assert!(error.contains("401") && !error.contains("hidden"), "{sdk}: {error}");
    }
}

#[test]
fn what_is_no_server_is_refused_before_the_run() {
    let command =
        |command: &[&str]| server(McpSource::Program(command.iter().map(|part| (*part).to_owned()).collect()));
    let missing = refused(command(&["no-such-program", "--stdio"]));
    assert!(missing.starts_with("tool `server`: cannot start `no-such-program`: No such file"), "{missing}");
    let ended = refused(command(&["python3", "-c", "import sys; sys.exit('the disk is full')"]));
    assert!(ended.contains("the server ended the connection; it wrote: the disk is full\nhint: "), "{ended}");
    let mute = McpSpec { timeout: Duration::from_secs(1), ..command(&["sleep", "60"]) };
    let mute = refused(mute);
    assert!(mute.starts_with("tool `server`: `sleep 60` did not describe its functions within 1 s\nhint: "), "{mute}");
    let chatty = refused(McpSpec { timeout: Duration::from_secs(1), ..command(&["yes", "not JSON"]) });
    assert!(chatty.contains(" did not describe its functions within 1 s\nhint: "), "{chatty}");
    let endless = refused(command(&["cat", "/dev/zero"]));
    assert!(endless.starts_with("tool `server`: `cat /dev/zero`: the server ended the connection"), "{endless}");
    let nobody = refused(server(McpSource::Url("http://127.0.0.1:9/mcp".into())));
    assert_eq!(
        nobody,
        "tool `server`: http://127.0.0.1:9/mcp: Connection refused (os error 111)\nhint: check that it is an MCP server, and that it works by itself"
    );
    let no_key = refused(McpSpec {
        api_key_env: Some("GAVEL_TEST_NO_SUCH_KEY".into()),
        ..server(McpSource::Url("http://127.0.0.1:9/mcp".into()))
    });
    assert!(no_key.contains("api_key_env: the variable GAVEL_TEST_NO_SUCH_KEY is not set\nhint: "), "{no_key}");
    let no_limiter = refused(McpSpec { limit: Some("slow".into()), ..command(&["cat"]) });
    assert!(no_limiter.starts_with("tool `server`: limit: there is no limiter `slow`\nhint: add "), "{no_limiter}");
}

#[test]
fn calls_wait_for_their_turns_of_a_limiter() {
    let (sandbox, calls) = (sandbox(), 5);
    let table = LimiterTable { requests_per_second: Some(0.5), ..LimiterTable::default() };
    let limiter = Limiter::open(&table).unwrap();
    sandbox.add_limiter("slow", limiter.clone());
    let call = format!("<tool_call>\n{}\n</tool_call>", json!({"name": "add", "arguments": {"a": 2, "b": 3}}));
    let turns: Vec<String> = std::iter::repeat_n(call, calls).chain(["done".to_owned()]).collect();
    let spec = McpSpec { limit: Some("slow".into()), ..program(SDKS[0], "stdio") };
    let trajectory = turns_in(&sandbox, spec, &turns);
    assert_eq!(answers(&trajectory), vec![(ToolEnding::Answered, "5".to_owned()); calls]);
    let waits = limiter.take_waits();
    assert_eq!(waits.turns, calls as u64);
    // Two seconds are between two turns, and a call takes some of them.
    assert!(waits.longest > Duration::from_millis(100), "{waits:?}");
}

#[test]
fn a_list_of_functions_that_does_not_end_is_refused() {
    for (way, says) in [
        ("endless-list", "their list has more than 50 pages"),
        ("many-functions", "it has more than 1000"),
        ("long-pages", "their names, descriptions and schemas have more than 16777216 bytes"),
    ] {
        let served = Served::hostile(way, &[]);
        for spec in [hostile(way), served.spec()] {
            let error = refused(spec);
            assert!(error.contains(&format!("it does not list its functions: {says}")), "{error}");
        }
    }
}

#[test]
fn a_long_error_of_a_server_is_shown_by_its_beginning() {
    for (method, what) in [("initialize", "the server answers: "), ("tools/list", "it does not list its functions: ")] {
        let error = refused(hostile(&format!("long error {method}")));
        assert!(error.contains(what) && error.contains("eee…\nhint: ") && error.len() < 2000, "{error}");
    }
}

#[test]
fn an_empty_cursor_ends_the_list_of_functions() {
    let served = Served::hostile("empty-cursor", &[]);
    for spec in [hostile("empty-cursor"), served.spec()] {
        let answered = (ToolEnding::Answered, "5".to_owned());
        assert_eq!(answers(&calls(spec, &[("add", json!({}))])), [answered]);
    }
}

#[test]
fn an_answer_that_never_comes_costs_its_call_alone() {
    for way in ["other-id", "flood", "endless-stream"] {
        let served = Served::hostile(way, &[]);
        let over_http = way != "flood";
        let spec = if over_http { served.spec() } else { hostile(way) };
        let spec = McpSpec { timeout: Duration::from_secs(15), ..spec };
        let before = peak_memory();
        let slow = (ToolEnding::OutOfBudget, "error: `server` did not answer within 15 s".to_owned());
        assert_eq!(answers(&calls(spec, &[("add", json!({}))])), [slow], "{way}");
        let more = peak_memory() - before;
        assert!(more < 200 << 10, "{way} took {more} KiB");
    }
}

#[test]
fn a_message_that_is_not_json_ends_its_call_at_once() {
    // Far longer than the test may take.
    let spec = |way: &str| McpSpec { timeout: Duration::from_secs(3600), ..hostile(way) };
    let damaged =
        "error: `server`: it sent a message that is not JSON; the message begins: {\"jsonrpc\": \"2.0\", \"id\": ";
    let found = answers(&calls(spec("damaged tools/call"), &[("add", json!({})), ("add", json!({}))]));
    assert_eq!(found.len(), 2);
    for (ending, text) in found {
        assert!(ending == ToolEnding::Failed && text.starts_with(damaged), "{text}");
    }
    for way in ["initialize", "tools/list"] {
        let error = refused(spec(&format!("damaged {way}")));
        assert!(
            error.contains("it sent a message that is not JSON; the message begins: {\"jsonrpc\""),
            "{way}: {error}"
        );
    }
}

#[test]
fn a_key_that_a_server_repeats_is_in_no_prompt_and_no_error() {
    // SAFETY: no other test reads or writes this variable.
    unsafe { std::env::set_var("GAVEL_TEST_MCP_REPEATED", "a-key-of-tests-0453\n") };
    let spec = |served: &Served| McpSpec { api_key_env: Some("GAVEL_TEST_MCP_REPEATED".into()), ..served.spec() };
    let served = Served::hostile("key-in-list", &[]);
    let sandbox = sandbox();
    let set = sandbox.handle().block_on(ToolSet::load(&sandbox, vec![spec(&served).into()])).unwrap();
    let shown = json!(set.definitions()).to_string();
    assert!(shown.contains("Adds for Bearer $GAVEL_TEST_MCP_REPEATED."), "{shown}");
    assert!(shown.contains("As Bearer $GAVEL_TEST_MCP_REPEATED likes.") && !shown.contains("0453"), "{shown}");
    let error = refused(spec(&Served::hostile("key-in-error", &[])));
    assert!(error.contains("no list for Bearer $GAVEL_TEST_MCP_REPEATED"), "{error}");
}

#[test]
fn a_schema_is_shown_without_keys_and_with_other_variables() {
    // SAFETY: no other test reads or writes these variables.
    unsafe {
        std::env::set_var("GAVEL_TEST_MCP_MODE", "production");
        std::env::set_var("GAVEL_TEST_MCP_PROGRAM_KEY", "a-key-of-tests-0454");
    }
    let env = ["GAVEL_TEST_MCP_MODE", "GAVEL_TEST_MCP_PROGRAM_KEY"].map(str::to_owned).to_vec();
    let spec = || McpSpec { env: env.clone(), ..hostile("variables-in-list") };
    let sandbox = sandbox();
    let set = sandbox.handle().block_on(ToolSet::load(&sandbox, vec![spec().into()])).unwrap();
    let shown = json!(set.definitions())[0]["function"].clone();
    assert_eq!(shown["description"], "Adds in $GAVEL_TEST_MCP_MODE.");
    let expected = json!({"mode": {"enum": ["production"]}, "key": {"default": "$GAVEL_TEST_MCP_PROGRAM_KEY"}});
    assert_eq!(shown["parameters"]["properties"], expected);
    let answered = (ToolEnding::Answered, "5".to_owned());
    assert_eq!(answers(&calls(spec(), &[("add", json!({"mode": "production"}))])), [answered]);
}

#[test]
fn a_key_is_not_carried_where_a_server_redirects() {
    // SAFETY: no other test reads or writes this variable.
    unsafe { std::env::set_var("GAVEL_TEST_MCP_REDIRECTED", "a-key-of-tests-0452") };
    let elsewhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", elsewhere.local_addr().unwrap());
    let served = Served::hostile("redirect", &[&url]);
    let error = refused(McpSpec { api_key_env: Some("GAVEL_TEST_MCP_REDIRECTED".into()), ..served.spec() });
    assert!(error.contains("307") && !error.contains("0452"), "{error}");
    elsewhere.set_nonblocking(true).unwrap();
    assert_eq!(elsewhere.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

/// The most memory that this process had, in KiB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
