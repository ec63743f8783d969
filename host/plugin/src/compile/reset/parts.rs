//! The parts of a component's instances that change, with what they are in its
//! snapshot.

use super::image::Image;
use super::not_reset::NotReset;
use crate::compile::globals::Number;
use crate::compile::merge::items;
use std::collections::BTreeMap;
use wasmparser::{
    CanonicalFunction, CanonicalOption, ComponentAlias, ComponentExternalKind, ComponentOuterAliasKind, ComponentType,
    ComponentTypeRef, Encoding, Instance, Operator, Parser, Payload, TypeRef,
};

/// What a reset sets back, and where.
pub(super) struct Parts {
    pub(super) image: Image,
    /// The index of the memory in the component.
    pub(super) memory: u32,
    pub(super) globals: Vec<Global>,
    /// The instance of each module.
    pub(super) instances: BTreeMap<usize, u32>,
    pub(super) counts: Counts,
}

/// A global that changes.
pub(super) struct Global {
    /// Its module, and its index there.
    pub(super) module: usize,
    pub(super) index: u32,
    pub(super) value: Number,
}

/// How many items of each kind a component has.
pub(super) struct Counts {
    pub(super) modules: u32,
    pub(super) core_instances: u32,
    pub(super) core_functions: u32,
    pub(super) core_globals: u32,
    pub(super) types: u32,
    pub(super) functions: u32,
}

impl Parts {
    /// Refuses a component whose instances have more state than memory, globals and handles.
    pub(super) fn of(component: &[u8]) -> Result<Self, NotReset> {
        let types = items(component)?.ok_or(NotReset::Form("it is no component"))?;
        let types = types.as_ref();
        let counts = Counts {
            modules: types.module_count(),
            core_instances: types.core_instance_count(),
            core_functions: types.function_count(),
            core_globals: types.global_count(),
            types: types.component_type_count(),
            functions: types.component_function_count(),
        };
        let mut reader = Reader::default();
        let mut parents = Vec::new();
        for payload in Parser::new(0).parse_all(component) {
            match payload? {
                Payload::Version { encoding: Encoding::Module, .. } if parents.len() != 1 => {
                    return Err(NotReset::Form("a module is in a component within it"));
                }
                Payload::Version { encoding, .. } => {
                    if encoding == Encoding::Module {
                        reader.modules += 1;
                        reader.imported_globals = 0;
                    }
                    parents.push(encoding);
                }
                Payload::End(_) => {
                    parents.pop();
                }
                payload => match &parents[..] {
                    [Encoding::Component] => reader.component(payload)?,
                    [.., Encoding::Module] => reader.module(payload)?,
                    _ => Reader::inner_component(&payload)?,
                },
            }
        }
        let image = reader.image.ok_or(NotReset::Form("it has no memory"))?;
        let memory = reader.memory.ok_or(NotReset::Form("none of its functions uses its memory"))?;
        if reader.globals.iter().any(|global| !reader.instances.contains_key(&global.module)) {
            return Err(NotReset::Form("a module with globals has no instance"));
        }
        Ok(Self { image, memory, globals: reader.globals, instances: reader.instances, counts })
    }

    /// The indices of a module's globals.
    pub(super) fn globals_of(&self, module: usize) -> impl Iterator<Item = u32> {
        self.globals.iter().filter(move |global| global.module == module).map(|global| global.index)
    }
}

#[derive(Default)]
struct Reader {
    /// How many modules were read, with the one that is being read.
    modules: usize,
    imported_globals: u32,
    image: Option<Image>,
    /// The module that has the memory.
    image_module: usize,
    memory: Option<u32>,
    globals: Vec<Global>,
    instances: BTreeMap<usize, u32>,
    core_instances: u32,
}

impl Reader {
    fn component(&mut self, payload: Payload<'_>) -> Result<(), NotReset> {
        const FOREIGN_MODULE: NotReset = NotReset::Form("it uses a module that is not its own");
        match payload {
            Payload::InstanceSection(instances) => {
                for instance in instances {
                    if let Instance::Instantiate { module_index, .. } = instance?
                        && self.instances.insert(module_index as usize, self.core_instances).is_some()
                    {
                        return Err(NotReset::Form("a module has two instances"));
                    }
                    self.core_instances += 1;
                }
            }
            Payload::ComponentCanonicalSection(functions) => {
                for function in functions {
                    match function? {
                        CanonicalFunction::Lift { options, .. } => {
                            self.memory = self.memory.or(options.iter().find_map(memory_of));
                        }
                        CanonicalFunction::Lower { .. } | CanonicalFunction::ResourceDrop { .. } => {}
                        _ => return Err(NotReset::Form("it makes handles of its own")),
                    }
                }
            }
            Payload::ComponentTypeSection(types) => {
                for ty in types {
                    if let ComponentType::Resource { .. } = ty? {
                        return Err(NotReset::Form("it has resources of its own"));
                    }
                }
            }
            Payload::ComponentAliasSection(aliases) => {
                for alias in aliases {
                    if let ComponentAlias::InstanceExport { kind: ComponentExternalKind::Module, .. }
                    | ComponentAlias::Outer { kind: ComponentOuterAliasKind::CoreModule, .. } = alias?
                    {
                        return Err(FOREIGN_MODULE);
                    }
                }
            }
            Payload::ComponentExportSection(exports) => {
                for export in exports {
                    // It would be a further module, by number.
                    if export?.kind == ComponentExternalKind::Module {
                        return Err(NotReset::Form("it exports a module"));
                    }
                }
            }
            Payload::ComponentImportSection(imports) => {
                for import in imports {
                    if let ComponentTypeRef::Module(_) = import?.ty {
                        return Err(FOREIGN_MODULE);
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A component within may only rename what it imports.
    fn inner_component(payload: &Payload<'_>) -> Result<(), NotReset> {
        match payload {
            Payload::ComponentCanonicalSection(_) => Err(NotReset::Form("a component within it has functions")),
            _ => Ok(()),
        }
    }

    fn module(&mut self, payload: Payload<'_>) -> Result<(), NotReset> {
        let module = self.modules - 1;
        match payload {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    if let TypeRef::Global(_) = import?.ty {
                        self.imported_globals += 1;
                    }
                }
            }
            Payload::MemorySection(memories) => {
                for memory in memories {
                    if self.image.is_some() {
                        return Err(NotReset::Form("it has several memories"));
                    }
                    (self.image, self.image_module) = (Some(Image::of(memory?)?), module);
                }
            }
            Payload::GlobalSection(globals) => {
                for (at, global) in (self.imported_globals..).zip(globals) {
                    let global = global?;
                    if global.ty.mutable {
                        let value = Number::of(&global.init_expr)?
                            .ok_or(NotReset::Form("a global that changes does not start as a number"))?;
                        self.globals.push(Global { module, index: at, value });
                    }
                }
            }
            Payload::StartSection { .. } => return Err(NotReset::Form("a module runs code when it starts")),
            Payload::DataSection(segments) => {
                for segment in segments {
                    match &mut self.image {
                        Some(image) if self.image_module == module => image.add(&segment?)?,
                        _ => return Err(NotReset::Form("a module fills the memory of another")),
                    }
                }
            }
            Payload::CodeSectionEntry(body) => {
                for operator in body.get_operators_reader()? {
                    if let Operator::TableSet { .. }
                    | Operator::TableGrow { .. }
                    | Operator::TableFill { .. }
                    | Operator::TableCopy { .. }
                    | Operator::TableInit { .. }
                    | Operator::ElemDrop { .. }
                    | Operator::DataDrop { .. } = operator?
                    {
                        return Err(NotReset::Form("its code changes a table or drops a segment"));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

fn memory_of(option: &CanonicalOption) -> Option<u32> {
    match option {
        CanonicalOption::Memory(memory) => Some(*memory),
        _ => None,
    }
}
