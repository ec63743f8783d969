//! Tokenizers of every kind give the ids and texts that transformers gives
//! (`tests/parity/tokenizer_cases.py`), and streams give the same texts.

use gavel_text::Tokenizer;
use serde::Deserialize;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Cases {
    encoded: Vec<Encoded>,
    decoded: Vec<Decoded>,
}

#[derive(Deserialize)]
struct Encoded {
    text: String,
    ids: Vec<u32>,
}

#[derive(Deserialize)]
struct Decoded {
    ids: Vec<u32>,
    text: String,
    without_special: String,
}

/// Each kind's name, tokenizer and cases.
fn kinds() -> Vec<(String, Tokenizer, Cases)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/tokenizer_cases");
    let mut folders: Vec<PathBuf> = std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.sort();
    let load = |folder: PathBuf| {
        let dir = tempfile::tempdir().unwrap();
        std::fs::copy(folder.join("tokenizer.json"), dir.path().join("tokenizer.json")).unwrap();
        std::fs::write(dir.path().join("tokenizer_config.json"), r#"{"eos_token": "</s>"}"#).unwrap();
        let cases = serde_json::from_str(&std::fs::read_to_string(folder.join("cases.json")).unwrap()).unwrap();
        (folder.file_name().unwrap().to_string_lossy().into_owned(), Tokenizer::load(dir.path()).unwrap(), cases)
    };
    folders.into_iter().map(load).collect()
}

#[test]
fn texts_and_ids_are_those_of_transformers() {
    let mut compared = 0;
    for (kind, tokenizer, cases) in kinds() {
        for case in &cases.encoded {
            assert_eq!(tokenizer.encode(&case.text).unwrap(), case.ids, "{kind}: {:?}", case.text);
        }
        for case in &cases.decoded {
            assert_eq!(tokenizer.decode_with(&case.ids, false).unwrap(), case.text, "{kind}: {:?}", case.ids);
            assert_eq!(tokenizer.decode(&case.ids).unwrap(), case.without_special, "{kind}: {:?}", case.ids);
        }
        compared += cases.encoded.len() + 2 * cases.decoded.len();
    }
    println!("{compared} compared");
    assert!(compared > 2000);
}

#[test]
fn a_stream_gives_the_text_of_all_tokens_in_whole_characters() {
    for (kind, tokenizer, cases) in kinds() {
        for (case, skip) in cases.decoded.iter().flat_map(|case| [(case, true), (case, false)]) {
            let mut stream = tokenizer.stream(skip);
            let mut pieces: Vec<String> = case.ids.iter().map(|&id| stream.push(id).unwrap()).collect();
            pieces.push(stream.finish().unwrap());
            let whole = if skip { &case.without_special } else { &case.text };
            assert_eq!(&pieces.concat(), whole, "{kind}: {:?}", case.ids);
        }
        // Common text comes in pieces, and none of it is held back.
        let ids = tokenizer.encode("the answer is 42. Therefore").unwrap();
        let mut stream = tokenizer.stream(true);
        let empty = ids.iter().filter(|&&id| stream.push(id).unwrap().is_empty()).count();
        assert_eq!(stream.finish().unwrap().is_empty(), kind != "word_piece", "{kind}");
        assert!(empty <= 1 || kind == "word_piece", "{kind}: {empty} of {}", ids.len());
    }
}

#[test]
fn a_text_that_goes_on_keeps_the_space_before_it() {
    for (kind, tokenizer, _) in kinds().into_iter().filter(|(kind, ..)| kind != "word_piece") {
        for text in ["the answer is 42", "the 数 answer 🦀 🦀"] {
            let ids = tokenizer.encode(text).unwrap();
            for cut in 1..ids.len() {
                let (prompt, rest) = ids.split_at(cut);
                let mut stream = tokenizer.stream(true).after(prompt);
                let mut more: String = rest.iter().map(|&id| stream.push(id).unwrap()).collect();
                more.push_str(&stream.finish().unwrap());
                // Where a character is cut in two, neither half is a character.
                let before = tokenizer.decode(prompt).unwrap();
                if !before.ends_with('\u{fffd}') {
                    assert_eq!(before + &more, tokenizer.decode(&ids).unwrap(), "{kind}: {text:?} at {cut}");
                }
            }
        }
    }
}

/// Bytes of the prompt and bytes of the response are in no common run.
#[test]
fn a_response_after_bytes_has_all_of_its_text() {
    let (_, tokenizer, _) = kinds().into_iter().find(|(kind, ..)| kind == "byte_fallback").unwrap();
    let ids = |names: &[&str]| -> Vec<u32> { names.iter().map(|name| tokenizer.token_id(name).unwrap()).collect() };
    let prompts: [&[&str]; 9] = [
        &["a", "<0x0A>"],
        &["a", "<0xC3>"],
        &["a", "<0xC3>", "</s>"],
        &["a", "<0xEF>", "<0xBF>", "<0xBD>"],
        &["<0x0A>"],
        &["<s>", "<0xF0>", "<0x9F>"],
        &["<0xEF>", "<0xBF>", "<0xBD>"],
        &["▁the"],
        &["a", "</s>"],
    ];
    let responses: [(&[&str], &str); 7] = [
        (&["▁the", "a"], " thea"),
        (&["<0x41>", "a"], "Aa"),
        (&["<0xC3>", "<0xA9>", "a", "▁the"], "éa the"),
        // The second half of a character is none.
        (&["<0xA9>", "a", "▁the"], "\u{fffd}a the"),
        (&["<0x9F>", "<0x41>", "a"], "\u{fffd}\u{fffd}a"),
        (&["<0x9F>", "<0x41>"], "\u{fffd}\u{fffd}"),
        (&["</s>", "<0xA9>", "</s>", "<0xC3>", "a", "<0xA9>"], "\u{fffd}\u{fffd}a\u{fffd}"),
    ];
    for prompt in prompts {
        for (response, text) in responses {
            let mut stream = tokenizer.stream(true).after(&ids(prompt));
            let mut found = String::new();
            for id in ids(response) {
                found.push_str(&stream.push(id).unwrap());
            }
            assert_eq!(found.clone() + &stream.pending().unwrap(), text, "{prompt:?} {response:?}");
            found.push_str(&stream.finish().unwrap());
            assert_eq!(found, text, "{prompt:?} {response:?}");
        }
    }
}

#[test]
fn a_character_of_several_tokens_comes_when_it_is_whole() {
    for (kind, tokenizer, _) in kinds().into_iter().filter(|(kind, ..)| kind.starts_with("byte")) {
        let mut stream = tokenizer.stream(true);
        let ids = tokenizer.encode("a🦀b").unwrap();
        let pieces: Vec<String> = ids.iter().map(|&id| stream.push(id).unwrap()).collect();
        assert!(pieces.iter().any(|piece| piece.contains('🦀')), "{kind}: {pieces:?}");
        assert!(!pieces.concat().contains('\u{fffd}'), "{kind}: {pieces:?}");
        // An unfinished character is U+FFFD at the end.
        let mut stream = tokenizer.stream(true);
        let crab = ids.iter().position(|&id| tokenizer.token_to_text(id).bytes == [0xf0]).unwrap();
        assert_eq!(stream.push(ids[crab]).unwrap(), "", "{kind}");
        assert_eq!(stream.finish().unwrap(), "\u{fffd}", "{kind}");
    }
}

#[test]
fn a_token_has_a_text_and_bytes() {
    for (kind, tokenizer, _) in kinds() {
        let bytes = |text: &str| -> Vec<u8> {
            let ids = tokenizer.encode(text).unwrap();
            ids.iter().flat_map(|&id| tokenizer.token_to_text(id).bytes).collect()
        };
        match kind.as_str() {
            // These put a space before a text.
            "byte_fallback" | "unigram" | "byte_level_prefix_space" => assert_eq!(bytes("the answer"), b" the answer"),
            "word_piece" => continue,
            _ => assert_eq!(bytes("the answer is 数 🦀"), "the answer is 数 🦀".as_bytes(), "{kind}"),
        }
        let end = tokenizer.token_id("<|im_end|>").unwrap();
        assert_eq!(tokenizer.token_to_text(end).text, "<|im_end|>");
        assert!(tokenizer.is_special(end) && !tokenizer.is_special(tokenizer.token_id("<tool_call>").unwrap()));
        assert_eq!(tokenizer.token_to_text(u32::MAX).text, "");
    }
}

#[test]
fn the_pieces_of_tokens_are_the_text() {
    let mut split_characters = 0;
    for (kind, tokenizer, cases) in kinds() {
        for (case, skip) in cases.decoded.iter().flat_map(|case| [(case, true), (case, false)]) {
            let (text, pieces) = tokenizer.pieces(&case.ids, skip);
            let at = format!("{kind}: {:?}", case.ids);
            assert_eq!(&text, if skip { &case.without_special } else { &case.text }, "{at}");
            assert_eq!(pieces.len(), case.ids.len(), "{at}");
            let mut done = 0;
            for (piece, id) in pieces.iter().zip(&case.ids) {
                assert!(text.get(piece.clone()).is_some(), "{at}: {piece:?} splits a character");
                assert!(!skip || !tokenizer.is_special(*id) || piece.is_empty() || kind == "word_piece", "{at}");
                // Only tokens within one character share bytes.
                assert!(piece.is_empty() || piece.start <= done, "{at}: a gap before {piece:?}");
                let shared = text.get(piece.start..done.min(piece.end)).unwrap_or_default();
                assert!(shared.chars().count() <= 1 || kind == "word_piece", "{at}: {shared:?} has several tokens");
                split_characters += usize::from(shared.chars().count() == 1);
                done = done.max(piece.end);
            }
            assert_eq!(done, text.len(), "{at}");
        }
    }
    assert!(split_characters > 100, "{split_characters}");
}

/// Bytes of a character, and of the text after it, in tokens of their own: each token has its characters alone.
#[test]
fn a_token_has_no_bytes_of_its_neighbours() {
    let kinds = kinds();
    let tokenizer = |name: &str| &kinds.iter().find(|(kind, ..)| kind == name).unwrap().1;
    for kind in ["byte_level", "byte_fallback"] {
        let tokenizer = tokenizer(kind);
        // The crab is four tokens, each with a byte.
        let ids = tokenizer.encode("a🦀<s>b").unwrap();
        let (text, pieces) = tokenizer.pieces(&ids, true);
        // SentencePiece writes a space after a special token.
        let shown: Vec<&str> = pieces.iter().map(|piece| text[piece.clone()].trim_start()).collect();
        let crab = shown.iter().position(|shown| *shown == "🦀").unwrap();
        assert_eq!(shown[crab..crab + 4], ["🦀"; 4], "{kind}: {shown:?}");
        let special = ids.iter().position(|id| tokenizer.is_special(*id)).unwrap();
        assert_eq!((shown[special], shown.last()), ("", Some(&"b")), "{kind}: {shown:?}");
        assert_eq!(shown[..crab].concat(), "a", "{kind}: {shown:?}");
    }
    assert!(tokenizer("byte_level").has_pieces() && !tokenizer("word_piece").has_pieces());
}
