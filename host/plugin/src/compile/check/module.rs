//! The cost of compiling the functions and tables of a core module.

use super::cost::{TooCostly, within};
use wasmparser::{BlockType, CompositeInnerType, ElementItems, FunctionBody, Operator, Payload, TryTable, TypeRef};

/// The most elements of a module's tables. SpiderMonkey has 7,700.
pub(super) const MAX_ELEMENTS: u64 = 1_000_000;
/// The most values that calls, branches and blocks of one function pass on. The
/// largest function of CPython passes on 7,800.
const MAX_PASSED: u64 = 200_000;
/// The most blocks of one function, times its locals, which may have to be kept
/// alive across each block. SpiderMonkey's largest function has 434,000. Nested
/// loops with a million take the compiler 4 s.
const MAX_LIVE: u64 = 5_000_000;

/// A core module that is being read.
#[derive(Default)]
pub(super) struct Module {
    /// The numbers of parameters and results of each type.
    types: Vec<(u64, u64)>,
    /// The type of each function.
    functions: Vec<u32>,
    imported_functions: usize,
    elements: u64,
    /// The bodies seen so far.
    bodies: usize,
}

impl Module {
    /// The cost of an instance, in definitions. The module itself is compiled
    /// once, however often it is instantiated.
    pub(super) fn instance(&self) -> u64 {
        1 + self.imported_functions as u64
    }

    /// The numbers of parameters and results of a function.
    fn signature(&self, function: u32) -> (u64, u64) {
        self.functions.get(function as usize).map_or((0, 0), |ty| self.ty(*ty))
    }

    fn ty(&self, ty: u32) -> (u64, u64) {
        self.types.get(ty as usize).copied().unwrap_or_default()
    }

    fn block(&self, ty: BlockType) -> (u64, u64) {
        match ty {
            BlockType::Empty => (0, 0),
            BlockType::Type(_) => (0, 1),
            BlockType::FuncType(ty) => self.ty(ty),
        }
    }

    /// Counts a section.
    pub(super) fn visit(&mut self, payload: Payload<'_>) -> Result<(), TooCostly> {
        match payload {
            Payload::TypeSection(types) => {
                for group in types {
                    for ty in group?.into_types() {
                        self.types.push(match ty.composite_type.inner {
                            CompositeInnerType::Func(ty) => (ty.params().len() as u64, ty.results().len() as u64),
                            _ => (0, 0),
                        });
                    }
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    if let TypeRef::Func(ty) | TypeRef::FuncExact(ty) = import?.ty {
                        self.functions.push(ty);
                        self.imported_functions += 1;
                    }
                }
            }
            Payload::FunctionSection(functions) => {
                for ty in functions {
                    self.functions.push(ty?);
                }
            }
            Payload::ElementSection(segments) => {
                for segment in segments {
                    self.elements += match segment?.items {
                        ElementItems::Functions(items) => u64::from(items.count()),
                        ElementItems::Expressions(_, items) => u64::from(items.count()),
                    };
                    within("elements of tables", self.elements, MAX_ELEMENTS)?;
                }
            }
            Payload::CodeSectionEntry(body) => {
                let function = self.imported_functions + self.bodies;
                self.bodies += 1;
                self.visit_body(function, &body)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn visit_body(&self, function: usize, body: &FunctionBody<'_>) -> Result<(), TooCostly> {
        let (mut locals, results) = self.signature(function as u32);
        for group in body.get_locals_reader()? {
            locals += u64::from(group?.0);
        }
        // For each label, the number of values that a branch to it passes on.
        let mut labels = vec![results];
        let (mut passed, mut blocks) = (0_u64, 1_u64);
        for operator in body.get_operators_reader()? {
            let label =
                |labels: &[u64], depth: u32| labels.len().checked_sub(depth as usize + 1).map_or(0, |at| labels[at]);
            passed += match operator? {
                Operator::Block { blockty }
                | Operator::If { blockty }
                | Operator::TryTable { try_table: TryTable { ty: blockty, .. } } => {
                    let (params, results) = self.block(blockty);
                    blocks += 1;
                    labels.push(results);
                    params + results
                }
                Operator::Loop { blockty } => {
                    let (params, results) = self.block(blockty);
                    blocks += 1;
                    labels.push(params);
                    params + results
                }
                Operator::End => {
                    labels.pop();
                    0
                }
                Operator::Br { relative_depth } | Operator::BrIf { relative_depth } => {
                    blocks += 1;
                    label(&labels, relative_depth)
                }
                Operator::BrTable { targets } => {
                    let mut sum = label(&labels, targets.default());
                    for target in targets.targets() {
                        sum += label(&labels, target?);
                    }
                    // The targets share the blocks that they branch to.
                    blocks += 1;
                    sum
                }
                Operator::Call { function_index } | Operator::ReturnCall { function_index } => {
                    let (params, results) = self.signature(function_index);
                    params + results
                }
                Operator::CallIndirect { type_index, .. } | Operator::ReturnCallIndirect { type_index, .. } => {
                    let (params, results) = self.ty(type_index);
                    params + results
                }
                Operator::Return => results,
                _ => 0,
            };
            within("values that a function passes to calls and blocks", passed, MAX_PASSED)?;
            within("blocks of a function times its locals", blocks.saturating_mul(locals.max(1)), MAX_LIVE)?;
        }
        Ok(())
    }
}
