//! Builds the C++ shim over the fused optimiser and links it to libtorch.

use std::path::Path;

fn main() {
    // torch-sys links `tch` and tells its direct dependents where libtorch lies.
    let Ok(lib) = std::env::var("DEP_TCH_LIBTORCH_LIB") else {
        println!("cargo::error=torch-sys did not say where libtorch lies (DEP_TCH_LIBTORCH_LIB is not set)");
        return;
    };
    let include = Path::new(&lib).with_file_name("include");
    println!("cargo::rerun-if-changed=shim");
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        // libtorch's headers warn about themselves.
        .warnings(false)
        .include(&include)
        .include(include.join("torch/csrc/api/include"))
        .define("_GLIBCXX_USE_CXX11_ABI", "1")
        .file("shim/adamw.cpp")
        .compile("gavel_adamw");
    // The shim needs symbols of libtorch, so the linker must meet these after it.
    println!("cargo::rustc-link-search=native={lib}");
    println!("cargo::rustc-link-lib=dylib=torch_cpu");
    println!("cargo::rustc-link-lib=dylib=c10");
    println!("cargo::rustc-link-arg=-Wl,-rpath,{lib}");
}
