//! Strangers get nothing, and nothing of a run acts in a browser.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod place;

use place::{HOSTILE, Place, Served, line};
use serde_json::{Value, json};

fn recorded() -> Place {
    let place = Place::new();
    let lines: Vec<Value> = HOSTILE.iter().zip(0..).map(|(text, sample)| line(1, 0, sample, text)).collect();
    place.step(1, &lines);
    place
}

#[test]
fn other_names_other_pages_and_requests_without_the_token_are_refused() {
    let place = recorded();
    let served = Served::new(&[place.run()]);
    let (port, cookie, target) = (served.port, served.cookie().to_owned(), served.target());
    let ask = |path: &str, headers: &str| served.raw(&format!("GET {path} HTTP/1.1\r\n{headers}"), "").status;
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    let own = format!("{host}Cookie: {cookie}\r\n");
    let paths = ["/", "/web/app.js", "/api/runs", "/api/runs/0/samples/1.0.0", "/nothing"];
    for path in paths {
        assert_eq!(ask(path, &host), 401, "{path}: without the cookie");
        assert_eq!(ask(path, &format!("{host}Cookie: gavel-view-{port}=0\r\n")), 401, "{path}");
        let known = if path == "/nothing" { 404 } else { 200 };
        assert_eq!(ask(path, &own), known, "{path}");
        // A name that somebody else's DNS leads to this machine.
        for other in ["evil.example", &format!("evil.example:{port}"), "127.0.0.1"] {
            assert_eq!(ask(path, &format!("Host: {other}\r\nCookie: {cookie}\r\n")), 421, "{path}: {other}");
        }
        for origin in ["http://evil.example", "null", "http://127.0.0.1:1"] {
            assert_eq!(ask(path, &format!("{own}Origin: {origin}\r\n")), 403, "{path}: {origin}");
        }
        assert_eq!(ask(path, &format!("{own}Origin: http://127.0.0.1:{port}\r\n")), known, "{path}");
    }
    assert_eq!(ask(&target, "Host: evil.example\r\n"), 421);
    assert_eq!(ask(&format!("/api/runs?token={}", served.token()), &host), 401, "a token opens the page alone");
    let post = format!("POST /api/runs/0/samples HTTP/1.1\r\n{own}Origin: http://evil.example\r\n");
    assert_eq!(served.raw(&post, "{}").status, 403);
    for method in ["DELETE", "PUT", "OPTIONS", "PATCH"] {
        assert_eq!(served.raw(&format!("{method} /api/runs HTTP/1.1\r\n{own}"), "").status, 404, "{method}");
    }
}

#[test]
fn every_answer_forbids_what_the_page_does_not_need() {
    let place = recorded();
    let served = Served::new(&[place.run()]);
    let refused = served.raw("GET / HTTP/1.1\r\nHost: evil.example\r\n", "");
    let opened = served.raw(&format!("GET {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n", served.target(), served.port), "");
    let set = opened.head.lines().find(|line| line.starts_with("set-cookie")).unwrap();
    assert!(set.contains("httponly") && set.contains("samesite=strict"), "{set}");
    let asked = ["/", "/web/style.css", "/api/runs", "/api/runs/9", "/nothing"].map(|path| served.get(path));
    for answer in asked.iter().chain([&refused, &opened]) {
        let head = &answer.head;
        let policy = head.lines().find_map(|line| line.strip_prefix("content-security-policy: ")).unwrap();
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "style-src 'self'",
            "connect-src 'self'",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(rule), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        for line in [
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
            "cache-control: no-store",
            "x-frame-options: deny",
        ] {
            assert!(head.contains(line), "{line}: {head}");
        }
        assert!(!head.contains("access-control-"), "{head}");
        assert!(!answer.body.contains(&served.token()));
    }
}

#[test]
fn paths_lead_to_nothing_else() {
    let place = recorded();
    let served = Served::new(&[place.run()]);
    for path in [
        "/web/../Cargo.toml",
        "/web/%2e%2e/Cargo.toml",
        "/web/..%2f..%2fetc%2fpasswd",
        "/web//etc/passwd",
        "/web/",
        "/web/vendor",
        "/web/vendor/%2e%2e/app.js/x",
        "/../../etc/passwd",
        "/api/runs/0/samples/..%2f..%2fconfig.toml",
        "/api/runs/0/samples/%2fetc%2fpasswd",
        "/api/runs/-1",
        "/api/runs/99",
        "/api/runs/0/difference/99",
        "/api/runs/0/samples/1.0.99",
        "/api/runs/0/samples/1.0",
        "/api/runs/..%2f0",
    ] {
        let answer = served.get(path);
        assert!([400, 404].contains(&answer.status), "{path}: {} {}", answer.status, answer.body);
        assert!(!answer.body.contains("root:"), "{path}");
    }
    let unknown = served.post("/api/runs/0/samples", &json!({"filter": {"path": "/etc/passwd"}}));
    assert_eq!(unknown.status, 400);
    assert!(unknown.json()["error"].as_str().unwrap().contains("unknown field"), "{}", unknown.body);
}

#[test]
fn hostile_texts_are_json_and_stay_the_same_texts() {
    let place = recorded();
    let served = Served::new(&[place.run()]);
    let page = served.samples(6, &json!({}));
    for (number, text) in HOSTILE.iter().enumerate() {
        assert_eq!(page["rows"][number]["preview"], *text);
        let answer = served.get(&format!("/api/runs/0/samples/1.0.{number}"));
        assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
        let sample = answer.json();
        assert_eq!(sample["trajectories"][0]["messages"][0]["content"], *text);
        assert_eq!(sample["group"].as_array().unwrap().len(), 6);
    }
}
