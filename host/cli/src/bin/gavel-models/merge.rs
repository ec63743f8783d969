//! `gavel merge`

use anyhow::{Context, Result, bail};
use clap::Args;
use gavel::terminal::outln;
use gavel_data::files::finish_folder;
use gavel_policy::{Device, Model, ModelFolder, stored_kind};
use gavel_runs::check_weights;
use gavel_text::TextModel;
use std::path::PathBuf;
use std::process::ExitCode;

/// Merge a LoRA adapter into its base.
///
/// The result is a plain checkpoint with the dtype of the base. transformers, vLLM and every gavel command load it like
/// any other.
#[derive(Args)]
#[command(
    after_help = "Example:\n  gavel merge -m runs/lora -o merged\n  gavel generate -m merged --prompt 'Once upon'"
)]
pub struct MergeArgs {
    /// The adapter: a folder with adapter_config.json, which names its base, and adapter_model.safetensors; or the folder
    /// of a run, for its newest checkpoint; or a name on the hub.
    #[arg(long, short, value_name = "DIR")]
    model: PathBuf,
    /// The folder to write, which must be new or empty.
    #[arg(long, short, value_name = "DIR")]
    output: PathBuf,
}

pub fn run(args: MergeArgs) -> Result<ExitCode> {
    let MergeArgs { model, output } = args;
    let model = gavel_hub::model(&model)?.into_owned();
    check_weights(&model)?;
    let folder = ModelFolder::open(&model)?;
    if folder.adapter.is_none() {
        bail!("{} has no adapter_config.json: there is no adapter to merge", model.display());
    }
    if output.exists() && output.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        bail!("{} is not empty\nhint: give a new folder: -o DIR", output.display());
    }
    let text = TextModel::load_with(&folder.text, &folder.base)?;
    let merged = Model::load(&model, stored_kind(&model)?, Device::Cpu)?.merge()?;
    // The folder appears whole or not at all.
    let name = output.file_name().with_context(|| format!("{} does not name a folder", output.display()))?;
    let partial = output.with_file_name(format!("{}.partial", name.to_string_lossy()));
    if partial.exists() {
        std::fs::remove_dir_all(&partial).with_context(|| format!("cannot remove {}", partial.display()))?;
    }
    let write = || -> Result<()> {
        merged.save(&partial)?;
        text.save(&partial).with_context(|| format!("cannot write the tokenizer into {}", partial.display()))?;
        finish_folder(&partial, &output)
            .with_context(|| format!("cannot rename {} to {}", partial.display(), output.display()))
    };
    if let Err(error) = write() {
        // An error here is ignored: the earlier one is reported.
        let _ = std::fs::remove_dir_all(&partial);
        return Err(error);
    }
    outln!("merged: {} with {} -> {}", folder.base.display(), model.display(), output.display());
    Ok(ExitCode::SUCCESS)
}
