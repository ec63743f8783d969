//! The cost of compiling a component with all its instances written out.

use super::cost::{TooCostly, within};
use wasmparser::{
    ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, ComponentTypeRef, Instance,
    Payload,
};

/// The most definitions and instances once every component is written out where
/// it is instantiated, as the compiler does. reasoning-gym, with 134 MB, has
/// 4,600.
pub(super) const MAX_EXPANDED: u64 = 500_000;

/// A component that is being read.
#[derive(Default)]
pub(super) struct Component {
    /// Definitions, including the definitions of every instance in it.
    expanded: u64,
    /// The cost of instantiating each component that it knows; `None` if that
    /// is unknown.
    pub(super) components: Vec<Option<u64>>,
    /// The same for each core module.
    pub(super) modules: Vec<u64>,
}

impl Component {
    /// The cost of an instance, in definitions.
    pub(super) fn instance(&self) -> u64 {
        1 + self.expanded
    }

    fn add(&mut self, definitions: u64) -> Result<(), TooCostly> {
        self.expanded = self.expanded.saturating_add(definitions);
        within("definitions, with those of every component that it instantiates", self.expanded, MAX_EXPANDED)
    }

    /// Counts a section; `outer` are the components that this one is in.
    pub(super) fn visit(&mut self, outer: &[Self], payload: Payload<'_>) -> Result<(), TooCostly> {
        match payload {
            Payload::ComponentInstanceSection(instances) => {
                for instance in instances {
                    let cost = match instance? {
                        ComponentInstance::Instantiate { component_index, args } => {
                            let known = self.components.get(component_index as usize).copied().flatten();
                            known.ok_or(TooCostly::Unknown)?.saturating_add(args.len() as u64)
                        }
                        ComponentInstance::FromExports(exports) => exports.len() as u64,
                    };
                    self.add(cost.saturating_add(1))?;
                }
            }
            Payload::InstanceSection(instances) => {
                for instance in instances {
                    let cost = match instance? {
                        Instance::Instantiate { module_index, args } => {
                            let known = self.modules.get(module_index as usize).copied().unwrap_or(1);
                            known.saturating_add(args.len() as u64)
                        }
                        Instance::FromExports(exports) => exports.len() as u64,
                    };
                    self.add(cost.saturating_add(1))?;
                }
            }
            Payload::ComponentAliasSection(aliases) => {
                for alias in aliases {
                    match alias? {
                        ComponentAlias::Outer { kind: ComponentOuterAliasKind::Component, count, index } => {
                            let known = |from: &Self| from.components.get(index as usize).copied().flatten();
                            let found = match count {
                                0 => known(self),
                                _ => ancestor(outer, count).and_then(known),
                            };
                            self.components.push(found);
                        }
                        ComponentAlias::Outer { kind: ComponentOuterAliasKind::CoreModule, count, index } => {
                            let known = |from: &Self| from.modules.get(index as usize).copied();
                            let found = match count {
                                0 => known(self),
                                _ => ancestor(outer, count).and_then(known),
                            };
                            self.modules.push(found.unwrap_or(1));
                        }
                        ComponentAlias::InstanceExport { kind: ComponentExternalKind::Component, .. } => {
                            self.components.push(None);
                        }
                        ComponentAlias::InstanceExport { kind: ComponentExternalKind::Module, .. } => {
                            self.modules.push(1)
                        }
                        _ => {}
                    }
                    self.add(1)?;
                }
            }
            Payload::ComponentImportSection(imports) => {
                for import in imports {
                    match import?.ty {
                        ComponentTypeRef::Component(_) => self.components.push(None),
                        ComponentTypeRef::Module(_) => self.modules.push(1),
                        _ => {}
                    }
                    self.add(1)?;
                }
            }
            Payload::ComponentExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    // An export gets an index of its own.
                    match export.kind {
                        ComponentExternalKind::Component => {
                            let known = self.components.get(export.index as usize).copied().flatten();
                            self.components.push(known);
                        }
                        ComponentExternalKind::Module => {
                            let known = self.modules.get(export.index as usize).copied().unwrap_or(1);
                            self.modules.push(known);
                        }
                        _ => {}
                    }
                    self.add(1)?;
                }
            }
            Payload::ComponentTypeSection(types) => self.add(types.count().into())?,
            Payload::CoreTypeSection(types) => self.add(types.count().into())?,
            Payload::ComponentCanonicalSection(functions) => self.add(functions.count().into())?,
            _ => {}
        }
        Ok(())
    }
}

/// The component `count` levels out; the last of `outer` is one level out.
fn ancestor(outer: &[Component], count: u32) -> Option<&Component> {
    outer.len().checked_sub(count as usize).and_then(|at| outer.get(at))
}
