//! `gavel bench` on a model of random weights.
#![cfg(feature = "train")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::{Value, json};
use std::process::{Command, Output};

fn bench(args: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("config.json");
    let sizes = json!({
        "model_type": "qwen2", "vocab_size": 40, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": true,
    });
    std::fs::write(&config, sizes.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_gavel"));
    command.arg("bench").args(args).arg("--init").arg(config).env("OMP_NUM_THREADS", "1");
    command.output().unwrap()
}

fn lines(args: &[&str]) -> Vec<Value> {
    let output = bench(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stdout = String::from_utf8(output.stdout).unwrap();
    stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn decoding_is_measured_for_each_batch() {
    let shape = ["--batch", "1,3", "--prompt-tokens", "20", "--new-tokens", "10", "--dtype", "float32", "--json"];
    let measured = lines(&[&["decode", "--bandwidth", "1e9"], shape.as_slice()].concat());
    assert_eq!(measured.len(), 2);
    for (line, batch) in measured.iter().zip([1, 3]) {
        let number = |name: &str| line[name].as_f64().unwrap();
        assert_eq!(line["batch"], batch);
        // Norms, query, key and value with their bias, output and feed-forward of two layers; the last norm; the embedding.
        let weights = 2 * (2 * 16 + 32 * 16 + 32 + 16 * 16 + 3 * 24 * 16) + 16 + 40 * 16;
        assert_eq!(line["weight_bytes"], 4 * weights);
        assert_eq!(line["cache_bytes"], batch * 4 * 2 * 2 * 8 * 25);
        // A slot has room for 64 tokens. The rest is the prompt's pass, or the draws.
        let held = 4 * weights + batch * 4 * 2 * 2 * 8 * 64;
        let rest = line["predicted_bytes"].as_i64().unwrap() - i64::from(held);
        assert!((1..100_000).contains(&rest) && line["allocated_bytes"].is_null(), "{line}");
        let seconds = number("step_ms") / 1e3;
        assert!((number("tokens_per_second") * seconds / f64::from(batch) - 1.0).abs() < 1e-6);
        let floor = (number("weight_bytes") + number("cache_bytes")) / 1e9;
        assert!((number("times_floor") * floor / seconds - 1.0).abs() < 1e-6);
    }
}

#[test]
fn faster_operations_of_gpus_can_be_left_out() {
    let shape = ["decode", "--batch", "1", "--prompt-tokens", "20", "--new-tokens", "5"];
    let decode = |when: &str| bench(&[shape.as_slice(), &["--cuda-fast-paths", when]].concat());
    let off = decode("off");
    assert!(off.status.success(), "{}", String::from_utf8_lossy(&off.stderr));
    let wrong = decode("on");
    let error = String::from_utf8_lossy(&wrong.stderr);
    assert!(
        !wrong.status.success() && error.contains("'on' for '--cuda-fast-paths <WHEN>': use auto or off"),
        "{error}"
    );
}

#[test]
fn prompts_are_measured_in_parts_too() {
    let shape = ["--batch", "2", "--prompt-tokens", "50", "--dtype", "bfloat16", "--json"];
    for part in ["7", "1000"] {
        let measured = lines(&[&["prefill", "--prefill-tokens", part], shape.as_slice()].concat());
        assert_eq!((&measured[0]["dtype"], &measured[0]["batch"]), (&json!("bfloat16"), &json!(2)));
        assert!(measured[0]["flops_per_second"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn an_update_is_measured_with_what_is_computed_again() {
    let shape = ["--prompts", "2", "--group-size", "3", "--prompt-tokens", "20", "--response-tokens", "10", "--json"];
    let train = |more: &[&str]| lines(&[&["train", "--ceiling", "1e9"], shape.as_slice(), more].concat()).remove(0);
    let number = |line: &Value, name: &str| line[name].as_f64().unwrap();
    let [model, executed] = ["model_flops_per_second", "executed_flops_per_second"];
    let plain = train(&[]);
    assert_eq!(plain[model], plain[executed]);
    assert!((number(&plain, "tokens_per_second") * number(&plain, "seconds") / 60.0 - 1.0).abs() < 1e-6);
    assert!((number(&plain, "share_of_ceiling") * 1e9 / number(&plain, executed) - 1.0).abs() < 1e-6);
    let again = train(&["--gradient-checkpointing", "--dtype", "bfloat16"]);
    let ratio = number(&again, executed) / number(&again, model);
    assert!(ratio > 1.2 && ratio < 4.0 / 3.0, "{ratio}");
    // 16 bytes a parameter at least.
    assert!(number(&plain, "predicted_bytes") > 16.0 * 6000.0, "{plain}");
}

#[test]
fn a_model_that_has_no_room_is_an_error() {
    let output = bench(&["decode", "--prompt-tokens", "60", "--new-tokens", "5"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2));
    assert!(told.contains("a prompt of 60 tokens and `max_tokens` 5 exceed the model's 64 positions"), "{told}");
}
