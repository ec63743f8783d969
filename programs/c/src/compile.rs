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

/// Compiles a program of one file, with the start that every program has. A function of the library that is called
/// without its header has its header, as gcc knows such functions.
pub fn compile(source: &str) -> Result<Vec<u8>, String> {
    let (result, words) = compiled(source);
    let headers = missing(&words);
    if headers.is_empty() {
        return result.ok_or(words);
    }
    let includes: String = headers.iter().map(|name| format!("#include <{name}>\n")).collect();
    let (result, words) = compiled(&format!("{includes}#line 1 \"main.c\"\n{source}"));
    result.ok_or(words)
}

/// The headers of the functions that the compiler did not know.
fn missing(words: &str) -> Vec<&'static str> {
    let mut headers = Vec::new();
    for name in words.split("implicit declaration of `").skip(1).filter_map(|rest| rest.split('\'').next()) {
        let declares = |text: &str| {
            text.match_indices(name)
                .any(|(at, _)| text[at + name.len()..].starts_with('(') && text[..at].ends_with([' ', '*']))
        };
        let found = HEADERS.iter().find(|(header, text)| header.ends_with(".h") && declares(text));
        headers.extend(found.map(|(header, _)| *header).filter(|header| !headers.contains(header)));
    }
    headers
}

/// Runs the compiler. Returns the module, and what it said.
fn compiled(source: &str) -> (Option<Vec<u8>>, String) {
    run(source).unwrap_or_else(|error| (None, error))
}

fn run(source: &str) -> Result<(Option<Vec<u8>>, String), String> {
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
    let wasm = files.take("out.wasm").filter(|_| status == 0);
    Ok((wasm, files.words()))
}

#[cfg(test)]
mod tests {
    #[test]
    fn library_functions_have_headers() {
        let words = "a: warning: implicit declaration of `strlen'\nb: implicit declaration of `foo'\n\
                     c: implicit declaration of `memcpy'\nd: implicit declaration of `sqrt'\n";
        assert_eq!(super::missing(words), ["string.h", "math.h"]);
    }
}
