//! The component that imports its code.

use super::module::{Reader, any_memory};
use super::names::{MEMORY, code_name};
use super::not_split::NotSplit;
use super::outline::Outline;
use super::types::module_type;
use std::borrow::Cow;
use std::ops::Range;
use wasm_encoder::reencode::{Reencode, ReencodeComponent, RoundtripReencoder};
use wasm_encoder::{
    Component, ComponentAliasSection, ComponentImportSection, ComponentSectionId, ComponentTypeRef, CoreTypeSection,
    EntityType, ImportSection, InstanceSection, Module, ModuleArg, RawSection,
};
use wasmparser::{Instance, Parser, Payload, TypeRef};

/// A component that imports its code.
pub(crate) struct Split {
    pub(crate) component: Vec<u8>,
    /// The modules with the code.
    pub(crate) code: Vec<Vec<u8>>,
    /// The bytes of code that stay in the component.
    pub(crate) rest: usize,
}

/// The module with the memory comes first, and has the first instance.
const DATA_MODULE: u32 = 0;
const DATA_INSTANCE: u32 = 0;

/// Writes the component again: its modules with much code are imported, and one of them imports its memory.
pub(super) fn rewrite(component: &[u8], outline: &Outline) -> Result<Split, NotSplit> {
    let reader = match outline.with_data() {
        Some((module, _)) => Some(Reader::of(part(component, module.range.clone())?)?),
        None => None,
    };
    let mut moved = Moved { by: u32::from(reader.is_some()) };
    let mut out = Component::new();
    let mut code = Vec::new();
    let id = ComponentSectionId::CoreModule.into();
    if let Some(reader) = &reader {
        out.section(&RawSection { id, data: &reader.memory() });
        let mut instances = InstanceSection::new();
        instances.instantiate(DATA_MODULE, [("", ModuleArg::Instance(0)); 0]);
        out.section(&instances);
    }
    let (mut depth, mut modules) = (0, 0);
    for payload in Parser::new(0).parse_all(component) {
        match payload? {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            _ if depth != 1 => {}
            Payload::ModuleSection { unchecked_range, .. } => {
                let wasm = part(component, unchecked_range.start as usize..unchecked_range.end as usize)?;
                match outline.split.iter().find(|part| part.index == modules) {
                    Some(split) => {
                        let module = match (&reader, split.with_data) {
                            (Some(reader), Some(_)) => Cow::Owned(reader.code()?),
                            _ => with_any_memory(wasm, &reader)?,
                        };
                        import(&mut out, code.len(), &module)?;
                        code.push(module.into_owned());
                    }
                    None => {
                        out.section(&RawSection { id, data: &with_any_memory(wasm, &reader)? });
                    }
                }
                modules += 1;
            }
            Payload::InstanceSection(section) => {
                let mut instances = InstanceSection::new();
                for instance in section {
                    write_instance(&mut instances, &mut moved, outline, instance?)?;
                }
                out.section(&instances);
            }
            Payload::ComponentAliasSection(section) => {
                let mut aliases = ComponentAliasSection::new();
                moved.parse_component_alias_section(&mut aliases, section)?;
                out.section(&aliases);
            }
            // Names of items by their old numbers, which only messages show.
            Payload::CustomSection(_) => {}
            payload => {
                if let Some((id, range)) = payload.as_section() {
                    out.section(&RawSection { id, data: part(component, range.start as usize..range.end as usize)? });
                }
            }
        }
    }
    if let (Some(reader), Some((_, instance))) = (&reader, outline.with_data()) {
        out.section(&RawSection { id, data: &reader.start() });
        let mut instances = InstanceSection::new();
        let with = ModuleArg::Instance(moved.instance_index(instance));
        instances.instantiate(moved.module_index(outline.modules), [("", with)]);
        out.section(&instances);
    }
    Ok(Split { component: out.finish(), code, rest: outline.rest })
}

fn part(bytes: &[u8], range: Range<usize>) -> Result<&[u8], NotSplit> {
    bytes.get(range).ok_or(NotSplit::Cut)
}

/// The numbers of modules and of their instances with others before them.
struct Moved {
    by: u32,
}

impl Reencode for Moved {
    type Error = std::convert::Infallible;
}

impl ReencodeComponent for Moved {
    fn module_index(&mut self, index: u32) -> u32 {
        index + self.by
    }

    fn instance_index(&mut self, index: u32) -> u32 {
        index + self.by
    }
}

/// Imports a part of the code.
fn import(out: &mut Component, number: usize, code: &[u8]) -> Result<(), NotSplit> {
    let mut types = CoreTypeSection::new();
    types.ty().module(&module_type(code)?);
    out.section(&types);
    let mut imports = ComponentImportSection::new();
    imports.import(code_name(number).as_str(), ComponentTypeRef::Module(number as u32));
    out.section(&imports);
    Ok(())
}

fn write_instance(
    instances: &mut InstanceSection,
    moved: &mut Moved,
    outline: &Outline,
    instance: Instance<'_>,
) -> Result<(), NotSplit> {
    match (instance, outline.with_data()) {
        (Instance::Instantiate { module_index, args }, Some((module, _))) if module_index == module.index => {
            let arguments = args.iter().map(|argument| (argument.name, moved.instance_index(argument.index)));
            let all: Vec<_> = arguments.chain([(MEMORY, DATA_INSTANCE)]).collect();
            let all = all.into_iter().map(|(name, index)| (name, ModuleArg::Instance(index)));
            instances.instantiate(moved.module_index(module_index), all);
            Ok(())
        }
        (instance, _) => Ok(moved.parse_instance(instances, instance)?),
    }
}

/// The module as it imports the memory of code that is split off. That has no smallest size: how large a memory is, the
/// module with the data says.
fn with_any_memory<'a>(wasm: &'a [u8], exports: &Option<Reader<'_>>) -> Result<Cow<'a, [u8]>, NotSplit> {
    if exports.is_none() {
        return Ok(Cow::Borrowed(wasm));
    }
    let mut module = Module::new();
    let mut has_memory = false;
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::ImportSection(section) => {
                let mut imports = ImportSection::new();
                for import in section.into_imports() {
                    let import = import?;
                    let ty = match import.ty {
                        TypeRef::Memory(memory) if !memory.memory64 && !memory.shared => {
                            has_memory = true;
                            EntityType::Memory(any_memory())
                        }
                        ty => RoundtripReencoder.entity_type(ty)?,
                    };
                    imports.import(import.module, import.name, ty);
                }
                if !has_memory {
                    return Ok(Cow::Borrowed(wasm));
                }
                module.section(&imports);
            }
            // Nothing is imported.
            Payload::FunctionSection(_) if !has_memory => return Ok(Cow::Borrowed(wasm)),
            payload => {
                if let Some((id, range)) = payload.as_section() {
                    module.section(&RawSection { id, data: part(wasm, range.start as usize..range.end as usize)? });
                }
            }
        }
    }
    Ok(if has_memory { Cow::Owned(module.finish()) } else { Cow::Borrowed(wasm) })
}
