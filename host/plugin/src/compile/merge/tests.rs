use super::*;
use crate::compile::globals::only_operator;
use crate::compile::here::compile_here;
use crate::compile::order::{Form, Order};
use wasmtime::component::{Component, Linker};
use wasmtime::{Engine, Store};

/// A program and its library in the form of a Python component: they share a
/// table and a memory, their places are globals, and the host's function needs
/// the memory, so that it is called through a table that is filled last.
const SHARED: &str = r#"(component
    (import "add" (func $add (param "text" string) (result u32)))
    (core module $shim
        (table (export "table") 1 funcref)
        (func (export "add") (param i32 i32) (result i32)
            (call_indirect (param i32 i32) (result i32) (local.get 0) (local.get 1) (i32.const 0))))
    (core module $main
        (table (export "table") 8 funcref)
        (memory (export "memory") 1)
        (global (export "memory-base") i32 (i32.const 64))
        (global (export "table-base") i32 (i32.const 3))
        (global (export "calls") (mut i32) (i32.const 5))
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) (i32.const 128)))
    (core module $library
        (type $unary (func (param i32) (result i32)))
        (import "env" "table" (table 0 funcref))
        (import "env" "memory" (memory 0))
        (import "env" "memory-base" (global $memory i32))
        (import "env" "table-base" (global $table i32))
        (import "env" "calls" (global $calls (mut i32)))
        (import "env" "add" (func $add (param i32 i32) (result i32)))
        (global $own i32 (global.get $memory))
        (func $count (param i32) (result i32)
            (global.set $calls (i32.add (global.get $calls) (i32.const 1)))
            (i32.add (local.get 0) (global.get $calls)))
        (func $text (param i32) (result i32) (call $add (global.get $own) (local.get 0)))
        (elem (global.get $table) func $count $text)
        (data (global.get $memory) "four")
        (func (export "call") (param i32 i32) (result i32)
            (call_indirect (type $unary) (local.get 1) (i32.add (global.get $table) (local.get 0)))))
    (core module $late
        (import "env" "table" (table 0 funcref))
        (import "library" "call" (func $call (param i32 i32) (result i32)))
        (func $twice (param i32) (result i32)
            (i32.mul (i32.const 2) (call $call (i32.const 1) (local.get 0))))
        (elem (i32.const 5) func $twice))
    (core module $fill
        (import "" "table" (table 1 funcref))
        (import "" "add" (func $add (param i32 i32) (result i32)))
        (elem (i32.const 0) func $add))
    (core instance $shim (instantiate $shim))
    (core instance $main (instantiate $main))
    (alias core export $shim "add" (core func $shim-add))
    (alias core export $main "memory" (core memory $memory))
    (alias core export $main "table" (core table $table))
    (alias core export $main "memory-base" (core global $memory-base))
    (alias core export $main "table-base" (core global $table-base))
    (alias core export $main "calls" (core global $calls))
    (core instance $env
        (export "table" (table $table))
        (export "memory" (memory $memory))
        (export "memory-base" (global $memory-base))
        (export "table-base" (global $table-base))
        (export "calls" (global $calls))
        (export "add" (func $shim-add)))
    (core instance $library (instantiate $library (with "env" (instance $env))))
    (core func $lowered (canon lower (func $add) (memory $memory)))
    (core instance $filled
        (export "table" (table $shim "table"))
        (export "add" (func $lowered)))
    (core instance (instantiate $fill (with "" (instance $filled))))
    (core instance (instantiate $late (with "env" (instance $main)) (with "library" (instance $library))))
    (func (export "call") (param "function" u32) (param "value" u32) (result u32)
        (canon lift (core func $library "call") (memory $memory) (realloc (core func $main "realloc"))))
)"#;

/// The results of calls of `call`, all in one instance, or why one failed.
fn results(component: &[u8], calls: &[(u32, u32)]) -> Vec<Result<u32, String>> {
    let engine = Engine::default();
    let component = Component::from_binary(&engine, component).unwrap();
    let mut linker = Linker::new(&engine);
    let add = |_: wasmtime::StoreContextMut<'_, ()>, (text,): (String,)| Ok((text.len() as u32 + 100,));
    linker.root().func_wrap("add", add).unwrap();
    for name in ["more", "most"] {
        linker.root().func_wrap(name, |_: wasmtime::StoreContextMut<'_, ()>, ()| Ok((0u32,))).unwrap();
    }
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &component).unwrap();
    let call = instance.get_typed_func::<(u32, u32), (u32,)>(&mut store, "call").unwrap();
    calls.iter().map(|call_of| call.call(&mut store, *call_of).map(|(found,)| found).map_err(root)).collect()
}

fn root(error: wasmtime::Error) -> String {
    error.root_cause().to_string()
}

fn parse(wat: &str) -> Vec<u8> {
    wat::parse_str(wat).unwrap()
}

/// The modules of a component.
fn modules(component: &[u8]) -> usize {
    Graph::parse(component).unwrap().modules.len()
}

/// Why a component is not merged.
fn reason(wat: &str) -> String {
    let component = parse(wat);
    assert!(matches!(merged(&component), Cow::Borrowed(same) if same == component));
    merge(&component).unwrap_err().to_string()
}

#[test]
fn a_merged_component_gives_the_same_results() {
    let component = parse(SHARED);
    let merged = merge(&component).unwrap();
    // The modules and the module that fills the table of the host's functions.
    assert_eq!((modules(&component), modules(&merged)), (5, 2));
    let calls = [(0, 1), (0, 1), (1, 4), (2, 3), (1, 2)];
    let found = results(&merged, &calls);
    assert_eq!(found, [Ok(7), Ok(8), Ok(104), Ok(206), Ok(102)]);
    assert_eq!(found, results(&component, &calls));
    // An entry that nobody filled.
    let empty = results(&merged, &[(3, 1)]);
    assert!(empty[0].as_ref().unwrap_err().contains("uninitialized element"), "{empty:?}");
    assert_eq!(empty, results(&component, &[(3, 1)]));
}

#[test]
fn components_of_a_language_have_equally_many_imports() {
    let importing = |names: &[&str]| {
        let each = |form: &str| names.iter().map(|name| form.replace("NAME", name)).collect::<String>();
        let lowered = each("(core func $NAME (canon lower (func $NAME)))");
        let passed = each(r#"(export "NAME" (func $NAME))"#);
        let text = SHARED
            .replacen("(import", &(each(r#"(import "NAME" (func $NAME (result u32)))"#) + "(import"), 1)
            .replacen("(core instance $env", &format!("{lowered}(core instance $env{passed}"), 1)
            .replacen(
                r#"(import "env""#,
                &(each(r#"(import "env" "NAME" (func $NAME (result i32)))"#) + r#"(import "env""#),
                1,
            )
            .replacen("(call $add", &(each("(drop (call $NAME))") + "(call $add"), 1);
        let component = parse(&text);
        let found = results(&merge(&component).unwrap(), &[(0, 1), (1, 4), (2, 3)]);
        assert_eq!(found, results(&component, &[(0, 1), (1, 4), (2, 3)]));
        imports(&merge(&component).unwrap())
    };
    // The module that fills the table, and the merged one.
    assert_eq!(importing(&["more"]), [2, 128]);
    assert_eq!(importing(&["more", "most"]), [2, 128]);
}

/// How many functions and tables each module of a component imports.
fn imports(component: &[u8]) -> Vec<u32> {
    let payloads = wasmparser::Parser::new(0).parse_all(component).map(Result::unwrap);
    let sections = payloads.filter_map(|payload| match payload {
        wasmparser::Payload::ImportSection(section) => Some(section.into_imports().count() as u32),
        _ => None,
    });
    sections.collect()
}

#[test]
fn an_instance_that_takes_a_merged_one_gets_what_it_imports() {
    // As components of JavaScript fill the table of the host's functions.
    let component = SHARED
        .replace(r#"(import "" "table" (table 1 funcref))"#, r#"(import "shim" "table" (table 1 funcref))"#)
        .replace(
            r#"(instantiate $fill (with "" (instance $filled)))"#,
            r#"(instantiate $fill (with "" (instance $filled)) (with "shim" (instance $shim)))"#,
        )
        .replace(r#"(export "table" (table $shim "table"))"#, "");
    let component = parse(&component);
    let merged = merge(&component).unwrap();
    assert_eq!((modules(&component), modules(&merged)), (5, 2));
    let calls = [(0, 1), (1, 4), (2, 3)];
    let found = results(&merged, &calls);
    assert_eq!(found, [Ok(7), Ok(104), Ok(206)]);
    assert_eq!(found, results(&component, &calls));
}

#[test]
fn the_same_bytes_are_merged_to_the_same_bytes_once() {
    let component = parse(SHARED);
    let merged = merge(&component).unwrap();
    assert_eq!(merge(&component).unwrap(), merged);
    assert!(matches!(merge(&merged), Err(NotMerged::Few)));
}

#[test]
fn places_in_tables_and_memories_become_numbers() {
    let component = merge(&parse(SHARED)).unwrap();
    let module = wasmparser::Parser::new(0).parse_all(&component).map(Result::unwrap);
    let mut offsets = Vec::new();
    for payload in module {
        match payload {
            wasmparser::Payload::ElementSection(elements) => {
                for element in elements {
                    if let wasmparser::ElementKind::Active { offset_expr, .. } = element.unwrap().kind {
                        offsets.push(only_operator(&offset_expr).unwrap().unwrap());
                    }
                }
            }
            wasmparser::Payload::DataSection(segments) => {
                for segment in segments {
                    if let wasmparser::DataKind::Active { offset_expr, .. } = segment.unwrap().kind {
                        offsets.push(only_operator(&offset_expr).unwrap().unwrap());
                    }
                }
            }
            _ => {}
        }
    }
    let number = |value| wasmparser::Operator::I32Const { value };
    // The table of the host's functions is filled by a module of its own.
    assert_eq!(offsets, [0, 3, 5, 64].map(number));
}

#[test]
fn functions_keep_their_names() {
    let names = |inner: &str| {
        let component = format!(
            r#"(component
            (core module $a (func {inner} (export "f") (result i32) unreachable))
            (core module $b (import "a" "f" (func $f (result i32))) (func $outer (export "g") (result i32) call $f))
            (core instance $a (instantiate $a))
            (core instance $b (instantiate $b (with "a" (instance $a))))
            (func (export "g") (result u32) (canon lift (core func $b "g"))))"#
        );
        let component = merge(&parse(&component)).unwrap();
        let engine = Engine::default();
        let linker = Linker::<()>::new(&engine);
        let mut store = Store::new(&engine, ());
        let instance = linker.instantiate(&mut store, &Component::from_binary(&engine, &component).unwrap()).unwrap();
        let call = instance.get_typed_func::<(), (u32,)>(&mut store, "g").unwrap();
        let error = call.call(&mut store, ()).unwrap_err();
        let trace = error.downcast_ref::<wasmtime::WasmBacktrace>().unwrap();
        trace.frames().iter().map(|frame| frame.func_name().map(str::to_owned)).collect::<Vec<_>>()
    };
    let some = |name: &str| Some(name.to_owned());
    assert_eq!(names("$inner"), [some("inner"), some("outer")]);
    // It has none, and does not get the name of an import.
    assert_eq!(names(""), [None, some("outer")]);
}

#[test]
fn what_cannot_be_merged_is_left_alone() {
    let two = |a: &str, b: &str| {
        let modules = format!("(core module $a {a}) (core module $b {b})");
        format!("(component {modules} (core instance (instantiate $a)) (core instance (instantiate $b)))")
    };
    merge(&parse(&two("", ""))).unwrap();
    let start = "(func $f) (start $f)";
    merge(&parse(&two("", start))).unwrap();
    assert_eq!(reason(&two(start, start)), "a module starts after another module's start function");
    let data = r#"(memory 1) (data (i32.const 0) "a")"#;
    assert_eq!(reason(&two(start, data)), "a module starts after another module's start function");
    merge(&parse(&two(start, "(memory 1)"))).unwrap();

    assert_eq!(reason("(component)"), "it has fewer than two modules that can be merged");
    assert_eq!(reason("(module)"), "it is a core module");
    let twice = "(component (core module $a) (core instance (instantiate $a)) (core instance (instantiate $a)))";
    assert_eq!(reason(twice), "a module has two instances");
    let passed_on = "a core module is imported, exported or passed on";
    for wat in [
        "(component (import \"m\" (core module $m)) (core instance (instantiate $m)))",
        "(component (core module $a) (export \"a\" (core module $a)))",
        "(component (core module $a) (component (alias outer 1 0 (core module $b))))",
        "(component (core module $a) (component $c (import \"m\" (core module))) (instance (instantiate $c (with \"m\" (core module $a)))))",
        "(component (component $c (core module $a) (export \"a\" (core module $a))) (instance $i (instantiate $c)) (alias export $i \"a\" (core module $m)))",
    ] {
        assert_eq!(reason(wat), passed_on, "{wat}");
    }
    let resource = r#"(component (core module $a (func (export "f") (param i32))) (core instance $a (instantiate $a))
        (type (resource (rep i32) (dtor (core func $a "f")))))"#;
    assert_eq!(reason(resource), "a resource has a destructor");
}

#[test]
fn a_start_that_would_come_before_the_host_functions_is_not_moved() {
    let with = |start: &str| SHARED.replace("(elem (i32.const 5) func $twice)", start);
    let start = "(func $start (drop (call $call (i32.const 1) (i32.const 1)))) (start $start)";
    assert_eq!(reason(&with(start)), "a module starts after an instance that must start later");
    // It fills the table of the host's functions again.
    let again = SHARED.replace(
        r#"(instantiate $late (with "env" (instance $main))"#,
        r#"(instantiate $late (with "env" (instance $shim))"#,
    );
    let again = again.replace("(elem (i32.const 5) func $twice)", "(elem (i32.const 0) func $twice)");
    assert_eq!(reason(&again), "a module starts after an instance that must start later");
    // The same, where the instance that fills it takes the whole shim.
    let whole = again
        .replace(r#"(import "" "table" (table 1 funcref))"#, r#"(import "shim" "table" (table 1 funcref))"#)
        .replace(r#"(export "table" (table $shim "table"))"#, "")
        .replace(r#"(with "" (instance $filled))"#, r#"(with "" (instance $filled)) (with "shim" (instance $shim))"#);
    assert_eq!(reason(&whole), "a module starts after an instance that must start later");
}

#[test]
fn damaged_bytes_are_no_fault_of_the_host() {
    let component = parse(SHARED);
    for at in 0..component.len() {
        let mut damaged = component.clone();
        damaged[at] ^= 1 << (at % 8);
        // Whatever comes of it, the compiler judges the result.
        let _ = merge(&damaged);
        let _ = merge(&component[..at]);
    }
}

/// A component with modules `$a`, and `$b` that takes its exports.
fn linked(a: &str, b: &str) -> String {
    format!(
        r#"(component (core module $a {a}) (core module $b {b}) (core instance $a (instantiate $a))
        (core instance $b (instantiate $b (with "a" (instance $a)))))"#
    )
}

/// Why the compiler refuses a component, if it does.
fn refusal(component: &[u8]) -> Option<String> {
    let order = Order { component, form: Form::Plain, fuel: false, functions: None };
    compile_here(order, None).err().map(|error| error.to_string())
}

#[test]
fn what_is_invalid_stays_so() {
    let many = "i64 ".repeat(1000);
    let hidden = (
        format!(r#"(func (export "f") (param {many}) unreachable)"#),
        r#"(import "a" "f" (func $f)) (func unreachable call $f call $f)"#.to_owned(),
    );
    let pairs = [
        (hidden.0.as_str(), hidden.1.as_str()),
        (r#"(global (export "g") (mut i32) (i32.const 0))"#, r#"(import "a" "g" (global i32))"#),
        (r#"(global (export "g") i32 (i32.const 0))"#, r#"(import "a" "g" (global (mut i32)))"#),
        (r#"(memory (export "m") 1)"#, r#"(import "a" "m" (memory 2))"#),
        (r#"(memory (export "m") 1)"#, r#"(import "a" "m" (memory 1 1))"#),
        (r#"(table (export "t") 1 funcref)"#, r#"(import "a" "t" (table 2 funcref))"#),
        (r#"(func (export "f"))"#, r#"(import "a" "f" (memory 1))"#),
        // The index is of the other module's function.
        (r#"(func (export "f"))"#, r#"(import "a" "f" (func)) (export "g" (func 1))"#),
        (r#"(export "f" (func 0))"#, r#"(func (export "f"))"#),
        (r#"(func (export "f") (result i32) i64.const 0)"#, r#"(import "a" "f" (func (result i32)))"#),
    ];
    for (a, b) in pairs {
        let component = parse(&linked(a, b));
        assert!(matches!(merge(&component), Err(NotMerged::Invalid(_))), "{a} {b}");
        assert!(refusal(&component).is_some(), "{a} {b}");
    }
}

/// The component of [`linked`] of two modules of bytes.
fn linked_bytes(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut component = wasm_encoder::Component::new();
    for data in [a, b] {
        let id = wasm_encoder::ComponentSectionId::CoreModule.into();
        component.section(&wasm_encoder::RawSection { id, data });
    }
    let mut instances = wasm_encoder::InstanceSection::new();
    let arguments: [(&str, wasm_encoder::ModuleArg); 0] = [];
    instances.instantiate(0, arguments).instantiate(1, arguments);
    component.section(&instances);
    component.finish()
}

#[test]
fn sections_that_fit_only_together_are_refused() {
    let module = |sections: &[&[u8]]| [b"\0asm\x01\0\0\0", sections.concat().as_slice()].concat();
    let (types, functions, body) = (b"\x01\x04\x01\x60\0\0", |count| [3, 1 + count, count], [0x0a, 4, 1, 2, 0, 0x0b]);
    let one = [functions(1).as_slice(), &[0]].concat();
    let two_bodies: &[u8] = &[0x0a, 7, 2, 2, 0, 0x0b, 2, 0, 0x0b];
    merge(&linked_bytes(&module(&[types, &one, &body]), &module(&[types, &one, &body]))).unwrap();
    let two_functions = [functions(2).as_slice(), &[0, 0]].concat();
    // `memory.init` needs the number of segments before the code.
    let init: &[u8] = &[0x0a, 0x0e, 1, 0x0c, 0, 0x41, 0, 0x41, 0, 0x41, 0, 0xfc, 8, 0, 0, 0x0b];
    let (memory, segment): (&[u8], &[u8]) = (&[5, 3, 1, 0, 1], &[0x0b, 4, 1, 1, 1, b'a']);
    let count: &[u8] = &[0x0c, 1, 1];
    let good = module(&[types, &one, memory, count, init, segment]);
    merge(&linked_bytes(&good, &module(&[]))).unwrap();
    for (a, b) in [
        (module(&[types, &two_functions, &body]), module(&[types, &one, two_bodies])),
        (module(&[types, &one, two_bodies]), module(&[types, &two_functions, &body])),
        (module(&[&one, types, &body]), module(&[])),
        (module(&[types, types, &one, &body]), module(&[])),
        (module(&[types, &one, memory, init, segment]), module(&[])),
    ] {
        let component = linked_bytes(&a, &b);
        assert!(matches!(merge(&component), Err(NotMerged::Invalid(_))), "{a:?} {b:?}");
        assert!(refusal(&component).is_some(), "{a:?} {b:?}");
    }
}

#[test]
fn a_reference_to_a_function_stays_declared() {
    // Only the export declares `$f`, and nothing outside of the modules uses it.
    let a = r#"(table (export "t") 1 funcref) (func $f (export "f"))
        (func (export "g") (table.set 0 (i32.const 0) (ref.func $f)))"#;
    let b = r#"(import "a" "g" (func $g)) (func (export "h") call $g)"#;
    let component = merge(&parse(&linked(a, b))).unwrap();
    assert_eq!(modules(&component), 1);
    assert_eq!(refusal(&component), None);
}

#[test]
fn a_place_that_is_computed_from_another_modules_global_is_merged() {
    let a = r#"(global (export "g") i32 (i32.add (i32.const 1) (i32.const 2)))"#;
    let b = r#"(import "a" "g" (global $g i32)) (memory 1) (global i32 (global.get $g))
        (data (i32.add (global.get $g) (i32.const 1)) "text")"#;
    let component = merge(&parse(&linked(a, b))).unwrap();
    assert_eq!(modules(&component), 1);
    assert_eq!(refusal(&component), None);
}

#[test]
fn modules_that_exceed_a_limit_together_are_left_alone() {
    let tables = "(table 0 funcref)".repeat(60);
    let component = parse(&linked(&tables, &tables));
    let NotMerged::InvalidResult(error) = merge(&component).unwrap_err() else { panic!("another reason") };
    assert_eq!(error.message(), "tables count exceeds limit of 100");
    assert_eq!(refusal(&component), None);

    let elements = format!("(func $f) (elem func {})", "$f ".repeat(600_000));
    let component = parse(&linked(&elements, &elements));
    let NotMerged::CostlyResult(error) = merge(&component).unwrap_err() else { panic!("another reason") };
    assert_eq!(error.to_string(), "elements of tables: 1200000, more than the 1000000 allowed");
}

#[test]
fn what_uses_more_than_the_known_features_is_left_alone() {
    let component = parse(&linked("(memory 1 1 shared)", ""));
    assert!(matches!(merge(&component), Err(NotMerged::Invalid(_))));
    assert_eq!(refusal(&component), None);
}

#[test]
fn a_list_that_many_instances_take_is_read_once() {
    let component = parse(SHARED);
    let graph = Graph::parse(&component).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    let mut lengths = |instance| graph.items_once(&mut seen, instance).unwrap().map(|items| items.len());
    // The shim, the program, their exports for the library, and the list for the table's module.
    assert_eq!([0, 1, 2, 4].map(&mut lengths), [None, None, Some(6), Some(2)]);
    assert_eq!([0, 1, 2, 4].map(&mut lengths), [None; 4]);
}
