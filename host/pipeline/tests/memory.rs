//! The prediction of a run's memory against what real runs take, each in a
//! process of its own. `cargo test --release --workspace --test memory -- --nocapture` shows the figures.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gavel_config::{RlTable, SftTable, load};
use gavel_pipeline::{Control, Prediction, Start, dry_run_sft, dry_run_train, sft, train};
use gavel_torch::peers::Peers;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of the run, for the process that it runs in.
const RUN: &str = "GAVEL_MEMORY_RUN";

/// 42 million weights, 30 million and 78 million.
const TIED: &str = "hidden_size = 512\nintermediate_size = 1536\nnum_hidden_layers = 8\nnum_attention_heads = 8\nnum_key_value_heads = 4\ntie_word_embeddings = true";
const QWEN3: &str = "model_type = \"qwen3\"\nhead_dim = 64\nhidden_size = 384\nintermediate_size = 1152\nnum_hidden_layers = 8\nnum_attention_heads = 12\nnum_key_value_heads = 6\ntie_word_embeddings = true";
const UNTIED: &str = "model_type = \"llama\"\nhidden_size = 768\nintermediate_size = 2048\nnum_hidden_layers = 4\nnum_attention_heads = 12\nnum_key_value_heads = 12\ntie_word_embeddings = false";

/// A real run.
struct Case {
    name: &'static str,
    sizes: &'static str,
    dtype: &'static str,
    /// Whether the run trains adapters of a checkpoint of these sizes.
    lora: bool,
    /// Rows in a step of `gavel sft`, or prompts, with 8 responses each, in one of `gavel train`.
    batch: Batch,
    /// Tokens of a response that is drawn.
    max_tokens: usize,
    more: &'static str,
}

enum Batch {
    Sft(usize),
    Grpo(usize),
}

fn sft_case(name: &'static str, sizes: &'static str, dtype: &'static str, rows: usize) -> Case {
    Case { name, sizes, dtype, lora: false, batch: Batch::Sft(rows), max_tokens: 128, more: "" }
}

fn grpo_case(name: &'static str, dtype: &'static str, prompts: usize, max_tokens: usize, more: &'static str) -> Case {
    Case { name, sizes: TIED, dtype, lora: false, batch: Batch::Grpo(prompts), max_tokens, more }
}

fn project(case: &Case) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let rows = (0..24).map(|row| {
        let (prompt, response) = ("p".repeat(100 + row), "r".repeat(200));
        format!("{}\n", serde_json::json!({"prompt": prompt, "response": response, "answer": "1"}))
    });
    std::fs::write(folder.path().join("rows.jsonl"), rows.collect::<String>()).unwrap();
    let format = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/plugins/format.wasm");
    let config = format!(
        r#"
# Each thread takes memory of its own.
[resources]
torch_threads = 2
[model]
device = "cpu"
dtype = {:?}
[model.init]
vocab_size = 32000
max_position_embeddings = 512
{}
[data]
train = {:?}
[rollout]
group_size = 8
max_tokens = {}
[[reward]]
name = "letter"
path = {format:?}
# A third of the responses has a token that is text.
params = {{ pattern = '(?s).+' }}
[log]
dir = {:?}
[train]
steps = 1
learning_rate = 1e-5
max_tokens_per_micro_batch = 2048
{}
{}
"#,
        case.dtype,
        case.sizes,
        folder.path().join("rows.jsonl"),
        case.max_tokens,
        folder.path().join("runs"),
        match case.batch {
            Batch::Sft(rows) => format!("batch_size = {rows}"),
            Batch::Grpo(prompts) => format!("prompts_per_step = {prompts}"),
        },
        case.more
    );
    let file = folder.path().join("run.toml");
    std::fs::write(&file, &config).unwrap();
    if case.lora {
        let base = sft(&load::<SftTable>(&file, &[]).unwrap(), Start::New, &Peers::alone(), &Control::default())
            .unwrap()
            .checkpoint
            .unwrap();
        let (before, sizes) = config.split_once("[model.init]").unwrap();
        let (_, after) = sizes.split_once("[data]").unwrap();
        let adapted = format!("{before}path = {base:?}\n[model.lora]\nrank = 16\n[data]{after}");
        std::fs::write(&file, adapted).unwrap();
    }
    folder
}

fn predict(file: &Path, case: &Case) -> Prediction {
    match case.batch {
        Batch::Sft(_) => dry_run_sft(&load::<SftTable>(file, &[]).unwrap(), 1).unwrap().memory,
        Batch::Grpo(_) => dry_run_train(&load::<RlTable>(file, &[]).unwrap(), 1).unwrap().memory,
    }
}

/// A field of `/proc/self/status`, in bytes.
fn status(field: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

/// Not a test by itself: the process that [`compare`] starts for each
/// case.
#[test]
fn one_run() {
    let Some(folder) = std::env::var_os(RUN).map(PathBuf::from) else { return };
    let file = folder.join("run.toml");
    let before = status("VmRSS");
    match load::<SftTable>(&file, &[]) {
        Ok(config) => sft(&config, Start::New, &Peers::alone(), &Control::default()).unwrap(),
        Err(_) => {
            train(&load::<RlTable>(&file, &[]).unwrap(), Start::New, &Peers::alone(), &Control::default()).unwrap()
        }
    };
    std::fs::write(folder.join("peak"), (status("VmHWM") - before).to_string()).unwrap();
}

/// Predicted over measured, for each case.
fn compare(cases: &[Case]) {
    let mut wrong = Vec::new();
    for case in cases {
        let folder = project(case);
        let predicted = predict(&folder.path().join("run.toml"), case);
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["one_run", "--exact", "--nocapture"]).env(RUN, folder.path());
        // Freed memory goes back to the system at once: otherwise malloc keeps up to a fifth.
        let output = child.env("MALLOC_MMAP_THRESHOLD_", "1048576").output().unwrap();
        assert!(output.status.success(), "{}: {}", case.name, String::from_utf8_lossy(&output.stderr));
        let measured: u64 = std::fs::read_to_string(folder.path().join("peak")).unwrap().parse().unwrap();
        let share = predicted.total() as f64 / measured as f64;
        let mebibytes = [predicted.total() >> 20, measured >> 20];
        println!("{}: {mebibytes:?} MiB predicted and measured, {share:.2}\n{predicted}\n", case.name);
        if !(0.8..1.25).contains(&share) {
            wrong.push(format!("{}: {share:.2}", case.name));
        }
    }
    assert!(wrong.is_empty(), "predicted / measured: {wrong:?}");
}

#[test]
fn predictions_are_what_runs_take() {
    compare(&[
        sft_case("sft, float32", TIED, "float32", 4),
        grpo_case("grpo with kl, bfloat16", "bfloat16", 2, 48, "[train.loss.kl]"),
    ]);
}

#[test]
#[ignore = "takes some minutes: run it after a change of the forward pass or of the formulas"]
fn predictions_are_what_larger_runs_take() {
    compare(&[
        sft_case("sft, float32", TIED, "float32", 12),
        sft_case("sft, bfloat16", TIED, "bfloat16", 12),
        // A step takes more than the passes before it.
        Case { more: "optimizer.kind = \"adamw_8bit\"", ..sft_case("sft, 8-bit AdamW", TIED, "float32", 1) },
        Case { more: "gradient_checkpointing = true", ..sft_case("sft, checkpointing", TIED, "float32", 12) },
        sft_case("sft, float32, untied", UNTIED, "float32", 12),
        sft_case("sft, float32, qwen3", QWEN3, "float32", 12),
        sft_case("sft, bfloat16, qwen3", QWEN3, "bfloat16", 12),
        grpo_case("grpo with kl, float32", "float32", 4, 128, "[train.loss.kl]"),
        grpo_case("grpo, bfloat16", "bfloat16", 4, 128, ""),
        Case { lora: true, ..sft_case("sft with LoRA, float32", TIED, "float32", 12) },
        Case { lora: true, ..sft_case("sft with LoRA, bfloat16", TIED, "bfloat16", 12) },
    ]);
}
