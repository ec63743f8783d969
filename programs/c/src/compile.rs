//! Compiles C to a module of WebAssembly, with wcc. The compiler is such a module itself, and its files lie in memory.

use crate::files::{Files, link};
use crate::machine;
use wasmi::{Extern, Linker, Module, Store};

/// wcc, compiled for WASI.
const COMPILER: &[u8] = include_bytes!(env!("WCC_WASM"));
/// The names and texts of the headers.
const HEADERS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/headers.rs"));
/// The bytes of C's stack.
const STACK: u32 = 8 << 20;

/// Compiles a program of one file, with the start that every program has. The functions `exports` can be called.
pub fn compile(source: &str) -> Result<Vec<u8>, String> {
    let stack = format!("--stack-size={STACK}");
    let arguments = [
        "wcc",
        "-nostdlib",
        "-nodefaultlibs",
        &stack,
        "--entry-point=__run",
        "-e",
        "__call",
        "-Wl,--allow-undefined",
        "-o",
        "/out.wasm",
        "/usr/include/crt.c",
        "/main.c",
    ];
    let mut files = Files::new(&arguments);
    for (name, text) in HEADERS {
        files.add(&format!("usr/include/{name}"), text.as_bytes());
    }
    files.add("main.c", source.as_bytes());
    let engine = machine::engine();
    let unusable = |error: wasmi::Error| format!("the compiler cannot be run: {error}");
    let module = Module::new(&engine, COMPILER).map_err(unusable)?;
    let mut linker = Linker::new(&engine);
    link(&mut linker).map_err(unusable)?;
    let mut store = Store::new(&engine, files);
    let instance = linker.instantiate_and_start(&mut store, &module).map_err(unusable)?;
    store.data_mut().memory = instance.get_export(&store, "memory").and_then(Extern::into_memory);
    let start = instance.get_typed_func::<(), ()>(&store, "_start").map_err(unusable)?;
    let status = match start.call(&mut store, ()) {
        Ok(()) => 0,
        Err(error) => error.i32_exit_status().ok_or_else(|| format!("the compiler failed: {error}"))?,
    };
    let mut files = store.into_data();
    match (status, files.take("out.wasm")) {
        (0, Some(wasm)) => Ok(wasm),
        _ => Err(files.words()),
    }
}
