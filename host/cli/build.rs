//! Lets `gavel-models` and the tests find the libtorch that they were linked with, and tells `gavel --version` what it is
//! built from.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let mut libtorch = "without libtorch".to_owned();
    if let Ok(lib) = std::env::var("DEP_TCH_LIBTORCH_LIB") {
        println!("cargo:rustc-link-arg-bin=gavel-models=-Wl,-rpath,{lib}");
        println!("cargo:rustc-link-arg-tests=-Wl,-rpath,{lib}");
        libtorch = format!("libtorch {}", libtorch_version(Path::new(&lib)).unwrap_or("unknown".into()));
    }
    println!("cargo:rustc-env=GAVEL_LIBTORCH={libtorch}");
    println!("cargo:rustc-env=GAVEL_COMMIT={}", commit().unwrap_or("unknown".into()));
    println!("cargo:rustc-env=GAVEL_CONTRACT={}", contract().unwrap_or("unknown".into()));
}

/// The version in the headers beside libtorch's libraries.
fn libtorch_version(lib: &Path) -> Option<String> {
    let include = lib.parent()?.join("include/torch");
    let headers = ["headeronly/version.h", "version.h", "csrc/api/include/torch/version.h"];
    let text = headers.iter().find_map(|header| std::fs::read_to_string(include.join(header)).ok())?;
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("#define TORCH_VERSION_{name} ")));
        line.map(|number| number.trim().to_owned())
    };
    Some(format!("{}.{}.{}", number("MAJOR")?, number("MINOR")?, number("PATCH")?))
}

/// The commit that is checked out. Cargo runs this program again after a commit or a checkout, and not otherwise.
fn commit() -> Option<String> {
    println!("cargo:rerun-if-env-changed=GAVEL_COMMIT");
    if let Ok(commit) = std::env::var("GAVEL_COMMIT") {
        return Some(commit);
    }
    let root = Path::new("../..").canonicalize().ok()?;
    // An archive of the sources may be unpacked within another repository.
    if Path::new(&git(&["rev-parse", "--show-toplevel"])?).canonicalize().ok()? != root {
        return None;
    }
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]).unwrap_or("HEAD".into());
    for name in ["HEAD", "logs/HEAD", "packed-refs", &branch] {
        // A path that is not there would count as changed at every build.
        if let Some(path) = git(&["rev-parse", "--git-path", name]).filter(|path| Path::new(path).exists()) {
            println!("cargo:rerun-if-changed={path}");
        }
    }
    git(&["rev-parse", "--short=12", "HEAD"])
}

fn git(args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

/// The contract that plugins are built for now, from the first line of its types.
fn contract() -> Option<String> {
    let types = "../../wit/types.wit";
    println!("cargo:rerun-if-changed={types}");
    let text = std::fs::read_to_string(types).ok()?;
    Some(text.lines().next()?.strip_prefix("package ")?.strip_suffix(';')?.to_owned())
}
