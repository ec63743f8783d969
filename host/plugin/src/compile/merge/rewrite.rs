//! The component with the merged module in place of its parts.

use super::graph::{CoreInstance, Definition, Graph, Item, Kind, Origin, Time, uses};
use super::members::{Merged, merge_modules};
use super::not_merged::NotMerged;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use wasm_encoder::reencode::{Error, Reencode, ReencodeComponent};
use wasm_encoder::{
    Alias, CanonicalFunctionSection, Component, ComponentAliasSection, ComponentSectionId, ExportKind, InstanceSection,
    ModuleArg, RawSection,
};
use wasmparser::CanonicalFunction;

/// Writes the component again, with one module and one instance for all that are merged.
pub(super) fn rewrite(component: &[u8], graph: &Graph<'_>) -> Result<Vec<u8>, NotMerged> {
    let modules = graph.merged_modules()?;
    // Everything that the merged instance imports is there when the last of its parts starts.
    let last = modules.values().max().copied();
    let is_last =
        |definition: &Definition<'_>| matches!(definition, Definition::Instance(index) if Some(*index) == last);
    let place = graph.definitions.iter().position(is_last).ok_or(NotMerged::Missing)?;
    let Used { items, instances, mut exports } = Used::of(component, graph)?;
    for item in &items {
        if let (Origin::Export { instance, name }, Time::Merged) = graph.origin(*item)? {
            exports.insert((instance, name));
        }
    }
    let merged = merge_modules(component, graph, &exports)?;
    let mut writer = Writer {
        component,
        graph,
        modules,
        used_items: items,
        used_instances: instances,
        merged,
        out: Component::new(),
        items: HashMap::new(),
        origins: HashMap::new(),
        counts: HashMap::new(),
        module_indices: HashMap::new(),
        module_count: 0,
        instance_indices: HashMap::new(),
        instance_count: 0,
        merged_instance: 0,
    };
    writer.write(place)?;
    Ok(writer.out.finish())
}

/// What the component uses outside of the merged instance.
#[derive(Default)]
struct Used<'a> {
    items: BTreeSet<Item>,
    instances: BTreeSet<usize>,
    /// What late instances import from instances that are merged, which they take as arguments.
    exports: BTreeSet<(usize, &'a str)>,
}

impl<'a> Used<'a> {
    fn of(component: &'a [u8], graph: &Graph<'a>) -> Result<Self, NotMerged> {
        let mut used = Self::default();
        for definition in &graph.definitions {
            if let Definition::Canonical(function, _) = definition {
                used.items.extend(uses(function)?);
            }
        }
        for instance in &graph.instances {
            let (CoreInstance::Module { module, arguments }, Time::Late) = instance else { continue };
            let imports = graph.imports(component, *module)?;
            for (name, argument) in arguments {
                if let (CoreInstance::Module { .. }, Time::Merged) = graph.instance(*argument)? {
                    let imported = imports.get(name).into_iter().flatten();
                    used.exports.extend(imported.map(|(item, _)| (*argument, *item)));
                }
                if let Some(items) = graph.items_once(&mut used.instances, *argument)? {
                    used.items.extend(items.values());
                }
            }
        }
        Ok(used)
    }
}

struct Writer<'g, 'a> {
    component: &'a [u8],
    graph: &'g Graph<'a>,
    /// The modules that are merged.
    modules: BTreeMap<usize, usize>,
    used_items: BTreeSet<Item>,
    used_instances: BTreeSet<usize>,
    merged: Merged<'a>,
    out: Component,
    /// New indices, by old ones and by definition.
    items: HashMap<Item, u32>,
    origins: HashMap<(Kind, Origin<'a>), u32>,
    /// How many items were written.
    counts: HashMap<Kind, u32>,
    module_indices: HashMap<usize, u32>,
    module_count: u32,
    instance_indices: HashMap<usize, u32>,
    instance_count: u32,
    merged_instance: u32,
}

impl<'a> Writer<'_, 'a> {
    /// Writes all definitions; the merged instance takes the place of the
    /// definition at `place`, and what uses it waits until there.
    fn write(&mut self, place: usize) -> Result<(), NotMerged> {
        let graph = self.graph;
        let mut waiting = Vec::new();
        for (position, definition) in graph.definitions.iter().enumerate() {
            if position < place && self.waits(definition)? {
                waiting.push(definition);
                continue;
            }
            if position != place {
                self.write_definition(definition)?;
                continue;
            }
            self.write_merged()?;
            for definition in waiting.drain(..) {
                self.write_definition(definition)?;
            }
        }
        Ok(())
    }

    fn waits(&self, definition: &Definition<'a>) -> Result<bool, NotMerged> {
        match definition {
            Definition::Section { .. } | Definition::Module(_) | Definition::Alias(_) => Ok(false),
            Definition::CoreAlias(_) | Definition::Instance(_) => Ok(true),
            Definition::Canonical(_, Some(index)) => {
                Ok(self.graph.origin(Item { kind: Kind::Function, index: *index })?.1 != Time::Early)
            }
            // What is lifted is used by definitions that are not moved.
            Definition::Canonical(_, None) => {
                Err(NotMerged::Form("a function is lifted before all modules have instances"))
            }
        }
    }

    fn write_definition(&mut self, definition: &Definition<'a>) -> Result<(), NotMerged> {
        match definition {
            Definition::Section { id, range } => {
                let data = self.component.get(range.clone()).ok_or(NotMerged::Missing)?;
                self.out.section(&RawSection { id: *id, data });
            }
            Definition::Module(module) if self.modules.contains_key(module) => {}
            Definition::Module(module) => {
                let range = self.graph.modules[*module].clone();
                let data = self.component.get(range).ok_or(NotMerged::Missing)?;
                let index = self.write_module(data);
                self.module_indices.insert(*module, index);
            }
            Definition::Alias(alias) => {
                let mut aliases = ComponentAliasSection::new();
                aliases.alias(self.component_alias(alias.clone())?);
                self.out.section(&aliases);
            }
            Definition::CoreAlias(item) if self.used_items.contains(item) => self.write_core_alias(*item)?,
            Definition::CoreAlias(_) => {}
            Definition::Canonical(function, core) => self.write_canonical(function, *core)?,
            Definition::Instance(instance) => self.write_instance(*instance)?,
        }
        Ok(())
    }

    fn write_module(&mut self, data: &[u8]) -> u32 {
        self.out.section(&RawSection { id: ComponentSectionId::CoreModule.into(), data });
        self.module_count += 1;
        self.module_count - 1
    }

    fn write_merged(&mut self) -> Result<(), NotMerged> {
        let wasm = std::mem::take(&mut self.merged.wasm);
        let module = self.write_module(&wasm);
        let mut imports = Vec::new();
        for (number, index) in self.merged.imports.iter().enumerate() {
            let function = self.item(Kind::Function, *index)?;
            imports.push((number.to_string(), ExportKind::Func, function));
        }
        let mut instances = InstanceSection::new();
        instances.export_items(imports.iter().map(|(name, kind, index)| (name.as_str(), *kind, *index)));
        instances.instantiate(module, [("", ModuleArg::Instance(self.instance_count))]);
        self.out.section(&instances);
        self.merged_instance = self.instance_count + 1;
        self.instance_count += 2;
        Ok(())
    }

    fn write_core_alias(&mut self, item: Item) -> Result<(), NotMerged> {
        let (origin, time) = self.graph.origin(item)?;
        let index = self.aliased(item.kind, origin, time)?;
        self.items.insert(item, index);
        Ok(())
    }

    /// The new index of a definition that is there by now, under an alias if it is an export.
    fn aliased(&mut self, kind: Kind, origin: Origin<'a>, time: Time) -> Result<u32, NotMerged> {
        let index = match (self.origins.get(&(kind, origin)), origin) {
            (Some(index), _) => *index,
            (None, Origin::Canonical(_)) => return Err(NotMerged::Missing),
            (None, Origin::Export { instance, name }) => {
                let (instance, name) = match time {
                    Time::Merged => {
                        let name = self.merged.exports.get(&(instance, name)).ok_or(NotMerged::Missing)?;
                        (self.merged_instance, name.as_str())
                    }
                    _ => (*self.instance_indices.get(&instance).ok_or(NotMerged::Missing)?, name),
                };
                let mut aliases = ComponentAliasSection::new();
                aliases.alias(Alias::CoreInstanceExport { instance, kind: kind.into(), name });
                self.out.section(&aliases);
                self.next_index(kind)
            }
        };
        self.origins.insert((kind, origin), index);
        Ok(index)
    }

    fn write_canonical(&mut self, function: &CanonicalFunction, core: Option<u32>) -> Result<(), NotMerged> {
        let mut functions = CanonicalFunctionSection::new();
        self.parse_component_canonical(&mut functions, function.clone())?;
        self.out.section(&functions);
        if let Some(core) = core {
            let index = self.next_index(Kind::Function);
            self.items.insert(Item { kind: Kind::Function, index: core }, index);
            self.origins.insert((Kind::Function, Origin::Canonical(core)), index);
        }
        Ok(())
    }

    fn write_instance(&mut self, instance: usize) -> Result<(), NotMerged> {
        let mut instances = InstanceSection::new();
        match self.graph.instance(instance)? {
            (CoreInstance::Module { module, arguments }, Time::Late) => {
                let mut imports = self.graph.imports(self.component, *module)?;
                let mut written = Vec::new();
                for (name, argument) in arguments {
                    let index = match self.graph.instance(*argument)? {
                        (CoreInstance::Module { .. }, Time::Merged) => {
                            self.write_argument(*argument, imports.remove(name).unwrap_or_default())?
                        }
                        _ => *self.instance_indices.get(argument).ok_or(NotMerged::Missing)?,
                    };
                    written.push((*name, ModuleArg::Instance(index)));
                }
                instances.instantiate(*self.module_indices.get(module).ok_or(NotMerged::Missing)?, written);
            }
            (CoreInstance::Items(items), _) if self.used_instances.contains(&instance) => {
                let mut written = Vec::new();
                for (name, item) in items {
                    written.push((*name, item.kind.into(), self.item(item.kind, item.index)?));
                }
                instances.export_items(written);
            }
            _ => return Ok(()),
        }
        self.out.section(&instances);
        self.instance_indices.insert(instance, self.instance_count);
        self.instance_count += 1;
        Ok(())
    }

    /// Writes an instance in place of a merged one, with what the instance that takes it imports.
    fn write_argument(&mut self, instance: usize, imported: BTreeMap<&'a str, Kind>) -> Result<u32, NotMerged> {
        let mut written = Vec::new();
        for (name, kind) in imported {
            let index = self.aliased(kind, Origin::Export { instance, name }, Time::Merged)?;
            written.push((name, kind.into(), index));
        }
        let mut instances = InstanceSection::new();
        instances.export_items(written);
        self.out.section(&instances);
        self.instance_count += 1;
        Ok(self.instance_count - 1)
    }

    fn next_index(&mut self, kind: Kind) -> u32 {
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        *count - 1
    }

    fn item(&self, kind: Kind, index: u32) -> Result<u32, NotMerged> {
        self.items.get(&Item { kind, index }).copied().ok_or(NotMerged::Missing)
    }
}

impl Reencode for Writer<'_, '_> {
    type Error = NotMerged;

    fn function_index(&mut self, function: u32) -> Result<u32, Error<NotMerged>> {
        self.item(Kind::Function, function).map_err(Error::UserError)
    }

    fn memory_index(&mut self, memory: u32) -> Result<u32, Error<NotMerged>> {
        self.item(Kind::Memory, memory).map_err(Error::UserError)
    }

    fn table_index(&mut self, table: u32) -> Result<u32, Error<NotMerged>> {
        self.item(Kind::Table, table).map_err(Error::UserError)
    }
}

impl ReencodeComponent for Writer<'_, '_> {}
