use super::*;
use crate::compile::{Cache, Compiler, Form, LoadLimits, Order, reset, snapshot};
use std::os::unix::fs::DirEntryExt;
use std::path::Path;
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Module, Store};

/// A component of a module with this memory, data and globals, whose function `f` counts how often it was called and
/// adds a byte of its memory.
fn component(memory: &str, counted: i32, module: &str, parts: &str) -> Vec<u8> {
    let wat = format!(
        r#"(component
            (core module $first (func (export "one") (result i32) i32.const 1))
            (core instance $first (instantiate $first))
            (core module $m
                (import "first" "one" (func $one (result i32)))
                {memory}
                (table 2 funcref) (elem (i32.const 1) $one)
                (global $fixed i32 (i32.const 3))
                (global $never-set (mut i64) (i64.const 5))
                (global $counted (mut i32) (i32.const {counted}))
                (func (export "f") (result i32)
                    (global.set $counted (i32.add (global.get $counted) (call_indirect (result i32) (i32.const 1))))
                    (i32.add (global.get $counted) (i32.load8_u (global.get $fixed))))
                {module})
            (core instance $i (instantiate $m (with "first" (instance $first))))
            (core module $user (import "m" "memory" (memory 2)) (func (export "size") (result i32) memory.size))
            (core instance $user (instantiate $user (with "m" (instance $i))))
            (func (export "f") (result u32) (canon lift (core func $i "f")))
            (func (export "size") (result u32) (canon lift (core func $user "size")))
            {parts})"#
    );
    wat::parse_str(wat).unwrap()
}

/// More than the code of the small modules.
const SOME: usize = 20;

const MEMORY: &str = r#"(memory (export "memory") 2) (data (i32.const 2) "\00\07")"#;

fn built() -> Vec<u8> {
    component(MEMORY, 10, "", "")
}

/// What two calls of `f` return, and the size of the memory.
fn results(component: &[u8], code: Option<&[u8]>) -> [u32; 3] {
    let engine = Engine::default();
    let mut linker = Linker::new(&engine);
    if let Some(code) = code {
        linker.root().module(&code_name(0), &Module::new(&engine, code).unwrap()).unwrap();
    }
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &Component::new(&engine, component).unwrap()).unwrap();
    ["f", "f", "size"].map(|name| {
        let function = instance.get_typed_func::<(), (u32,)>(&mut store, name).unwrap();
        function.call(&mut store, ()).unwrap().0
    })
}

fn refusal(component: &[u8]) -> String {
    split_off(component, SOME).err().unwrap().to_string()
}

#[test]
fn a_split_component_does_as_before() {
    for (memory, counted, expected) in [
        (MEMORY, 10, [18, 19, 2]),
        (r#"(memory (export "memory") 5 9) (data (i32.const 3) "\ff")"#, -1, [255, 256, 5]),
        (r#"(memory (export "memory") 2)"#, 0, [1, 2, 2]),
    ] {
        let component = component(memory, counted, "", "");
        assert_eq!(results(&component, None), expected);
        let Split { component, code, .. } = split_off(&component, SOME).unwrap();
        assert_eq!(results(&component, Some(&code[0])), expected);
    }
}

#[test]
fn components_that_differ_in_data_have_one_code() {
    let code = |component: &[u8]| split_off(component, SOME).unwrap().code.swap_remove(0);
    let built = built();
    let other = component(r#"(memory (export "memory") 5) (data (i32.const 3) "\ff")"#, -1, "", "");
    assert_eq!(code(&other), code(&built));
    let instrumented = snapshot::instrument(&built).unwrap();
    assert_eq!(code(&instrumented), code(&built), "a snapshot can be taken of it");
    let large = r#"(memory (export "memory") 64)"#;
    let uses = r#"(alias core export $i "memory" (core memory $memory))
        (func (export "g") (result u32) (canon lift (core func $i "f") (memory $memory)))"#;
    let large = component(large, 0, "", uses);
    let with_reset = reset::with_reset(&large);
    assert_ne!(with_reset, large);
    assert_eq!(code(&with_reset), code(&built), "it can be set back");
    assert_ne!(code(&component(MEMORY, 10, "(func)", "")), code(&built));
}

#[test]
fn only_components_whose_parts_can_be_moved_are_split() {
    let of_module = |module: &str| refusal(&component(MEMORY, 0, module, ""));
    assert_eq!(of_module("(func $s) (start $s)"), "it runs code when it starts");
    assert_eq!(of_module("(data (global.get $fixed) \"x\")"), "the place of a data segment is not a number");
    assert_eq!(of_module("(memory 1)"), "it has no module with much code whose data can be told from it");
    let uses = "(data $d (i32.const 0) \"x\") (func (data.drop $d))";
    assert_eq!(of_module(uses), "its code uses data segments");
    let no_number = "(global $r (mut funcref) (ref.null func)) (func (global.set $r (ref.null func)))";
    assert_eq!(of_module(no_number), "a global that changes does not start as a number");
    let taken = r#"(func (export "gavel-global-2"))"#;
    assert_eq!(of_module(taken), "it exports something under a name that the host uses");

    let of_parts = |parts: &str| refusal(&component(MEMORY, 0, "", parts));
    assert_eq!(
        of_parts(r#"(core instance (instantiate $m (with "first" (instance $first))))"#),
        "it has no module with much code whose data can be told from it"
    );
    assert_eq!(of_parts(r#"(import "m" (core module))"#), "it has types of modules");
    assert_eq!(of_parts("(core type (module))"), "it has types of modules");
    let tables = r#"(core module $tables (table 1 funcref) (table 1 funcref))
        (core instance (instantiate $tables)) (core instance (instantiate $tables))
        (core instance (instantiate $tables)) (core instance (instantiate $tables))"#;
    assert_eq!(of_parts(tables), "its instances have more tables than a slot of a pool");
    assert_eq!(of_parts(r#"(export "m" (core module $m))"#), "it gives a module away");
    assert_eq!(of_parts("(component (core module))"), "a module is in a component within it");
    assert_eq!(of_parts("(component (alias outer 1 $m (core module)))"), "it uses a module that is not its own");
    assert_eq!(
        split_off(&built(), 1 << 10).err().unwrap().to_string(),
        "it has no module with much code whose data can be told from it"
    );
}

#[test]
fn a_module_without_data_is_split_off_whole() {
    let memory = r#"(core module $memory (memory (export "memory") 3) (data (i32.const 0) "\05"))"#;
    let code = r#"(core module $code (import "m" "memory" (memory 1))
        (func (export "f") (result i32) (i32.add (memory.size) (i32.load8_u (i32.const 0)))))"#;
    let wat = |parts: &str| {
        let wat = format!(
            r#"(component {memory} {code}
                (core instance $m (instantiate $memory)) (core instance $c (instantiate $code (with "m" (instance $m))))
                {parts}
                (func (export "f") (result u32) (canon lift (core func $c "f")))
                (func (export "size") (result u32) (canon lift (core func $c "f"))))"#
        );
        wat::parse_str(wat).unwrap()
    };
    let built = wat("");
    // The module with the memory has no code.
    let Split { component, code, .. } = split_off(&built, 1).unwrap();
    assert_eq!(code.len(), 1);
    assert_eq!(results(&component, Some(&code[0])), [8, 8, 8]);
    let other = "(core module (func)) (core module (memory 1) (func))";
    let Split { code: others, .. } = split_off(&wat(other), 1).unwrap();
    assert_eq!(others.len(), 2);
    assert_eq!(others[0], code[0]);
}

#[test]
fn an_invalid_component_stays_invalid() {
    let imports = |ty: &str| {
        let parts = format!(
            r#"(core module $n (import "m" {ty}))
            (core instance (instantiate $n (with "m" (instance $i))))"#
        );
        split_off(&component(MEMORY, 0, "", &parts), SOME).err().map(|error| error.to_string())
    };
    assert_eq!(imports(r#""memory" (memory 2)"#), None);
    let refused = imports(r#""memory" (memory 3)"#).unwrap();
    assert!(refused.contains("mismatch in memory limits"), "{refused}");
    let refused = imports(r#""gavel-global-2" (global (mut i32))"#).unwrap();
    assert!(refused.contains("does not export an item named `gavel-global-2`"), "{refused}");
}

#[test]
fn no_component_imports_something_else_as_its_code() {
    let imports = |name: &str| wat::parse_str(format!(r#"(component (import "{name}" (func)))"#)).unwrap();
    let compiler = Compiler { program: None, limits: LoadLimits::default() };
    let refusal = |component: &[u8]| {
        let order = Order { component, form: Form::Plain, fuel: false, functions: None };
        compiler.compile(order, &Cache::default()).err().map(|error| error.to_string())
    };
    let refused = "it imports `gavel-code-12`, a name that the host keeps for itself";
    assert_eq!(refusal(&imports("gavel-code-12")).as_deref(), Some(refused));
    assert_eq!(refusal(&imports("gavel-code-x")), None);
}

/// The files of a cache with code, by their numbers, which new files do not share.
fn compiled(folder: &Path) -> Vec<u64> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let code = entries.filter(|entry| entry.path().extension().is_some_and(|kind| kind == "cwasm"));
    code.map(|entry| entry.ino()).collect()
}
#[test]
fn code_is_compiled_once_as_long_as_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let cache = Cache::open(folder.path());
    let compiler = Compiler { program: None, limits: LoadLimits::default() };
    // Each takes 12 bytes.
    let much = format!("(func {})", "(drop (i64.const -9223372036854775808))".repeat(LEAST / 12 + 1));
    let compile = |counted: i32| {
        let component = component(MEMORY, counted, &much, "");
        let order = Order { component: &component, form: Form::Plain, fuel: false, functions: None };
        let code = compiler.compile(order, &cache).unwrap();
        assert_eq!(code.modules.len(), 1);
        code.modules[0].hash()
    };
    let hash = compile(1);
    let first = compiled(folder.path());
    assert_eq!(first.len(), 1);
    assert_eq!((compile(2), compiled(folder.path())), (hash.clone(), first));
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    assert_eq!((compile(3), compiled(folder.path()).len()), (hash, 1));
}
