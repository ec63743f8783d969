//! The core instances of a component, and which parts of each other they use.

use super::not_merged::NotMerged;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use wasm_encoder::reencode::{Error, Reencode, ReencodeComponent};
use wasm_encoder::{CanonicalFunctionSection, ExportKind};
use wasmparser::{
    CanonicalFunction, ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind,
    ComponentType, ComponentTypeRef, Encoding, ExternalKind, Instance, Parser, Payload, TypeRef,
};

/// The kind of a core item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Kind {
    Function,
    Table,
    Memory,
    Global,
    Tag,
}

/// The number of kinds.
pub(super) const KINDS: usize = 5;

impl From<ExternalKind> for Kind {
    fn from(kind: ExternalKind) -> Self {
        match kind {
            ExternalKind::Func | ExternalKind::FuncExact => Kind::Function,
            ExternalKind::Table => Kind::Table,
            ExternalKind::Memory => Kind::Memory,
            ExternalKind::Global => Kind::Global,
            ExternalKind::Tag => Kind::Tag,
        }
    }
}

impl From<TypeRef> for Kind {
    fn from(ty: TypeRef) -> Self {
        match ty {
            TypeRef::Func(_) | TypeRef::FuncExact(_) => Kind::Function,
            TypeRef::Table(_) => Kind::Table,
            TypeRef::Memory(_) => Kind::Memory,
            TypeRef::Global(_) => Kind::Global,
            TypeRef::Tag(_) => Kind::Tag,
        }
    }
}

impl From<Kind> for ExportKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Function => ExportKind::Func,
            Kind::Table => ExportKind::Table,
            Kind::Memory => ExportKind::Memory,
            Kind::Global => ExportKind::Global,
            Kind::Tag => ExportKind::Tag,
        }
    }
}

/// A core item of a component, by its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) index: u32,
}

/// The definition behind an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Origin<'a> {
    /// The export of an instance of a module.
    Export { instance: usize, name: &'a str },
    /// A canonical function, by the index of its core function.
    Canonical(u32),
}

/// When a definition can exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Time {
    /// Before the merged instance: it uses nothing of it.
    Early,
    /// It becomes part of the merged instance.
    Merged,
    /// After the merged instance.
    Late,
}

pub(super) enum CoreInstance<'a> {
    Module { module: usize, arguments: BTreeMap<&'a str, usize> },
    Items(BTreeMap<&'a str, Item>),
}

/// The kinds of the items that a module imports, by arguments and names.
pub(super) type Imports<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Kind>>;

/// A definition of a component.
pub(super) enum Definition<'a> {
    /// A section without core items.
    Section { id: u8, range: Range<usize> },
    /// A core module, by its index.
    Module(usize),
    /// An alias of anything but a core item.
    Alias(ComponentAlias<'a>),
    /// An alias of a core instance's export.
    CoreAlias(Item),
    /// A canonical function, with the index of its core function unless it is lifted.
    Canonical(CanonicalFunction, Option<u32>),
    /// A core instance, by its index.
    Instance(usize),
}

/// The definitions of a component, in order.
#[derive(Default)]
pub(super) struct Graph<'a> {
    pub(super) definitions: Vec<Definition<'a>>,
    /// The bytes of the modules.
    pub(super) modules: Vec<Range<usize>>,
    pub(super) instances: Vec<(CoreInstance<'a>, Time)>,
    items: HashMap<Kind, Vec<(Origin<'a>, Time)>>,
}

impl<'a> Graph<'a> {
    pub(super) fn parse(component: &'a [u8]) -> Result<Self, NotMerged> {
        let mut graph = Self::default();
        let mut depth = 0;
        for payload in Parser::new(0).parse_all(component) {
            match payload? {
                Payload::Version { encoding: Encoding::Module, .. } if depth == 0 => {
                    return Err(NotMerged::Form("it is a core module"));
                }
                Payload::Version { .. } => depth += 1,
                Payload::End(_) => depth -= 1,
                payload if depth == 1 => graph.add(payload)?,
                Payload::ComponentAliasSection(aliases) => {
                    for alias in aliases {
                        refuse_module(is_module(&alias?))?;
                    }
                }
                _ => {}
            }
        }
        Ok(graph)
    }

    fn add(&mut self, payload: Payload<'a>) -> Result<(), NotMerged> {
        let section = payload.as_section();
        match payload {
            Payload::ModuleSection { unchecked_range, .. } => {
                self.definitions.push(Definition::Module(self.modules.len()));
                self.modules.push(unchecked_range.start as usize..unchecked_range.end as usize);
                return Ok(());
            }
            Payload::InstanceSection(instances) => {
                return instances.into_iter().try_for_each(|instance| self.add_instance(instance?));
            }
            Payload::ComponentAliasSection(aliases) => {
                return aliases.into_iter().try_for_each(|alias| self.add_alias(alias?));
            }
            Payload::ComponentCanonicalSection(functions) => {
                return functions.into_iter().try_for_each(|function| self.add_canonical(function?));
            }
            Payload::ComponentTypeSection(types) => {
                for ty in types {
                    // The type is often needed before the instance that has its destructor.
                    if let ComponentType::Resource { dtor: Some(_), .. } = ty? {
                        return Err(NotMerged::Form("a resource has a destructor"));
                    }
                }
            }
            Payload::ComponentImportSection(imports) => {
                for import in imports {
                    refuse_module(matches!(import?.ty, ComponentTypeRef::Module(_)))?;
                }
            }
            Payload::ComponentExportSection(exports) => {
                for export in exports {
                    refuse_module(export?.kind == ComponentExternalKind::Module)?;
                }
            }
            Payload::ComponentInstanceSection(instances) => {
                for instance in instances {
                    match instance? {
                        ComponentInstance::Instantiate { args, .. } => {
                            refuse_module(args.iter().any(|arg| arg.kind == ComponentExternalKind::Module))?;
                        }
                        ComponentInstance::FromExports(exports) => {
                            refuse_module(exports.iter().any(|export| export.kind == ComponentExternalKind::Module))?;
                        }
                    }
                }
            }
            // The names are of indices that change.
            Payload::CustomSection(custom) if custom.name() == "component-name" => return Ok(()),
            _ => {}
        }
        if let Some((id, range)) = section {
            let range = range.start as usize..range.end as usize;
            self.definitions.push(Definition::Section { id, range });
        }
        Ok(())
    }

    fn add_instance(&mut self, instance: Instance<'a>) -> Result<(), NotMerged> {
        let known = match instance {
            Instance::Instantiate { module_index, args } => {
                let arguments: BTreeMap<_, _> = args.iter().map(|arg| (arg.name, arg.index as usize)).collect();
                let mut time = Time::Merged;
                for argument in arguments.values() {
                    if self.instance(*argument)?.1 == Time::Late {
                        time = Time::Late;
                    }
                }
                (CoreInstance::Module { module: module_index as usize, arguments }, time)
            }
            Instance::FromExports(exports) => {
                let mut items = BTreeMap::new();
                let mut time = Time::Early;
                for export in exports {
                    let item = Item { kind: export.kind.into(), index: export.index };
                    if self.origin(item)?.1 == Time::Late {
                        time = Time::Late;
                    }
                    items.insert(export.name, item);
                }
                (CoreInstance::Items(items), time)
            }
        };
        self.definitions.push(Definition::Instance(self.instances.len()));
        self.instances.push(known);
        Ok(())
    }

    fn add_alias(&mut self, alias: ComponentAlias<'a>) -> Result<(), NotMerged> {
        refuse_module(is_module(&alias))?;
        let ComponentAlias::CoreInstanceExport { kind, instance_index, name } = alias else {
            self.definitions.push(Definition::Alias(alias));
            return Ok(());
        };
        let origin = self.export(instance_index as usize, name)?;
        let item = self.add_item(kind.into(), |_| origin);
        self.definitions.push(Definition::CoreAlias(item));
        Ok(())
    }

    fn add_canonical(&mut self, function: CanonicalFunction) -> Result<(), NotMerged> {
        let mut time = Time::Early;
        for item in uses(&function)? {
            if self.origin(item)?.1 != Time::Early {
                time = Time::Late;
            }
        }
        let core = match function {
            CanonicalFunction::Lift { .. } => None,
            _ => Some(self.add_item(Kind::Function, |index| (Origin::Canonical(index), time)).index),
        };
        self.definitions.push(Definition::Canonical(function, core));
        Ok(())
    }

    fn add_item(&mut self, kind: Kind, origin: impl FnOnce(u32) -> (Origin<'a>, Time)) -> Item {
        let items = self.items.entry(kind).or_default();
        let index = items.len() as u32;
        items.push(origin(index));
        Item { kind, index }
    }

    pub(super) fn instance(&self, index: usize) -> Result<&(CoreInstance<'a>, Time), NotMerged> {
        self.instances.get(index).ok_or(NotMerged::Missing)
    }

    /// The items of an instance that lists items, unless it is one of `seen`; adds
    /// it there. Many instances can take a long list, so each list is read once.
    pub(super) fn items_once(
        &self,
        seen: &mut BTreeSet<usize>,
        instance: usize,
    ) -> Result<Option<&BTreeMap<&'a str, Item>>, NotMerged> {
        let is_new = seen.insert(instance);
        match self.instance(instance)? {
            (CoreInstance::Items(items), _) if is_new => Ok(Some(items)),
            _ => Ok(None),
        }
    }

    /// The definition of an item, and when it exists.
    pub(super) fn origin(&self, item: Item) -> Result<(Origin<'a>, Time), NotMerged> {
        let items = self.items.get(&item.kind).ok_or(NotMerged::Missing)?;
        items.get(item.index as usize).copied().ok_or(NotMerged::Missing)
    }

    /// The definition of an instance's export, and when it exists.
    pub(super) fn export(&self, instance: usize, name: &'a str) -> Result<(Origin<'a>, Time), NotMerged> {
        match self.instance(instance)? {
            (CoreInstance::Module { .. }, time) => Ok((Origin::Export { instance, name }, *time)),
            (CoreInstance::Items(items), _) => self.origin(*items.get(name).ok_or(NotMerged::Missing)?),
        }
    }

    /// The items that a module imports, by the names of its arguments.
    pub(super) fn imports(&self, component: &'a [u8], module: usize) -> Result<Imports<'a>, NotMerged> {
        let range =
            self.modules.get(module).and_then(|range| component.get(range.clone())).ok_or(NotMerged::Missing)?;
        let mut imports = Imports::new();
        for payload in Parser::new(0).parse_all(range) {
            let Payload::ImportSection(section) = payload? else { continue };
            for import in section.into_imports() {
                let import = import?;
                imports.entry(import.module).or_default().insert(import.name, import.ty.into());
            }
        }
        Ok(imports)
    }

    /// The modules that are merged, with their instances.
    pub(super) fn merged_modules(&self) -> Result<BTreeMap<usize, usize>, NotMerged> {
        let mut merged = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for (index, (instance, time)) in self.instances.iter().enumerate() {
            let CoreInstance::Module { module, .. } = instance else { continue };
            if !seen.insert(*module) {
                return Err(NotMerged::Form("a module has two instances"));
            }
            if *time == Time::Merged {
                merged.insert(*module, index);
            }
        }
        if merged.len() < 2 {
            return Err(NotMerged::Few);
        }
        Ok(merged)
    }
}

/// Refuses modules that are used by anything but core instances, since their indices change.
fn refuse_module(is_module: bool) -> Result<(), NotMerged> {
    if is_module { Err(NotMerged::Form("a core module is imported, exported or passed on")) } else { Ok(()) }
}

fn is_module(alias: &ComponentAlias<'_>) -> bool {
    match alias {
        ComponentAlias::InstanceExport { kind, .. } => *kind == ComponentExternalKind::Module,
        ComponentAlias::Outer { kind, .. } => *kind == ComponentOuterAliasKind::CoreModule,
        ComponentAlias::CoreInstanceExport { .. } => false,
    }
}

/// The core items that a canonical function uses.
pub(super) fn uses(function: &CanonicalFunction) -> Result<Vec<Item>, NotMerged> {
    let mut uses = Uses(Vec::new());
    uses.parse_component_canonical(&mut CanonicalFunctionSection::new(), function.clone())?;
    Ok(uses.0)
}

struct Uses(Vec<Item>);

impl Uses {
    fn add(&mut self, kind: Kind, index: u32) -> Result<u32, Error<NotMerged>> {
        self.0.push(Item { kind, index });
        Ok(index)
    }
}

impl Reencode for Uses {
    type Error = NotMerged;

    fn function_index(&mut self, function: u32) -> Result<u32, Error<NotMerged>> {
        self.add(Kind::Function, function)
    }

    fn memory_index(&mut self, memory: u32) -> Result<u32, Error<NotMerged>> {
        self.add(Kind::Memory, memory)
    }

    fn table_index(&mut self, table: u32) -> Result<u32, Error<NotMerged>> {
        self.add(Kind::Table, table)
    }
}

impl ReencodeComponent for Uses {}
