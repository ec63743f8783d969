use super::*;
use crate::compile::{Cache, Compiler, Form, LoadLimits, NotCompiled, Order};
use wasmparser::{Parser, Payload};

/// A component of this memory and these parts of its module, whose function `f` uses the memory.
fn component(memory: &str, module: &str, parts: &str) -> String {
    format!(
        r#"(component
            (core module $m {memory} (func (export "f")) {module})
            (core instance $i (instantiate $m))
            (alias core export $i "memory" (core memory $memory))
            {parts}
            (func (export "f") (canon lift (core func $i "f") (memory $memory))))"#
    )
}

const MEMORY_OF_4_MIB: &str = r#"(memory (export "memory") 64)"#;

fn refusal(wat: &str) -> String {
    rewrite(&wat::parse_str(wat).unwrap()).unwrap_err().to_string()
}

#[test]
fn only_instances_that_memory_globals_and_handles_describe_are_set_back() {
    let table = "(table 4 funcref)";
    let of_module = |module: &str| refusal(&component(MEMORY_OF_4_MIB, module, ""));
    let changes = "its code changes a table or drops a segment";
    for code in [
        "(func (table.set (i32.const 0) (ref.null func)))",
        "(func (drop (table.grow (ref.null func) (i32.const 1))))",
        "(func (table.fill (i32.const 0) (ref.null func) (i32.const 1)))",
        "(func (table.copy (i32.const 0) (i32.const 1) (i32.const 1)))",
        "(elem $e funcref (ref.null func)) (func (table.init $e (i32.const 0) (i32.const 0) (i32.const 1)))",
        "(elem $e funcref (ref.null func)) (func (elem.drop $e))",
        "(data $d \"x\") (func (data.drop $d))",
    ] {
        assert_eq!(of_module(&format!("{table} {code}")), changes, "{code}");
    }
    assert_eq!(of_module("(func $s) (start $s)"), "a module runs code when it starts");
    let no_number = "a global that changes does not start as a number";
    assert_eq!(of_module("(global (mut funcref) (ref.null func))"), no_number);
    assert_eq!(of_module("(global (mut v128) (v128.const i64x2 0 0))"), no_number);
    assert_eq!(of_module("(memory 1)"), "it has several memories");
    let outside = "(data (i32.const 0x3ffffe) \"long\")";
    assert_eq!(of_module(outside), "a data segment is outside of the memory");
    assert_eq!(
        of_module(r#"(global i32 (i32.const 0)) (data (global.get 0) "x")"#),
        "the place of a data segment is not a number"
    );
    let of_parts = |parts: &str| refusal(&component(MEMORY_OF_4_MIB, "", parts));
    assert_eq!(of_parts("(core instance (instantiate $m))"), "a module has two instances");
    assert_eq!(of_parts("(type (resource (rep i32)))"), "it has resources of its own");
    let fills = r#"(core module $f (import "" "m" (memory 1)) (data (i32.const 0) "x"))
        (core instance $e (export "m" (memory $memory))) (core instance (instantiate $f (with "" (instance $e))))"#;
    assert_eq!(of_parts(fills), "a module fills the memory of another");
    let lowers = r#"(import "g" (func $g))
        (component (import "g" (func $g)) (core func (canon lower (func $g))))"#;
    assert_eq!(of_parts(lowers), "a component within it has functions");
    assert_eq!(of_parts(r#"(import "m" (core module))"#), "it uses a module that is not its own");
    assert_eq!(of_parts(r#"(export "m" (core module $m))"#), "it exports a module");
    let inner = "(component (core module))";
    assert_eq!(of_parts(inner), "a module is in a component within it");
    let of_memory = |memory: &str| refusal(&component(&format!(r#"(memory (export "memory") {memory})"#), "", ""));
    assert_eq!(of_memory("63"), "its memory is so small that a new instance costs less");
    assert_eq!(of_memory("1025"), "its memory is larger than 64 MiB at the start");
    assert_eq!(refusal("(component)"), "it has no memory");
}

#[test]
fn a_component_only_gets_more_exports() {
    let globals = r#"(global (export "g") (mut i32) (i32.const 1)) (data (i32.const 9) "x")"#;
    let wasm = wat::parse_str(component(MEMORY_OF_4_MIB, globals, "")).unwrap();
    let rewritten = rewrite(&wasm).unwrap();
    let mut names = Vec::new();
    for payload in Parser::new(0).parse_all(&rewritten) {
        if let Payload::ComponentExportSection(exports) = payload.unwrap() {
            names.extend(exports.into_iter().map(|export| export.unwrap().name.name.to_owned()));
        }
    }
    assert_eq!(names, ["f", MEMORY_START, MEMORY, REST]);
}

#[test]
fn a_component_with_a_function_of_the_hosts_name_is_refused() {
    let compiler = Compiler { program: None, limits: LoadLimits::default() };
    let wat = component(MEMORY_OF_4_MIB, "", "")
        .replace(r#"(func (export "f") (canon"#, r#"(func (export "gavel-reset-rest") (canon"#);
    let wasm = wat::parse_str(wat).unwrap();
    for form in [Form::Plain, Form::Snapshot] {
        let order = Order { component: &wasm, form, fuel: false, functions: None };
        let compiled = compiler.compile(order, &Cache::default());
        let Err(NotCompiled::Invalid(what)) = compiled else { panic!("it is compiled") };
        assert_eq!(what, "it exports `gavel-reset-rest`, a name that the host keeps for itself");
    }
}
