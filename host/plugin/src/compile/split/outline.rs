//! The modules of a component, and which of them is split.

use super::not_split::NotSplit;
use crate::budget::SLOT_TABLES;
use std::ops::Range;
use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, ComponentTypeRef, Encoding,
    Instance, Parser, Payload,
};

/// What is split off a component.
pub(super) struct Outline {
    /// The modules with the code, in their order.
    pub(super) split: Vec<Part>,
    /// How many modules the component has.
    pub(super) modules: u32,
    /// The bytes of code that stay in the component.
    pub(super) rest: usize,
}

/// A module that is split off.
pub(super) struct Part {
    pub(super) index: u32,
    pub(super) range: Range<usize>,
    /// Its only instance, if it has data, which stays in the component. A module without data is split off whole.
    pub(super) with_data: Option<u32>,
}

/// A module of the component.
struct Module {
    range: Range<usize>,
    code: usize,
    memories: u32,
    tables: u32,
    /// Whether it has what can differ between components of one code: data segments, or globals that change.
    has_data: bool,
    instances: Vec<u32>,
}

impl Outline {
    /// Refuses a component whose items may not be moved, or that has no module with at least so much code.
    pub(super) fn of(component: &[u8], least: usize) -> Result<Self, NotSplit> {
        let mut modules: Vec<Module> = Vec::new();
        let mut instances = 0;
        let mut parents = Vec::new();
        for payload in Parser::new(0).parse_all(component) {
            match payload? {
                Payload::Version { encoding, .. } => {
                    if encoding == Encoding::Module && parents.len() != 1 {
                        return Err(NotSplit::Form("a module is in a component within it"));
                    }
                    parents.push(encoding);
                }
                Payload::End(_) => {
                    parents.pop();
                }
                Payload::ModuleSection { unchecked_range, .. } if parents.len() == 1 => modules.push(Module {
                    range: unchecked_range.start as usize..unchecked_range.end as usize,
                    code: 0,
                    memories: 0,
                    tables: 0,
                    has_data: false,
                    instances: Vec::new(),
                }),
                Payload::StartSection { .. } | Payload::ComponentStartSection { .. } => {
                    return Err(NotSplit::Form("it runs code when it starts"));
                }
                Payload::CodeSectionStart { size, .. } => {
                    modules.last_mut().ok_or(NotSplit::Cut)?.code = size as usize;
                }
                Payload::MemorySection(memories) => {
                    modules.last_mut().ok_or(NotSplit::Cut)?.memories = memories.count();
                }
                Payload::TableSection(tables) => {
                    modules.last_mut().ok_or(NotSplit::Cut)?.tables = tables.count();
                }
                Payload::DataSection(_) => modules.last_mut().ok_or(NotSplit::Cut)?.has_data = true,
                Payload::GlobalSection(globals) => {
                    for global in globals {
                        modules.last_mut().ok_or(NotSplit::Cut)?.has_data |= global?.ty.mutable;
                    }
                }
                Payload::InstanceSection(section) if parents.len() == 1 => {
                    for instance in section {
                        if let Instance::Instantiate { module_index, .. } = instance? {
                            let module = modules.get_mut(module_index as usize).ok_or(NotSplit::Cut)?;
                            module.instances.push(instances);
                        }
                        instances += 1;
                    }
                }
                payload => check(payload, parents.len())?,
            }
        }
        let count = modules.len() as u32;
        // A pool does not count the tables of modules that a component imports.
        let tables =
            modules.iter().map(|module| u64::from(module.tables).saturating_mul(module.instances.len() as u64));
        if tables.fold(0, u64::saturating_add) > SLOT_TABLES.into() {
            return Err(NotSplit::Form("its instances have more tables than a slot of a pool"));
        }
        let mut rest: usize = modules.iter().map(|module| module.code).sum();
        let mut split: Vec<Part> = Vec::new();
        for (index, module) in (0..).zip(modules).filter(|(_, module)| module.code >= least) {
            let with_data = match (module.memories, &module.instances[..]) {
                (0, _) if !module.has_data => None,
                // The component gets one module with data.
                (1, [instance]) if split.iter().all(|part| part.with_data.is_none()) => Some(*instance),
                _ => continue,
            };
            rest -= module.code;
            split.push(Part { index, range: module.range, with_data });
        }
        if split.is_empty() {
            return Err(NotSplit::Form("it has no module with much code whose data can be told from it"));
        }
        Ok(Self { split, modules: count, rest })
    }

    /// The module whose data stays in the component.
    pub(super) fn with_data(&self) -> Option<(&Part, u32)> {
        self.split.iter().find_map(|part| Some((part, part.with_data?)))
    }
}

/// Refuses what names modules and types of modules by numbers that would be other ones.
fn check(payload: Payload<'_>, depth: usize) -> Result<(), NotSplit> {
    const FOREIGN: NotSplit = NotSplit::Form("it uses a module that is not its own");
    const GIVEN: NotSplit = NotSplit::Form("it gives a module away");
    match payload {
        Payload::CoreTypeSection(_) if depth == 1 => return Err(NotSplit::Form("it has types of modules")),
        Payload::ComponentImportSection(imports) => {
            for import in imports {
                if let ComponentTypeRef::Module(_) = import?.ty {
                    return Err(FOREIGN);
                }
            }
        }
        Payload::ComponentAliasSection(aliases) => {
            for alias in aliases {
                if let ComponentAlias::InstanceExport { kind: ComponentExternalKind::Module, .. }
                | ComponentAlias::Outer {
                    kind: ComponentOuterAliasKind::CoreModule | ComponentOuterAliasKind::CoreType,
                    ..
                } = alias?
                {
                    return Err(FOREIGN);
                }
            }
        }
        Payload::ComponentExportSection(exports) => {
            for export in exports {
                if export?.kind == ComponentExternalKind::Module {
                    return Err(GIVEN);
                }
            }
        }
        Payload::ComponentInstanceSection(instances) => {
            for instance in instances {
                let gives = match instance? {
                    ComponentInstance::Instantiate { args, .. } => {
                        args.iter().any(|argument| argument.kind == ComponentExternalKind::Module)
                    }
                    ComponentInstance::FromExports(exports) => {
                        exports.iter().any(|export| export.kind == ComponentExternalKind::Module)
                    }
                };
                if gives {
                    return Err(GIVEN);
                }
            }
        }
        _ => {}
    }
    Ok(())
}
