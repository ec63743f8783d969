//! The bindings in the SDK for Rust are those that `wit-bindgen` generates from
//! `wit/`. `SNAPSHOTS=overwrite` writes them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use snapbox::data::DataFormat;
use snapbox::{Assert, Data};
use std::path::Path;
use wit_bindgen_core::Files;
use wit_bindgen_core::wit_parser::{PackageId, Resolve};
use wit_bindgen_rust::{Opts, WithOption};

/// The imports of the SDK.
const IMPORTS: [&str; 9] =
    ["types", "samples", "references", "chat", "reward-model", "exec", "tasks", "policy", "tools"];
/// The exports of plugins, each with the interfaces whose types it shares with
/// the imports.
const EXPORTS: [(&str, &[&str]); 8] = [
    ("lifecycle", &[]),
    ("reward", &["types", "samples", "references"]),
    ("judger", &["types", "samples", "references"]),
    ("taskset", &["types"]),
    ("tool", &["types"]),
    ("agent", &["types", "tasks"]),
    ("advantage", &["types"]),
    ("sampler", &["types"]),
];

/// The contract, and its package.
fn contract() -> (Resolve, PackageId) {
    let mut resolve = Resolve::default();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit");
    let (package, _) = resolve.push_dir(folder).unwrap();
    (resolve, package)
}

/// The full name of an interface of the contract.
fn full(name: &str) -> String {
    let (resolve, package) = contract();
    resolve.id_of_name(package, name)
}

/// Generates the bindings of a world with these `items` and compares them with
/// `sdk/rust/src/bindings/FILE.rs`.
fn assert_generated(file: &str, world: &str, items: &str, opts: Opts) {
    let (mut resolve, _) = contract();
    let package = resolve.push_str("sdk.wit", &format!("package gavel:sdk; world {world} {{ {items} }}")).unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    let mut files = Files::default();
    let mut generator = Opts { format: true, ..opts }.build();
    wit_bindgen_core::WorldGenerator::generate(&mut generator, &mut resolve, world, &mut files).unwrap();
    let [(_, generated)] = files.iter().collect::<Vec<_>>()[..] else { panic!("one file a world") };

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../rust/src/bindings/{file}.rs"));
    let must = Data::read_from(&path, Some(DataFormat::Text)).raw();
    Assert::new().action_env("SNAPSHOTS").eq(String::from_utf8(generated.to_vec()).unwrap(), must);
}

#[test]
fn the_imports_are_those_of_the_contract() {
    let items = IMPORTS.map(|name| format!("import {};", full(name))).concat();
    assert_generated("imports", "imports", &items, Opts { generate_all: true, ..Opts::default() });
}

#[test]
fn the_exports_are_those_of_the_contract() {
    for (name, shared) in EXPORTS {
        let module = |shared: &&str| {
            let path = format!("crate::bindings::gavel::plugin::{shared}");
            (full(shared), WithOption::Path(path))
        };
        let opts = Opts {
            with: shared.iter().map(module).collect(),
            pub_export_macro: true,
            export_macro_name: Some(format!("__export_{name}")),
            default_bindings_module: Some(format!("gavel_sdk::bindings::{name}")),
            ..Opts::default()
        };
        assert_generated(name, &format!("{name}-export"), &format!("export {};", full(name)), opts);
    }
}
