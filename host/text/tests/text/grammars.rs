//! Responses that are drawn at random within grammars, over the schemas in `tests/grammars`.

use gavel_data::Constraint;
use gavel_data::seed::uniform;
use gavel_text::{Grammar, GrammarCompiler, GrammarSource, TextModel, Tokenizer, ToolCallFormat};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// From this token on, what is open is closed.
const CLOSING: u64 = 60;
/// The most tokens of a response.
const MOST: u64 = 6000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A tokenizer of `tests/parity/tokenizer_cases`.
fn tokenizer(case: &str) -> Tokenizer {
    let folder = tempfile::tempdir().unwrap();
    let file = root().join("tests/parity/tokenizer_cases").join(case).join("tokenizer.json");
    fs::copy(file, folder.path().join("tokenizer.json")).unwrap();
    fs::write(folder.path().join("tokenizer_config.json"), r#"{"eos_token": "</s>"}"#).unwrap();
    Tokenizer::load(folder.path()).unwrap()
}

fn ids(words: &[u32]) -> Vec<u32> {
    (0..words.len() as u32 * 32).filter(|id| words[*id as usize / 32] >> (id % 32) & 1 == 1).collect()
}

/// A response of random tokens, each as probable as the others; `None` if it does not end.
fn draw(grammar: &Grammar, tokenizer: &Tokenizer, seed: u64) -> Result<Option<Vec<u32>>, String> {
    let bytes: BTreeMap<u32, Vec<u8>> =
        (0..tokenizer.vocab_size() as u32).map(|id| (id, tokenizer.token_to_text(id).bytes)).collect();
    let mut state = grammar.begin();
    let (mut response, mut text) = (Vec::new(), Vec::new());
    for number in 0..MOST {
        let allowed = ids(&state.allowed()?);
        assert!(!allowed.is_empty());
        let ends = allowed.iter().any(|id| tokenizer.stop_ids().contains(id));
        let texts: Vec<u32> = allowed.into_iter().filter(|id| !tokenizer.stop_ids().contains(id)).collect();
        if ends && (texts.is_empty() || number >= CLOSING || uniform(seed + 1_000_000, number) < 0.3) {
            return Ok(Some(response));
        }
        let closers: &[u8] = if is_in_string(&text) { b"\"" } else { b"}]" };
        let closes = |id: &&u32| bytes[*id].first().is_some_and(|byte| closers.contains(byte));
        let closing = texts.iter().find(closes).filter(|_| number >= CLOSING);
        let any = || texts[(uniform(seed, number) * texts.len() as f64) as usize];
        let token = closing.copied().unwrap_or_else(any);
        state.advance(token);
        text.extend_from_slice(&bytes[&token]);
        response.push(token);
    }
    Ok(None)
}

/// Whether JSON that begins so is within a text.
fn is_in_string(text: &[u8]) -> bool {
    let (mut inside, mut escaped) = (false, false);
    for byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if inside => escaped = true,
            b'"' => inside = !inside,
            _ => {}
        }
    }
    inside
}

struct Case {
    name: String,
    schema: Value,
    /// A part of the reason why it is refused.
    refused: Option<String>,
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> = fs::read_dir(root().join("tests/grammars"))
        .unwrap()
        .map(|file| {
            let path = file.unwrap().path();
            let case: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            Case {
                name: path.file_stem().unwrap().to_string_lossy().into_owned(),
                schema: case["schema"].clone(),
                refused: case["refused"].as_str().map(str::to_owned),
            }
        })
        .collect();
    cases.sort_by(|one, other| one.name.cmp(&other.name));
    assert!(cases.len() > 100, "{}", cases.len());
    cases
}

/// Whether the validator reads dates and times as the format does: 29 February and second 60 do not always exist.
fn has_rare_time(schema: &Value, text: &str) -> bool {
    schema.to_string().contains("\"format\":") && (text.contains("02-29") || text.contains(":60"))
}

#[test]
fn every_response_is_valid_or_its_schema_is_refused() {
    let tokenizers = [Tokenizer::byte_level(), tokenizer("byte_level"), tokenizer("byte_fallback")];
    let compilers = tokenizers.map(|tokenizer| (GrammarCompiler::new(tokenizer.clone()), tokenizer));
    let mut wrong = Vec::new();
    let (mut drawn, mut beyond) = (0, 0);
    for Case { name, schema, refused } in cases() {
        for (number, (compiler, tokenizer)) in compilers.iter().enumerate() {
            let grammar = match (compiler.compile(&GrammarSource::JsonSchema(schema.clone())), &refused) {
                (Ok(grammar), None) => grammar,
                (Err(error), Some(why)) if error.to_string().contains(why.as_str()) => continue,
                (found, _) => {
                    wrong.push(format!("{name}: {:?}", found.map(drop)));
                    continue;
                }
            };
            let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
            let seeds = if number == 0 { 20 } else { 5 };
            for seed in 0..seeds {
                let response = match draw(&grammar, tokenizer, seed) {
                    Ok(Some(response)) => response,
                    other => {
                        wrong.push(format!("{name}, seed {seed}: {other:?}"));
                        continue;
                    }
                };
                let text = tokenizer.decode(&response).unwrap();
                if let Err(error) = serde_json::from_str::<IgnoredAny>(&text) {
                    wrong.push(format!("{name}, seed {seed}: {error}: {text}"));
                    continue;
                }
                drawn += 1;
                match serde_json::from_str::<Value>(&text) {
                    Ok(value) if validator.is_valid(&value) || has_rare_time(&schema, &text) => {}
                    Ok(value) => {
                        wrong.push(format!("{name}, seed {seed}: {:?}: {text}", validator.validate(&value).err()))
                    }
                    // JSON has numbers that 64 bits have not.
                    Err(_) => beyond += 1,
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(drawn > 2500 && beyond * 50 < drawn, "{beyond} of {drawn}");
}

#[test]
fn a_response_may_end_exactly_where_the_grammar_has_its_text() {
    let tokenizer = Tokenizer::byte_level();
    let compiler = GrammarCompiler::new(tokenizer.clone());
    let stop = tokenizer.eos();
    for (source, texts, others) in [
        (GrammarSource::Regex("a+(bc)?".into()), &["a", "aa", "abc", "aaabc"][..], &["", "b", "ab", "abcb", "aé"][..]),
        (
            GrammarSource::Choice(vec!["yes".into(), "no".into(), "\"\\\n\u{7f}é".into()]),
            &["yes", "no", "\"\\\n\u{7f}é"],
            &["y", "yesno", "n"],
        ),
        (
            GrammarSource::Lark("start: \"x\" item+\nitem: \"(\" item* \")\"\n".into()),
            &["x()", "x(()())()"],
            &["x", "x(", "x)"],
        ),
        (GrammarSource::JsonObject, &["{}", "{\"a\": [1, null]}"], &["[]", "{", "{\"a\"}", "{} x"]),
        (
            GrammarSource::JsonSchema(json!({"type": "integer", "minimum": 10})),
            &["10", "99", "12345"],
            &["9", "1", "-10", "1.5"],
        ),
    ] {
        let grammar = compiler.compile(&source).unwrap();
        let may_end = |text: &str| {
            let mut state = grammar.begin();
            for token in tokenizer.encode(text).unwrap() {
                if !ids(&state.allowed().unwrap()).contains(&token) {
                    return false;
                }
                state.advance(token);
            }
            ids(&state.allowed().unwrap()).contains(&stop)
        };
        for text in texts {
            assert!(may_end(text), "{source:?}: {text:?}");
        }
        for text in others {
            assert!(!may_end(text), "{source:?}: {text:?}");
        }
    }
}

#[test]
fn a_state_is_its_own() {
    let tokenizer = Tokenizer::byte_level();
    let grammar = GrammarCompiler::new(tokenizer.clone()).compile(&GrammarSource::Regex("ab|cd".into())).unwrap();
    let token = |text: &str| tokenizer.encode(text).unwrap()[0];
    let (mut one, mut other) = (grammar.begin(), grammar.begin());
    one.advance(token("a"));
    other.advance(token("c"));
    assert_eq!(ids(&one.allowed().unwrap()), [token("b")]);
    assert_eq!(ids(&other.allowed().unwrap()), [token("d")]);
    assert_eq!(one.allowed(), one.allowed());
    one.advance(token("b"));
    assert_eq!(ids(&one.allowed().unwrap()), tokenizer.stop_ids());
    // After its end there is nothing else.
    one.advance(tokenizer.eos());
    assert_eq!(ids(&one.allowed().unwrap()), tokenizer.stop_ids());
    // A token that may not follow is an error from then on.
    other.advance(token("x"));
    let failure = other.allowed().unwrap_err();
    assert!(failure.contains("doesn't satisfy the grammar"), "{failure}");
    assert_eq!(other.allowed(), Err(failure));
}

#[test]
fn special_tokens_are_no_text() {
    let tokenizer = Tokenizer::byte_level();
    let compiler = GrammarCompiler::new(tokenizer.clone());
    let grammar = compiler.compile(&GrammarSource::Regex("(?s:.*)".into())).unwrap();
    let allowed = ids(&grammar.begin().allowed().unwrap());
    let special = |name: &str| tokenizer.token_id(name).unwrap();
    assert!(!allowed.contains(&special("<|im_start|>")) && allowed.contains(&special("<|im_end|>")));
    // Bytes that no text begins with.
    assert!(!allowed.contains(&(3 + 0x80)) && !allowed.contains(&(3 + 0xff)));
    let named = compiler.compile(&GrammarSource::Lark("start: <|im_start|> \"a\"".into())).unwrap();
    assert_eq!(ids(&named.begin().allowed().unwrap()), [special("<|im_start|>")]);
}

/// Grammars that could take forever, or all memory, end: they are refused, or some step is.
#[test]
fn what_needs_too_much_is_refused_and_never_hangs() {
    let tokenizer = Tokenizer::byte_level();
    let compiler = GrammarCompiler::new(tokenizer.clone());
    let regex = |text: &str| GrammarSource::Regex(text.into());
    let schema = GrammarSource::JsonSchema;
    let mut doubling = json!({"$defs": {"l0": {"type": "integer"}}, "$ref": "#/$defs/l40"});
    for level in 1..=40 {
        let before = json!({"$ref": format!("#/$defs/l{}", level - 1)});
        doubling["$defs"][format!("l{level}")] = json!({"allOf": [before, {"anyOf": [before, {"type": "null"}]}]});
    }
    let names = |count: usize| (0..count).map(|at| format!("n{at}")).collect::<Vec<_>>();
    let wide: Vec<Value> =
        (0..12).map(|at| json!({"anyOf": [{"minimum": at}, {"maximum": 100 - at}, {"type": "null"}]})).collect();
    let patterns: serde_json::Map<String, Value> =
        (0..32).map(|at| (format!("(a|b)*{}(a|b){{{at}}}$", at % 2), json!({}))).collect();
    let deep_lark = format!("start: {}\"a\"{}", "(".repeat(20_000), ")".repeat(20_000));
    let chain: String = (0..5000).map(|at| format!("r{at}: r{}\n", at + 1)).collect();
    for (what, source) in [
        ("nested repeats", regex("((((a{1,1000}){1,1000}){1,1000}){1,1000}){1,1000}")),
        ("a large automaton", regex("(a|b)*a(a|b){300}")),
        ("an automaton of words", regex("(?s:.*)(abc|bcd)(?s:.{200})(x|y)")),
        ("many classes", regex(&"[a-cx-z]".repeat(2000))),
        ("deep groups", regex(&format!("{}a{}", "(".repeat(5000), ")".repeat(5000)))),
        ("a long text", regex(&"a".repeat(16 << 10))),
        ("all letters", regex(r"(\p{L}|\p{N}|\p{S}){1,5000}")),
        ("doubling schemas", schema(doubling)),
        ("many alternatives", schema(json!({"enum": names(30_000)}))),
        ("products of alternatives", schema(json!({"allOf": wide}))),
        ("copies", schema(json!({"enum": names(4000), "oneOf": vec![json!(true); 4000]}))),
        ("overlapping patterns", schema(json!({"type": "object", "patternProperties": patterns}))),
        (
            "a long list",
            schema(
                json!({"type": "array", "minItems": 1_000_000_000, "items": {"type": "string", "minLength": 1_000_000}}),
            ),
        ),
        ("many required names", schema(json!({"type": "object", "required": names(8000)}))),
        ("a large schema", schema(json!({"description": "x".repeat(300_000)}))),
        ("deep Lark", GrammarSource::Lark(deep_lark)),
        ("a chain of rules", GrammarSource::Lark(format!("start: r0\n{chain}r5000: \"a\"\n"))),
        ("endless rules", GrammarSource::Lark("start: a\na: b\nb: a\n".into())),
        ("ambiguity", GrammarSource::Lark("start: a\na: \"x\" | a a | a a a\n".into())),
    ] {
        match compiler.compile(&source) {
            Err(error) => assert!(error.to_string().contains("cannot bind responses: "), "{what}: {error}"),
            Ok(grammar) => {
                let mut state = grammar.begin();
                for number in 0..200 {
                    let Ok(allowed) = state.allowed() else { break };
                    let allowed = ids(&allowed);
                    state.advance(allowed[(uniform(1, number) * allowed.len() as f64) as usize]);
                }
            }
        }
    }
    for (source, why) in [
        (regex(""), "the regular expression cannot bind responses: it is empty"),
        (regex("["), "the regular expression cannot bind responses: "),
        (regex(&"a".repeat((16 << 10) + 1)), "its 16385 bytes are more than 16384"),
        (GrammarSource::Choice(Vec::new()), "the list of choices cannot bind responses: it must have texts"),
        (GrammarSource::Choice(vec![String::new()]), "it must have texts that are not empty"),
        (GrammarSource::Lark("start: %json {\"type\": \"integer\"}".into()), "`%json` is not supported"),
        (GrammarSource::Lark("begin: \"a\"".into()), "no start rule"),
        (GrammarSource::Lark("start: A\nA: /(.{3000})*/ & /(.{3001})*/".into()), "`&` is not supported"),
        (GrammarSource::Lark("start: A\nA: ~/a(.{300})*/".into()), "`~` without a number is not supported"),
        (
            GrammarSource::Lark(format!("start: {}\"a\"{}", "(".repeat(300), ")".repeat(300))),
            "nested more than 200 deep",
        ),
        (GrammarSource::JsonSchema(json!({"description": "x".repeat(300_000)})), "are more than 262144"),
    ] {
        let refused = compiler.compile(&source).unwrap_err().to_string();
        assert!(refused.contains(why), "{refused}");
    }
}

#[test]
fn a_tokenizer_whose_tokens_have_no_bytes_is_refused() {
    let compiler = GrammarCompiler::new(tokenizer("word_piece"));
    let refused = compiler.compile(&GrammarSource::JsonObject).unwrap_err().to_string();
    assert_eq!(
        refused,
        "the JSON grammar cannot bind responses: the text of this tokenizer's tokens depends on their neighbours"
    );
}

/// A model whose chat template asks for calls by showing this mark.
fn model(mark: &str) -> TextModel {
    let folder = tempfile::tempdir().unwrap();
    TextModel::byte_level().save(folder.path()).unwrap();
    let template = format!("{{{{ messages[0].content }}}}{{% if tools %}}{mark}{{% endif %}}");
    fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    TextModel::load(folder.path()).unwrap()
}

#[test]
fn replies_that_must_call_are_calls_in_the_models_form() {
    let add = json!({"type": "object", "properties": {"a": {"type": "integer", "maximum": 99, "minimum": 0}, "b": {"$ref": "#/properties/a"}},
                     "required": ["a", "b"], "additionalProperties": false});
    let say = json!({"type": "object", "properties": {"text": {"type": "string", "maxLength": 8}}, "required": ["text"], "additionalProperties": false});
    let tool = |name: &str, parameters: &Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    let tools = [tool("add", &add), tool("say-it_1", &say), json!({"type": "function", "function": {"name": "free"}})];
    let schemas: BTreeMap<&str, Value> = [("add", add), ("say-it_1", say), ("free", json!({"type": "object"}))].into();
    for (mark, format) in [
        ("<tool_call>", ToolCallFormat::Hermes),
        ("<|python_tag|>", ToolCallFormat::Llama3),
        ("[TOOL_CALLS]", ToolCallFormat::Mistral),
        ("<|channel|>commentary", ToolCallFormat::Harmony),
        ("<|tool_calls_section_begin|>", ToolCallFormat::Kimi),
        ("<｜tool▁calls▁begin｜>", ToolCallFormat::DeepSeek),
    ] {
        let model = model(mark);
        assert_eq!(model.template.tool_call_format(), Some(format));
        let compiler = GrammarCompiler::new(model.tokenizer.clone());
        for name in [None, Some("add"), Some("say-it_1"), Some("free")] {
            let grammar = compiler.compile_tool_calls(format, &tools, name).unwrap();
            let mut called = 0;
            for seed in 0..12 {
                let response = draw(&grammar, &model.tokenizer, seed).unwrap().unwrap();
                let text = model.tokenizer.decode(&response).unwrap();
                let reply = model.reply(&response, text.clone(), &tools, 0).unwrap();
                assert!(!reply.tool_calls.is_empty() && reply.malformed.is_empty(), "{format:?}: {text}: {reply:?}");
                assert_eq!(reply.content, "", "{format:?}: {text}");
                called += reply.tool_calls.len();
                for call in reply.tool_calls {
                    assert!(name.is_none_or(|name| name == call.name), "{text}");
                    let arguments: Value = match serde_json::from_str(&call.arguments) {
                        Ok(arguments) => arguments,
                        // A number beyond 64 bits.
                        Err(_) if call.name == "free" => continue,
                        Err(error) => panic!("{error}: {text}"),
                    };
                    let validator = jsonschema::validator_for(&schemas[call.name.as_str()]).unwrap();
                    assert!(validator.is_valid(&arguments), "{format:?}: {text}");
                }
            }
            assert!(called >= 12);
        }
    }
}

#[test]
fn a_choice_of_tools_that_cannot_be_bound_is_refused() {
    let compiler = GrammarCompiler::new(Tokenizer::byte_level());
    let tool = |name: &str, parameters: Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
    let add = tool("add", json!({"type": "object"}));
    for (format, tools, name, why) in [
        (ToolCallFormat::Hermes, vec![], None, "there are no tools"),
        (ToolCallFormat::Hermes, vec![add.clone()], Some("sub"), "there is no tool `sub`"),
        (ToolCallFormat::Hermes, vec![tool("a\"b", json!({}))], None, "has '\"' in its name"),
        (ToolCallFormat::Hermes, vec![tool("a", json!({"type": "array"}))], None, "must have the type `object`"),
        (ToolCallFormat::Hermes, vec![tool("a", json!({"not": {}}))], None, "not"),
        (
            ToolCallFormat::Hermes,
            vec![tool("a", json!({"x-guidance": {}}))],
            None,
            "the parameters of the tool `a`: `x-guidance`",
        ),
        (ToolCallFormat::QwenXml, vec![add], None, "calls in the form QwenXml"),
    ] {
        let refused = compiler.compile_tool_calls(format, &tools, name).unwrap_err().to_string();
        assert!(refused.starts_with("the tool choice cannot bind responses: ") && refused.contains(why), "{refused}");
    }
}
