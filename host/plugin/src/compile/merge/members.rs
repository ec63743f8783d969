//! The modules that are merged, and how their imports are resolved.

use super::graph::{CoreInstance, Graph, Kind, Origin, Time};
use super::indices::Indices;
use super::member::{Definer, Member};
use super::not_merged::NotMerged;
use super::sections::Sections;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Range;
use wasmparser::{DataKind, ElementKind, Parser, Payload, TypeRef};

/// The number of the merged module's imports is a multiple of this one. What code reads of its own instance lies after
/// the imports, so that a function of an interpreter has the same code in all components, and is compiled once, only if
/// they have equally many. A Python component has some 45.
const IMPORTS: usize = 128;

/// The merged module.
pub(super) struct Merged<'a> {
    pub(super) wasm: Vec<u8>,
    /// The core functions that it imports as `0`, `1` and so on.
    pub(super) imports: Vec<u32>,
    /// The names of its exports, by the instances and names that they had.
    pub(super) exports: BTreeMap<(usize, &'a str), String>,
}

/// Instances that start after the merged one, though they were before a member.
#[derive(Default)]
struct Late {
    /// Whether one runs code when it starts.
    runs: bool,
    /// The tables and memories of members that their segments may be written to.
    reaches: HashSet<(Kind, Definer)>,
    /// Their arguments.
    arguments: BTreeSet<usize>,
}

/// A function that the merged module imports.
struct Import {
    /// Its index in the component.
    function: u32,
    /// A member that imports it, and its type there.
    member: usize,
    ty: u32,
}

/// Merges the modules of `graph` that are not late, and exports `used`.
pub(super) fn merge_modules<'a>(
    component: &'a [u8],
    graph: &Graph<'a>,
    used: &BTreeSet<(usize, &'a str)>,
) -> Result<Merged<'a>, NotMerged> {
    let mut members = Members {
        graph,
        members: Vec::new(),
        by_instance: HashMap::new(),
        imports: Vec::new(),
        import_numbers: HashMap::new(),
        started: false,
        late: Late::default(),
    };
    for (index, (instance, time)) in graph.instances.iter().enumerate() {
        let CoreInstance::Module { module, arguments } = instance else { continue };
        let range: Option<&Range<usize>> = graph.modules.get(*module);
        let wasm = range.and_then(|range| component.get(range.clone())).ok_or(NotMerged::Missing)?;
        match time {
            Time::Late => members.add_late(component, *module, arguments)?,
            _ => members.add(index, wasm, arguments)?,
        }
    }
    members.encode(used)
}

struct Members<'g, 'a> {
    graph: &'g Graph<'a>,
    members: Vec<Member<'a>>,
    /// The numbers of members, by their instances.
    by_instance: HashMap<usize, usize>,
    imports: Vec<Import>,
    /// The numbers of imports, by their functions.
    import_numbers: HashMap<u32, u32>,
    /// Whether a member has a start function.
    started: bool,
    late: Late,
}

impl<'a> Members<'_, 'a> {
    fn add(&mut self, instance: usize, wasm: &'a [u8], arguments: &BTreeMap<&'a str, usize>) -> Result<(), NotMerged> {
        let number = self.members.len();
        let mut member = Member { wasm, ..Member::default() };
        for payload in Parser::new(0).parse_all(wasm) {
            self.read(&mut member, &payload?, arguments)?;
        }
        self.check_order(&member)?;
        self.started |= member.starts;
        self.by_instance.insert(instance, number);
        self.members.push(member);
        Ok(())
    }

    fn read(
        &mut self,
        member: &mut Member<'a>,
        payload: &Payload<'a>,
        arguments: &BTreeMap<&'a str, usize>,
    ) -> Result<(), NotMerged> {
        let number = self.members.len();
        match payload {
            Payload::TypeSection(groups) => {
                for group in groups.clone() {
                    member.types += group?.types().len() as u32;
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.clone().into_imports() {
                    let import = import?;
                    let instance = *arguments.get(import.module).ok_or(NotMerged::Missing)?;
                    let (origin, _) = self.graph.export(instance, import.name)?;
                    self.add_import(member, origin, import.ty)?;
                }
            }
            Payload::FunctionSection(section) => member.defined[Kind::Function as usize] = counted(section)?,
            Payload::TableSection(section) => member.defined[Kind::Table as usize] = counted(section)?,
            Payload::MemorySection(section) => member.defined[Kind::Memory as usize] = counted(section)?,
            Payload::GlobalSection(section) => member.defined[Kind::Global as usize] = counted(section)?,
            Payload::TagSection(section) => member.defined[Kind::Tag as usize] = counted(section)?,
            Payload::ExportSection(exports) => {
                for export in exports.clone() {
                    let export = export?;
                    member.exports.insert(export.name, (export.kind.into(), export.index));
                }
            }
            Payload::StartSection { .. } => member.starts = true,
            Payload::ElementSection(elements) => {
                member.elements = counted(elements)?;
                for element in elements.clone() {
                    if let ElementKind::Active { table_index, .. } = element?.kind {
                        let table = member.definer(number, Kind::Table, table_index.unwrap_or_default());
                        member.writes.insert((Kind::Table, table));
                    }
                }
            }
            Payload::DataSection(segments) => {
                member.data = counted(segments)?;
                for segment in segments.clone() {
                    if let DataKind::Active { memory_index, .. } = segment?.kind {
                        let memory = member.definer(number, Kind::Memory, memory_index);
                        member.writes.insert((Kind::Memory, memory));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Refuses a member where a function that runs at a start would find other
    /// contents than before, or where segments would be written in another order.
    fn check_order(&self, member: &Member<'a>) -> Result<(), NotMerged> {
        let acts = member.starts || !member.writes.is_empty();
        if acts && self.started {
            return Err(NotMerged::Form("a module starts after another module's start function"));
        }
        let sees_late = member.starts && self.late_came();
        if sees_late || (acts && self.late.runs) || !member.writes.is_disjoint(&self.late.reaches) {
            return Err(NotMerged::Form("a module starts after an instance that must start later"));
        }
        Ok(())
    }

    fn late_came(&self) -> bool {
        self.late.runs || !self.late.reaches.is_empty()
    }

    fn add_late(
        &mut self,
        component: &'a [u8],
        module: usize,
        arguments: &BTreeMap<&'a str, usize>,
    ) -> Result<(), NotMerged> {
        for payload in Parser::new(0).parse_all(&component[self.graph.modules[module].clone()]) {
            self.late.runs |= matches!(payload?, Payload::StartSection { .. });
        }
        let imports = self.graph.imports(component, module)?;
        for (name, instance) in arguments {
            if let (CoreInstance::Module { .. }, Time::Merged) = self.graph.instance(*instance)? {
                for (item, kind) in imports.get(name).into_iter().flatten() {
                    if let Kind::Table | Kind::Memory = kind {
                        self.late.reaches.insert((*kind, self.exported(*instance, item)?.1));
                    }
                }
            }
            let Some(items) = self.graph.items_once(&mut self.late.arguments, *instance)? else { continue };
            for item in items.values() {
                if let (Kind::Table | Kind::Memory, (origin, Time::Merged)) = (item.kind, self.graph.origin(*item)?) {
                    self.late.reaches.insert((item.kind, self.resolve(origin)?));
                }
            }
        }
        Ok(())
    }

    fn add_import(&mut self, member: &mut Member<'a>, origin: Origin<'a>, ty: TypeRef) -> Result<(), NotMerged> {
        let kind = Kind::from(ty);
        let definer = match (origin, ty) {
            (Origin::Canonical(function), TypeRef::Func(ty)) => {
                let next = self.imports.len() as u32;
                let number = *self.import_numbers.entry(function).or_insert(next);
                if number == next {
                    self.imports.push(Import { function, member: self.members.len(), ty });
                }
                Definer::Import(number)
            }
            (Origin::Canonical(_), _) => return Err(NotMerged::Missing),
            (Origin::Export { .. }, _) => self.resolve(origin)?,
        };
        member.imported[kind as usize].push(definer);
        Ok(())
    }

    fn exported(&self, instance: usize, name: &str) -> Result<(Kind, Definer), NotMerged> {
        let number = *self.by_instance.get(&instance).ok_or(NotMerged::Missing)?;
        let member = &self.members[number];
        let (kind, index) = *member.exports.get(name).ok_or(NotMerged::Missing)?;
        Ok((kind, member.definer(number, kind, index)))
    }

    fn resolve(&self, origin: Origin<'a>) -> Result<Definer, NotMerged> {
        match origin {
            Origin::Canonical(function) => {
                Ok(Definer::Import(*self.import_numbers.get(&function).ok_or(NotMerged::Missing)?))
            }
            Origin::Export { instance, name } => Ok(self.exported(instance, name)?.1),
        }
    }

    fn encode(self, used: &BTreeSet<(usize, &'a str)>) -> Result<Merged<'a>, NotMerged> {
        // Nothing uses the imports that are repeated.
        let count = self.imports.len().next_multiple_of(IMPORTS);
        let imports: Vec<_> = self.imports.iter().cycle().take(count).collect();
        let indices = Indices::new(&self.members, count as u32);
        let mut sections = Sections::default();
        for import in &imports {
            sections.add_import(indices.ty(import.member, import.ty)?);
        }
        let mut constants = HashMap::new();
        for (number, member) in self.members.iter().enumerate() {
            sections.add(member, &mut indices.mapping(number, member, &mut constants))?;
        }
        let mut exports = BTreeMap::new();
        for (instance, name) in used {
            let (kind, definer) = self.exported(*instance, name)?;
            let new = exports.len().to_string();
            sections.add_export(&new, kind, indices.index(kind, definer));
            exports.insert((*instance, *name), new);
        }
        let imports = imports.iter().map(|import| import.function).collect();
        Ok(Merged { wasm: sections.finish(), imports, exports })
    }
}

/// The number of a section's items, each of which takes a byte at least.
fn counted<T>(section: &wasmparser::SectionLimited<'_, T>) -> Result<u32, NotMerged> {
    let range = section.range();
    if u64::from(section.count()) > range.end - range.start {
        return Err(NotMerged::Missing);
    }
    Ok(section.count())
}
