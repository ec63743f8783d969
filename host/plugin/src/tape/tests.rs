use super::entry::{blob, index};
use super::*;
use std::future::ready;

fn http(request: &str) -> RequestHash {
    let mut hash = RequestHash::new("http");
    request.bytes().for_each(|byte| hash.update(&[byte]));
    hash
}

async fn ask(call: &CallTape, request: &str, live: &str) -> Result<String, TapeError> {
    let answer = call.answer(http(request), request, ready(live.as_bytes().to_vec())).await?;
    Ok(String::from_utf8(answer).unwrap())
}

async fn replayed(call: &CallTape, request: &str) -> Result<String, TapeError> {
    let nobody = async { panic!("a replay asked somebody outside") };
    let answer = call.answer(http(request), request, nobody).await?;
    Ok(String::from_utf8(answer).unwrap())
}

#[tokio::test]
async fn equal_requests_of_a_call_are_answered_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let tape = Tape::record(folder.path().join("tape"));
    let call = tape.of_call("judge", "input", 7);
    for (request, answer) in [("GET a", "1"), ("GET b", "2"), ("GET a", "3"), ("GET a", "1")] {
        assert_eq!(ask(&call, request, answer).await.unwrap(), answer);
    }
    let tape = Tape::replay(&folder.path().join("tape")).unwrap();
    let call = tape.of_call("judge", "input", 7);
    for (request, answer) in [("GET a", "1"), ("GET a", "3"), ("GET b", "2"), ("GET a", "1")] {
        assert_eq!(replayed(&call, request).await.unwrap(), answer);
    }
    assert_eq!(call.trouble(), None);
    // A second call of the same kind starts from the beginning, and another call has no answers.
    assert_eq!(replayed(&tape.of_call("judge", "input", 7), "GET a").await.unwrap(), "1");
    for other in [tape.of_call("judge", "input", 8), tape.of_call("judge", "x", 7), tape.of_call("other", "input", 7)] {
        assert!(replayed(&other, "GET a").await.is_err());
    }
}

#[tokio::test]
async fn a_request_that_was_not_recorded_is_unavailable_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let call = Tape::replay(folder.path()).unwrap().of_call("judge", "input", 7);
    let error = replayed(&call, "GET https://judge.example/").await.unwrap_err();
    assert!(matches!(error, TapeError::NotRecorded { .. }));
    let what = "the http request GET https://judge.example/ was not recorded";
    assert_eq!(call.trouble(), Some(Outcome::Unavailable(what.into())));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_write_at_once_and_a_killed_one_loses_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tape");
    let tape = Tape::record(path.clone());
    let writing = (0..64u64).map(|seed| {
        let call = tape.of_call("judge", "input", seed);
        tokio::spawn(async move { ask(&call, "GET", &format!("{}", seed % 5)).await.unwrap() })
    });
    for write in writing.collect::<Vec<_>>() {
        write.await.unwrap();
    }
    // A process is killed in the middle of a line, and another one continues.
    let mut index = std::fs::read(index(&path, 0)).unwrap();
    index.extend_from_slice(b"{\"plugin\":\"judge\",\"inp");
    std::fs::write(super::entry::index(&path, 0), index).unwrap();
    let seen = Tape::replay(&path).unwrap();
    assert_eq!(replayed(&seen.of_call("judge", "input", 63), "GET").await.unwrap(), "3");
    ask(&Tape::record(path.clone()).of_call("judge", "input", 3), "GET", "again").await.unwrap();
    let tape = Tape::replay(&path).unwrap();
    for seed in 0..64u64 {
        let expected = if seed == 3 { "again".to_owned() } else { (seed % 5).to_string() };
        assert_eq!(replayed(&tape.of_call("judge", "input", seed), "GET").await.unwrap(), expected);
    }
}

#[tokio::test]
async fn a_changed_answer_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let tape = Tape::record(folder.path().into());
    ask(&tape.of_call("judge", "input", 7), "GET", "yes").await.unwrap();
    let path = blob(folder.path(), &blake3::hash(b"yes").to_hex());
    std::fs::write(path, "no").unwrap();
    let call = Tape::replay(folder.path()).unwrap().of_call("judge", "input", 7);
    assert!(matches!(replayed(&call, "GET").await, Err(TapeError::Damaged { .. })));
    assert!(matches!(call.trouble(), Some(Outcome::Fault { whose: Blame::Host, .. })));
}

#[tokio::test]
async fn what_a_power_cut_took_is_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let tape = Tape::record(folder.path().join("tape"));
    for (request, answer) in [("GET a", "1"), ("GET b", "2"), ("GET c", "3")] {
        ask(&tape.of_call("judge", "input", 7), request, answer).await.unwrap();
    }
    tape.sync().unwrap();
    // An answer whose content was not on the disk, and a line in the middle of the index.
    let path = folder.path().join("tape");
    std::fs::write(blob(&path, &blake3::hash(b"1").to_hex()), "").unwrap();
    let text = std::fs::read_to_string(index(&path, 0)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    std::fs::write(index(&path, 0), format!("{}\n{}\n{}\n", lines[0], "\0".repeat(40), lines[2])).unwrap();

    let seen = Tape::replay(&path).unwrap();
    let ask_again = |request: &'static str| {
        let call = seen.of_call("judge", "input", 7);
        async move { replayed(&call, request).await }
    };
    assert!(matches!(ask_again("GET a").await, Err(TapeError::Damaged { .. })));
    assert!(matches!(ask_again("GET b").await, Err(TapeError::NotRecorded { .. })));
    assert_eq!(ask_again("GET c").await.unwrap(), "3");

    let tape = Tape::record(path.clone());
    for (request, answer) in [("GET a", "1"), ("GET b", "2")] {
        ask(&tape.of_call("judge", "input", 7), request, answer).await.unwrap();
    }
    let seen = Tape::replay(&path).unwrap();
    for (request, answer) in [("GET a", "1"), ("GET b", "2"), ("GET c", "3")] {
        assert_eq!(replayed(&seen.of_call("judge", "input", 7), request).await.unwrap(), answer);
    }
}
