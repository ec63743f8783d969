//! Tests find libtorch through the rpath of their executables.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if let Ok(folder) = std::env::var("DEP_TCH_LIBTORCH_LIB") {
        println!("cargo:rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
