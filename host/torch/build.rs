//! Builds the C++ shim over libtorch and links it to libtorch.

use std::path::Path;

fn main() {
    // torch-sys links `tch` and tells its direct dependents where libtorch lies.
    let Ok(lib) = std::env::var("DEP_TCH_LIBTORCH_LIB") else {
        println!("cargo::error=torch-sys did not say where libtorch lies (DEP_TCH_LIBTORCH_LIB is not set)");
        return;
    };
    let include = Path::new(&lib).with_file_name("include");
    println!("cargo::rerun-if-changed=shim");
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        // libtorch's headers warn about themselves.
        .warnings(false)
        .include(&include)
        .include(include.join("torch/csrc/api/include"))
        .include("shim/gloo-declarations")
        .define("_GLIBCXX_USE_CXX11_ABI", "1")
        // As libtorch was built: its headers hide what it would not have.
        .define("USE_DISTRIBUTED", None)
        .define("USE_C10D_GLOO", None)
        // Without these flags GCC does not vectorise loops that clamp a number or take a root.
        .flag("-fno-math-errno")
        .flag("-fno-trapping-math")
        .files(["shim/autograd.cpp", "shim/collectives.cpp", "shim/layer.cpp", "shim/optimizer.cpp"]);
    // libtorch on Linux computes on the threads of GCC's OpenMP. Elsewhere the shim computes on one.
    let threads =
        std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") && !build.get_compiler().is_like_clang();
    build.flag(if threads { "-fopenmp" } else { "-fopenmp-simd" });
    build.compile("gavel_torch");
    // The shim needs symbols of libtorch, so the linker must meet these after it.
    println!("cargo::rustc-link-search=native={lib}");
    println!("cargo::rustc-link-lib=dylib=torch_cpu");
    println!("cargo::rustc-link-lib=dylib=c10");
    if threads {
        // The OpenMP that comes with libtorch: another one would bring a second pool of threads.
        println!("cargo::rustc-link-lib=dylib:+verbatim=libgomp.so.1");
    }
    println!("cargo::rustc-link-arg=-Wl,-rpath,{lib}");
}
