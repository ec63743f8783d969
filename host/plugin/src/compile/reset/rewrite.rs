//! The component with the functions that set its instances back.

use super::functions::{MEMORY, MEMORY_START, REST, STRETCHES};
use super::module::{self, global_name, reset_module};
use super::not_reset::NotReset;
use super::parts::Parts;
use crate::compile::globals::exported_name;

use wasm_encoder::reencode::{Reencode, RoundtripReencoder};
use wasm_encoder::{
    Alias, CanonicalFunctionSection, CanonicalOption, Component, ComponentAliasSection, ComponentExportKind,
    ComponentExportSection, ComponentSectionId, ComponentTypeSection, ComponentValType, ExportKind, ExportSection,
    InstanceSection, Module, ModuleArg, PrimitiveValType, RawSection, SectionId, ValType,
};
use wasmparser::{Parser, Payload};

/// Writes the component again, with its globals exported and the functions added.
pub(super) fn rewrite(component: &[u8], parts: &Parts) -> Result<Vec<u8>, NotReset> {
    let mut out = Component::new();
    let (mut depth, mut modules) = (0, 0);
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ModuleSection { unchecked_range, .. } if depth == 1 => {
                let wasm = part(component, unchecked_range.start as usize..unchecked_range.end as usize)?;
                let exported: Vec<u32> = parts.globals_of(modules).collect();
                let id = ComponentSectionId::CoreModule.into();
                match &exported[..] {
                    [] => out.section(&RawSection { id, data: wasm }),
                    exported => out.section(&RawSection { id, data: &with_exports(wasm, exported)? }),
                };
                modules += 1;
            }
            payload if depth == 1 => {
                if let Some((id, range)) = payload.as_section() {
                    out.section(&RawSection { id, data: part(component, range.start as usize..range.end as usize)? });
                }
            }
            _ => {}
        }
    }
    add(&mut out, parts);
    Ok(out.finish())
}

fn part(bytes: &[u8], range: std::ops::Range<usize>) -> Result<&[u8], NotReset> {
    bytes.get(range).ok_or(NotReset::Form("a section is cut"))
}

/// The module with more exports: globals, by their indices.
fn with_exports(wasm: &[u8], globals: &[u32]) -> Result<Vec<u8>, NotReset> {
    let mut exports = ExportSection::new();
    for payload in Parser::new(0).parse_all(wasm) {
        if let Payload::ExportSection(section) = payload? {
            let copied = RoundtripReencoder.parse_export_section(&mut exports, section);
            copied.map_err(|_| NotReset::Form("its exports cannot be written again"))?;
        }
    }
    for index in globals {
        exports.export(&exported_name(*index), ExportKind::Global, *index);
    }
    let mut out = Module::new();
    let mut exports = Some(exports);
    for payload in Parser::new(0).parse_all(wasm) {
        let Some((id, range)) = payload?.as_section() else { continue };
        let is_exports = id == u8::from(SectionId::Export);
        // Exports come after globals and before these.
        let is_later = [SectionId::Start, SectionId::Element, SectionId::DataCount, SectionId::Code, SectionId::Data]
            .map(u8::from)
            .contains(&id);
        if (is_later || is_exports)
            && let Some(exports) = exports.take()
        {
            out.section(&exports);
        }
        if !is_exports {
            out.section(&RawSection { id, data: part(wasm, range.start as usize..range.end as usize)? });
        }
    }
    if let Some(exports) = exports {
        out.section(&exports);
    }
    Ok(out.finish())
}

/// Adds the functions at the end.
fn add(out: &mut Component, parts: &Parts) {
    let counts = &parts.counts;
    out.section(&RawSection { id: ComponentSectionId::CoreModule.into(), data: &reset_module(parts) });
    let mut aliases = ComponentAliasSection::new();
    for global in &parts.globals {
        let (instance, name) = (parts.instances[&global.module], exported_name(global.index));
        aliases.alias(Alias::CoreInstanceExport { instance, kind: ExportKind::Global, name: &name });
    }
    out.section(&aliases);
    let (resource, list) = (counts.types, counts.types + 1);
    let mut types = ComponentTypeSection::new();
    types.resource(ValType::I32, None);
    types.defined_type().list(PrimitiveValType::U8);
    const NO_PARAMETER: [(&str, ComponentValType); 0] = [];
    let number = ComponentValType::Primitive(PrimitiveValType::U32);
    types.function().params(NO_PARAMETER).result(Some(ComponentValType::Type(list)));
    let names: Vec<String> = (0..2 * STRETCHES).map(|at| format!("n{at}")).collect();
    types.function().params(names.iter().map(|name| (name.as_str(), number))).result(None);
    types.function().params([("handles", number)]).result(Some(number));
    out.section(&types);
    let mut handles = CanonicalFunctionSection::new();
    handles.resource_new(resource).resource_drop(resource);
    out.section(&handles);
    let mut imports = vec![
        (module::IMPORTED_MEMORY.to_owned(), ExportKind::Memory, parts.memory),
        (module::NEW_HANDLE.to_owned(), ExportKind::Func, counts.core_functions),
        (module::DROP_HANDLE.to_owned(), ExportKind::Func, counts.core_functions + 1),
    ];
    for number in 0..parts.globals.len() {
        imports.push((global_name(number), ExportKind::Global, counts.core_globals + number as u32));
    }
    let mut instances = InstanceSection::new();
    instances.export_items(imports.iter().map(|(name, kind, index)| (name.as_str(), *kind, *index)));
    instances.instantiate(counts.modules, [("", ModuleArg::Instance(counts.core_instances))]);
    out.section(&instances);
    let functions = [(module::MEMORY_START, MEMORY_START), (module::MEMORY, MEMORY), (module::REST, REST)];
    for ((core, name), at) in functions.into_iter().zip(0..) {
        let mut aliases = ComponentAliasSection::new();
        let instance = counts.core_instances + 1;
        aliases.alias(Alias::CoreInstanceExport { instance, kind: ExportKind::Func, name: core });
        out.section(&aliases);
        let options = (core == module::MEMORY_START).then_some(CanonicalOption::Memory(parts.memory));
        let mut lifted = CanonicalFunctionSection::new();
        lifted.lift(counts.core_functions + 2 + at, list + 1 + at, options);
        out.section(&lifted);
        let mut exports = ComponentExportSection::new();
        // An export is an item of its own, after the function.
        exports.export(name, ComponentExportKind::Func, counts.functions + 2 * at, None);
        out.section(&exports);
    }
}
