//! Names the headers of C's library for `src/compile.rs`.

use std::error::Error;
use std::path::Path;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("include");
    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rerun-if-env-changed=WCC_WASM");
    let mut names: Vec<_> =
        fs::read_dir(&folder)?.map(|entry| Ok(entry?.file_name())).collect::<Result<_, Box<dyn Error>>>()?;
    names.sort();
    let mut list = String::from("&[");
    for name in names {
        let path = folder.join(&name);
        list += &format!("({:?}, include_str!({path:?})),", name.to_string_lossy());
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("headers.rs"), list + "]")?;
    Ok(())
}
