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
    cuda_part(&include);
    let mut build = shim(&include);
    build
        .include("shim/gloo-declarations")
        .define("USE_C10D_GLOO", None)
        // Without these flags GCC does not vectorise loops that clamp a number or take a root.
        .flag("-fno-math-errno")
        .flag("-fno-trapping-math")
        .file("shim/shim.cpp");
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

/// A part of the shim, as libtorch was built: its headers hide what it would not have.
fn shim(include: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++17")
        // libtorch's headers warn about themselves.
        .warnings(false)
        // Symbols of libtorch's templates would double the time of this build.
        .debug(false)
        .include(include)
        .include(include.join("torch/csrc/api/include"))
        .define("_GLIBCXX_USE_CXX11_ABI", "1")
        .define("USE_DISTRIBUTED", None);
    build
}

/// Builds the part of the shim that needs libtorch's CUDA part, as a library that a running process loads after that
/// part. It is empty where libtorch has no such part.
fn cuda_part(include: &Path) {
    let Some(out) = std::env::var_os("OUT_DIR") else { return };
    let library = Path::new(&out).join("libgavel_cuda.so");
    println!("cargo::rustc-env=GAVEL_CUDA_LIBRARY={}", library.display());
    // PyTorch's wheel has CUDA's headers beside its own folder: the headers of CUDA 13, or of CUDA 12.
    let headers = ["cu13", "cuda_runtime"].map(|name| include.join("../../nvidia").join(name).join("include"));
    let headers = headers.into_iter().find(|folder| folder.join("cuda_runtime.h").exists());
    if let Err(error) = kernels(Path::new(&out)) {
        println!("cargo::error=cannot write the text of the kernels: {error}");
    }
    let done = match headers.filter(|_| include.join("../lib/libtorch_cuda.so").exists()) {
        Some(headers) => {
            let mut build = shim(include);
            build.include("shim/cuda-declarations").include(headers).include(&out).define("USE_C10D_NCCL", None);
            let mut link = build.get_compiler().to_command();
            let objects = build
                .files(["graph", "kernels", "memory", "nccl", "transfer"].map(|name| format!("shim/cuda/{name}.cpp")))
                .compile_intermediates();
            link.args(["-shared", "-s"]).args(objects).arg("-o").arg(&library);
            link.status().map(|status| status.success())
        }
        None => std::fs::write(&library, []).map(|()| true),
    };
    match done {
        Ok(true) => {}
        Ok(false) => println!("cargo::error=cannot link {}", library.display()),
        Err(error) => println!("cargo::error=cannot make {}: {error}", library.display()),
    }
}

/// Writes the text of the kernels as a string of C++, as it is compiled where it runs.
fn kernels(out: &Path) -> std::io::Result<()> {
    let text = std::fs::read_to_string("shim/cuda/kernels.cu")?;
    std::fs::write(out.join("kernels.inc"), format!("static const char *const KERNELS = R\"cuda({text})cuda\";\n"))
}
