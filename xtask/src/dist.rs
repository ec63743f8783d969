//! `cargo xtask dist`: a release archive that runs in any folder.

mod check;
mod licences;
mod runpath;

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use crate::{guests, python, setup, ui};
use std::fs;
use std::path::{Path, PathBuf};

/// The README of the archive.
const README: &str = include_str!("dist/README.md");

/// The completions by shell, each where a package of a distribution has them.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/gavel"),
    ("zsh", "share/zsh/site-functions/_gavel"),
    ("fish", "share/fish/vendor_completions.d/gavel.fish"),
];

/// The program that is linked with libtorch.
const MODELS: &str = "gavel-models";

/// Builds everything, packs it into `target/dist/NAME.tar.gz`, and checks that the archive runs in another folder.
pub fn run(root: &Path) -> Result<()> {
    let libtorch = setup::all(root)?;
    let programs = guests::build_shipped(root)?;
    let python = python::environment()?;
    let built = build_host(root, &libtorch)?;
    let name = format!("gavel-{}-{}", env!("CARGO_PKG_VERSION"), target()?);
    let dist = root.join("target/dist");
    let folder = dist.join(&name);
    ui::step("files", || {
        remove(&folder)?;
        binaries(&built, &folder)?;
        libraries(&built.join(MODELS), &libtorch, &folder.join("lib"))?;
        components(root, &programs, &folder)?;
        sums(&folder)?;
        pages(root, &folder)?;
        completions(&folder)?;
        licences::write(root, &libtorch, &python, &folder)?;
        Ok(((), format!("{}, {} MB", shown(&folder, root), size(&folder)? / 1_000_000)))
    })?;
    let archive = dist.join(format!("{name}.tar.gz"));
    ui::step("archive", || {
        pack(&dist, &name, &archive)?;
        Ok(((), format!("{}, {} MB", shown(&archive, root), size(&archive)? / 1_000_000)))
    })?;
    ui::step("check", || {
        let place = dist.join("check");
        remove(&place)?;
        check::unpacked(&archive, &name, &place)?;
        remove(&place)?;
        Ok(((), "unpacked in another folder, it scores a row with an empty HOME and PATH".into()))
    })
}

/// Builds the programs as `cargo build --release` does; gives their folder.
fn build_host(root: &Path, libtorch: &Path) -> Result<PathBuf> {
    ui::loud_step("host", "building", || {
        Call::cargo(["build", "--release", "--workspace", "--bins"])
            .within(root)
            .env("LIBTORCH", libtorch)
            .show("cannot build the host")
            .map_err(|failure| failure.hint("see the compiler's message above"))?;
        Ok((root.join("target/release"), "target/release/gavel, target/release/gavel-models".into()))
    })
}

/// The platform that the binary is built for, such as `x86_64-unknown-linux-gnu`.
fn target() -> Result<String> {
    let about = Call::new("rustc", ["-vV"]).read("cannot run rustc")?;
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Failure::new("rustc does not say what it builds for"))
}

/// Copies the binaries without their debugging information, which is half of them. The names of functions stay, for the
/// backtrace of a panic.
fn binaries(built: &Path, folder: &Path) -> Result<()> {
    let bin = folder.join("bin");
    make(&bin)?;
    for name in ["gavel", MODELS] {
        Call::new("strip", [Path::new("--strip-debug"), Path::new("-o"), &bin.join(name), &built.join(name)])
            .read("cannot strip the binary")
            .map_err(|failure| failure.hint("install it (Debian, Ubuntu: apt install binutils)"))?;
    }
    runpath::set(&bin.join(MODELS), runpath::BESIDE)
}

/// Copies the libraries of libtorch that the binary loads; the system has the others.
fn libraries(built: &Path, libtorch: &Path, folder: &Path) -> Result<()> {
    make(folder)?;
    let loaded = Call::new("ldd", [built]).env("LD_LIBRARY_PATH", libtorch.join("lib"));
    let loaded = loaded.read("cannot list the libraries of the binary")?;
    // PyTorch's wheel has the libraries of CUDA beside its own folder.
    let home = libtorch.parent().unwrap_or(libtorch);
    let mut found = 0;
    for line in loaded.lines() {
        let Some(path) = line.split(" => ").nth(1).and_then(|rest| rest.split(" (").next()).map(Path::new) else {
            continue;
        };
        if path.starts_with(home)
            && let Some(name) = path.file_name()
        {
            copy(path, &folder.join(name))?;
            found += 1;
        }
    }
    match found {
        0 => Err(Failure::new("the binary loads no library of libtorch").why(loaded)),
        _ => Ok(()),
    }
}

/// Copies the standard plugins and the programs that they run.
fn components(root: &Path, programs: &[String], folder: &Path) -> Result<()> {
    let built = root.join("target/plugins");
    for path in entries(&built)? {
        let (Some(name), Some(stem)) = (path.file_name(), path.file_stem()) else { continue };
        if path.extension().is_none_or(|kind| kind != "wasm") {
            continue;
        }
        let is_program = programs.iter().any(|program| stem == program.as_str());
        let place = folder.join(if is_program { "programs" } else { "plugins" });
        make(&place)?;
        copy(&path, &place.join(name))?;
    }
    Ok(())
}

/// Writes the list of the components and their hashes, with which `gavel doctor` and `b3sum --check` compare.
fn sums(folder: &Path) -> Result<()> {
    let mut lines = Vec::new();
    for place in ["plugins", "programs"] {
        for path in
            entries(&folder.join(place))?.iter().filter(|path| path.extension().is_some_and(|kind| kind == "wasm"))
        {
            let component = fs::read(path).map_err(|error| cannot("read", path, &error))?;
            lines.push(format!("{}  {}\n", blake3::hash(&component), shown(path, folder)));
        }
    }
    // The order of the files.
    lines.sort_unstable_by(|a, b| a.split(' ').next_back().cmp(&b.split(' ').next_back()));
    let path = folder.join("B3SUMS");
    fs::write(&path, lines.concat()).map_err(|error| cannot("write", &path, &error))
}

/// Copies the contract and the pages of the documentation, so that their links to each other work.
fn pages(root: &Path, folder: &Path) -> Result<()> {
    let readme = folder.join("README.md");
    fs::write(&readme, README).map_err(|error| cannot("write", &readme, &error))?;
    for tree in ["docs", "wit"] {
        copy_tree(&root.join(tree), &folder.join(tree))?;
    }
    for plugin in entries(&root.join("plugins"))? {
        let page = plugin.join("README.md");
        if let Some(name) = plugin.file_name().filter(|_| page.is_file()) {
            let place = folder.join("plugins").join(name);
            make(&place)?;
            copy(&page, &place.join("README.md"))?;
        }
    }
    Ok(())
}

/// Writes completions and man pages, as the packed binary prints them.
fn completions(folder: &Path) -> Result<()> {
    let gavel = folder.join("bin/gavel");
    for (shell, place) in COMPLETIONS {
        let script = Call::new(&gavel, ["completions", shell]).read("the packed binary does not run")?;
        let place = folder.join(place);
        make(place.parent().unwrap_or(folder))?;
        fs::write(&place, script + "\n").map_err(|error| cannot("write", &place, &error))?;
    }
    let pages = folder.join("share/man/man1");
    Call::new(&gavel, [Path::new("man"), &pages]).read("cannot write the man pages").map(drop)
}

/// Packs the folder `name` of `dist`; the same files give the same archive.
fn pack(dist: &Path, name: &str, archive: &Path) -> Result<()> {
    let options = ["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--mtime=@0", "-czf"];
    let arguments = options.map(Path::new).into_iter().chain([archive, Path::new("-C"), dist, Path::new(name)]);
    Call::new("tar", arguments).read("cannot pack the archive").map(drop)
}

fn make(folder: &Path) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| cannot("make", folder, &error))
}

fn remove(folder: &Path) -> Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(cannot("remove", folder, &error)),
        _ => Ok(()),
    }
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|error| cannot("read", folder, &error))?;
    entries.map(|entry| Ok(entry.map_err(|error| cannot("read", folder, &error))?.path())).collect()
}

fn copy_tree(from: &Path, to: &Path) -> Result<()> {
    make(to)?;
    for path in entries(from)? {
        let Some(name) = path.file_name() else { continue };
        match path.is_dir() {
            true => copy_tree(&path, &to.join(name))?,
            false => copy(&path, &to.join(name))?,
        }
    }
    Ok(())
}

/// Bytes of a file, or of all files of a folder.
fn size(path: &Path) -> Result<u64> {
    if path.is_dir() {
        return entries(path)?.iter().map(|path| size(path)).sum();
    }
    Ok(fs::metadata(path).map_err(|error| cannot("read", path, &error))?.len())
}

fn shown(path: &Path, root: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(drop).map_err(|error| cannot("copy", from, &error))
}
