//! Reads the replies of `replies.jsonl`, which judges write, and compares with the verdict that each states: a score, a
//! letter, answers, or none.

use crate::{Better, answers, better, score};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const REPLIES: &str = include_str!("../replies.jsonl");

#[test]
fn a_reply_has_the_verdict_that_it_states() {
    let mut kinds = BTreeSet::new();
    for line in REPLIES.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let reply = row["reply"].as_str().unwrap();
        let found = match row["mode"].as_str() {
            None => json!(score(reply)),
            Some("pairwise") => match better(reply) {
                Some(Better::First) => json!("A"),
                Some(Better::Second) => json!("B"),
                Some(Better::Neither) => json!("tie"),
                None => Value::Null,
            },
            Some("rubric") => json!(answers(reply, 2)),
            Some(other) => panic!("{other} is no mode"),
        };
        assert_eq!(found, row["verdict"], "{}: {reply:?}", row["kind"]);
        kinds.insert(row["kind"].as_str().unwrap().to_owned());
    }
    assert_eq!((REPLIES.lines().count(), kinds.len()), (1124, 43));
}

#[test]
fn any_part_of_a_reply_can_be_read_and_an_object_that_is_cut_states_nothing() {
    for line in REPLIES.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let reply = row["reply"].as_str().unwrap();
        // No part may panic.
        for (at, _) in reply.char_indices() {
            let _ = (score(&reply[..at]), better(&reply[at..]), answers(&reply[..at], 2));
        }
    }
    let object = r#"{"reason": "He wrote\nScore: 10. Score: 9", "score": 10}"#;
    assert!((0..object.len()).all(|end| score(&object[..end]).is_none()));
}

#[test]
fn a_reply_with_too_many_objects_has_no_verdict() {
    let many = r#"{"a": 1} "#.repeat(300);
    assert_eq!(score(&format!("{many}\n{{\"score\": 3}}\n{{\"score\": 9}}")), None);
    assert_eq!(score(&format!("{{\"score\": 3}} {many}\nScore: 3")), None);
    assert_eq!(better(&format!("{many}\n{{\"better\": \"A\"}}")), None);
    assert_eq!(answers(&format!("{many}\n1: yes\n2: no"), 2), None);
    let formulas = r"\frac{1}{2} + ".repeat(300);
    assert_eq!(score(&format!("{formulas}\nScore: 3")), Some(0.3));
}
