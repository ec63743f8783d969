//! What a component would cost to compile, counted from its bytes alone: a few
//! hundred bytes can ask for more than a machine has.

use wasmparser::{
    BlockType, ComponentAlias, ComponentExternalKind, ComponentInstance, ComponentOuterAliasKind, ComponentTypeRef,
    CompositeInnerType, ElementItems, Encoding, FunctionBody, Instance, Operator, Parser, Payload, TypeRef,
};

/// Components and modules within each other. Tools nest three or four deep.
const MAX_DEPTH: usize = 32;
/// Definitions and instances once every component is written out where it is
/// instantiated, as the compiler does. reasoning-gym, of 134 MB, has 4,600.
const MAX_EXPANDED: u64 = 500_000;
/// Elements of a module's tables. SpiderMonkey has 7,700.
const MAX_ELEMENTS: u64 = 1_000_000;
/// Values that calls, branches and blocks of one function pass on. The largest
/// function of CPython passes on 7,800.
const MAX_PASSED: u64 = 200_000;
/// Blocks of one function, times its locals: what may have to be kept alive
/// across each. SpiderMonkey's largest function comes to 434,000; nested loops
/// that come to a million take the compiler 4 s.
const MAX_LIVE: u64 = 5_000_000;

/// A component that is not compiled, since that could take all of a machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TooCostly {
    /// The file is larger than is allowed.
    #[error("it has {found} bytes, {allowed} are allowed")]
    Size {
        /// Its bytes.
        found: usize,
        /// The limit.
        allowed: usize,
    },
    /// Something in it would be multiplied by the compiler.
    #[error("{what}: {found}, {allowed} are allowed")]
    Count {
        /// What there is too much of.
        what: &'static str,
        /// How much of it.
        found: u64,
        /// The limit.
        allowed: u64,
    },
    /// What it would take cannot be told, since it is not valid.
    #[error("{0}")]
    Invalid(String),
    /// It instantiates a component that it gets from elsewhere, whose cost
    /// cannot be known.
    #[error("it instantiates a component that it imports or is handed, so that its size cannot be told")]
    Unknown,
}

/// Refuses a component whose compilation could take all of a machine, and one
/// that cannot be read: the compiler might see more in it than this does.
pub(crate) fn check(component: &[u8], max_bytes: usize) -> Result<(), TooCostly> {
    if component.len() > max_bytes {
        return Err(TooCostly::Size { found: component.len(), allowed: max_bytes });
    }
    let mut scopes = vec![];
    for payload in Parser::new(0).parse_all(component) {
        visit(&mut scopes, payload?)?;
    }
    Ok(())
}

impl From<wasmparser::BinaryReaderError> for TooCostly {
    fn from(error: wasmparser::BinaryReaderError) -> Self {
        Self::Invalid(error.to_string())
    }
}

fn within(what: &'static str, found: u64, allowed: u64) -> Result<(), TooCostly> {
    if found > allowed { Err(TooCostly::Count { what, found, allowed }) } else { Ok(()) }
}

fn out_of_place() -> TooCostly {
    TooCostly::Invalid("a section is in no component".into())
}

/// A component or a module that is being read.
#[derive(Default)]
struct Scope {
    is_module: bool,
    /// Definitions, with those of every instance in it.
    expanded: u64,
    /// What it takes to instantiate each component that it knows; none where
    /// that cannot be told.
    components: Vec<Option<u64>>,
    /// The same of each core module.
    modules: Vec<u64>,
    /// Of a module: the parameters and results of its types, the types of its
    /// functions, its elements, and the bodies seen so far.
    types: Vec<(u64, u64)>,
    functions: Vec<u32>,
    imported_functions: usize,
    elements: u64,
    bodies: usize,
}

impl Scope {
    fn add(&mut self, definitions: u64) -> Result<(), TooCostly> {
        self.expanded = self.expanded.saturating_add(definitions);
        within("definitions, with those of every component that it instantiates", self.expanded, MAX_EXPANDED)
    }

    fn signature(&self, function: u32) -> (u64, u64) {
        self.functions.get(function as usize).map_or((0, 0), |ty| self.ty(*ty))
    }

    fn ty(&self, ty: u32) -> (u64, u64) {
        self.types.get(ty as usize).copied().unwrap_or_default()
    }
}

fn visit(scopes: &mut Vec<Scope>, payload: Payload<'_>) -> Result<(), TooCostly> {
    match payload {
        Payload::Version { encoding, .. } => {
            within("components and modules within each other", scopes.len() as u64 + 1, MAX_DEPTH as u64)?;
            scopes.push(Scope { is_module: encoding == Encoding::Module, ..Scope::default() });
            return Ok(());
        }
        Payload::End(_) => {
            let Some(done) = scopes.pop() else { return Err(out_of_place()) };
            if let Some(outer) = scopes.last_mut() {
                // A module is compiled once, however often it is instantiated.
                match done.is_module {
                    true => outer.modules.push(1 + done.imported_functions as u64),
                    false => outer.components.push(Some(1 + done.expanded)),
                }
            }
            return Ok(());
        }
        _ => {}
    }
    let Some((scope, outer)) = scopes.split_last_mut() else { return Err(out_of_place()) };
    match scope.is_module {
        true => visit_module(scope, payload),
        false => visit_component(scope, outer, payload),
    }
}

fn visit_component(scope: &mut Scope, outer: &[Scope], payload: Payload<'_>) -> Result<(), TooCostly> {
    match payload {
        Payload::ComponentInstanceSection(instances) => {
            for instance in instances {
                let cost = match instance? {
                    ComponentInstance::Instantiate { component_index, args } => {
                        let known = scope.components.get(component_index as usize).copied().flatten();
                        known.ok_or(TooCostly::Unknown)?.saturating_add(args.len() as u64)
                    }
                    ComponentInstance::FromExports(exports) => exports.len() as u64,
                };
                scope.add(cost.saturating_add(1))?;
            }
        }
        Payload::InstanceSection(instances) => {
            for instance in instances {
                let cost = match instance? {
                    Instance::Instantiate { module_index, args } => {
                        let known = scope.modules.get(module_index as usize).copied().unwrap_or(1);
                        known.saturating_add(args.len() as u64)
                    }
                    Instance::FromExports(exports) => exports.len() as u64,
                };
                scope.add(cost.saturating_add(1))?;
            }
        }
        Payload::ComponentAliasSection(aliases) => {
            for alias in aliases {
                match alias? {
                    ComponentAlias::Outer { kind: ComponentOuterAliasKind::Component, count, index } => {
                        let known = |from: &Scope| from.components.get(index as usize).copied().flatten();
                        let found = match count {
                            0 => known(scope),
                            _ => ancestor(outer, count).and_then(known),
                        };
                        scope.components.push(found);
                    }
                    ComponentAlias::Outer { kind: ComponentOuterAliasKind::CoreModule, count, index } => {
                        let known = |from: &Scope| from.modules.get(index as usize).copied();
                        let found = match count {
                            0 => known(scope),
                            _ => ancestor(outer, count).and_then(known),
                        };
                        scope.modules.push(found.unwrap_or(1));
                    }
                    ComponentAlias::InstanceExport { kind: ComponentExternalKind::Component, .. } => {
                        scope.components.push(None);
                    }
                    ComponentAlias::InstanceExport { kind: ComponentExternalKind::Module, .. } => scope.modules.push(1),
                    _ => {}
                }
                scope.add(1)?;
            }
        }
        Payload::ComponentImportSection(imports) => {
            for import in imports {
                match import?.ty {
                    ComponentTypeRef::Component(_) => scope.components.push(None),
                    ComponentTypeRef::Module(_) => scope.modules.push(1),
                    _ => {}
                }
                scope.add(1)?;
            }
        }
        Payload::ComponentExportSection(exports) => {
            for export in exports {
                let export = export?;
                // What is exported has a further index.
                match export.kind {
                    ComponentExternalKind::Component => {
                        let known = scope.components.get(export.index as usize).copied().flatten();
                        scope.components.push(known);
                    }
                    ComponentExternalKind::Module => {
                        let known = scope.modules.get(export.index as usize).copied().unwrap_or(1);
                        scope.modules.push(known);
                    }
                    _ => {}
                }
                scope.add(1)?;
            }
        }
        Payload::ComponentTypeSection(types) => scope.add(types.count().into())?,
        Payload::CoreTypeSection(types) => scope.add(types.count().into())?,
        Payload::ComponentCanonicalSection(functions) => scope.add(functions.count().into())?,
        _ => {}
    }
    Ok(())
}

/// The scope `count` levels out; the last of `outer` is one level out.
fn ancestor(outer: &[Scope], count: u32) -> Option<&Scope> {
    outer.len().checked_sub(count as usize).and_then(|at| outer.get(at))
}

fn visit_module(scope: &mut Scope, payload: Payload<'_>) -> Result<(), TooCostly> {
    match payload {
        Payload::TypeSection(types) => {
            for group in types {
                for ty in group?.into_types() {
                    scope.types.push(match ty.composite_type.inner {
                        CompositeInnerType::Func(ty) => (ty.params().len() as u64, ty.results().len() as u64),
                        _ => (0, 0),
                    });
                }
            }
        }
        Payload::ImportSection(imports) => {
            for import in imports.into_imports() {
                if let TypeRef::Func(ty) | TypeRef::FuncExact(ty) = import?.ty {
                    scope.functions.push(ty);
                    scope.imported_functions += 1;
                }
            }
        }
        Payload::FunctionSection(functions) => {
            for ty in functions {
                scope.functions.push(ty?);
            }
        }
        Payload::ElementSection(segments) => {
            for segment in segments {
                scope.elements += match segment?.items {
                    ElementItems::Functions(items) => u64::from(items.count()),
                    ElementItems::Expressions(_, items) => u64::from(items.count()),
                };
                within("elements of tables", scope.elements, MAX_ELEMENTS)?;
            }
        }
        Payload::CodeSectionEntry(body) => {
            let function = scope.imported_functions + scope.bodies;
            scope.bodies += 1;
            visit_body(scope, function, &body)?;
        }
        _ => {}
    }
    Ok(())
}

fn visit_body(scope: &Scope, function: usize, body: &FunctionBody<'_>) -> Result<(), TooCostly> {
    let (mut locals, results) = scope.signature(function as u32);
    for group in body.get_locals_reader()? {
        locals += u64::from(group?.0);
    }
    // A label's values: what a branch to it passes on.
    let mut labels = vec![results];
    let (mut passed, mut blocks) = (0_u64, 1_u64);
    for operator in body.get_operators_reader()? {
        let label =
            |labels: &[u64], depth: u32| labels.len().checked_sub(depth as usize + 1).map_or(0, |at| labels[at]);
        passed += match operator? {
            Operator::Block { blockty }
            | Operator::If { blockty }
            | Operator::TryTable { try_table: wasmparser::TryTable { ty: blockty, .. } } => {
                let (params, results) = block(scope, blockty);
                blocks += 1;
                labels.push(results);
                params + results
            }
            Operator::Loop { blockty } => {
                let (params, results) = block(scope, blockty);
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
                let (params, results) = scope.signature(function_index);
                params + results
            }
            Operator::CallIndirect { type_index, .. } | Operator::ReturnCallIndirect { type_index, .. } => {
                let (params, results) = scope.ty(type_index);
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

fn block(scope: &Scope, ty: BlockType) -> (u64, u64) {
    match ty {
        BlockType::Empty => (0, 0),
        BlockType::Type(_) => (0, 1),
        BlockType::FuncType(ty) => scope.ty(ty),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cost(wat: &str) -> Result<(), TooCostly> {
        check(&wat::parse_str(wat).unwrap(), usize::MAX)
    }

    /// What a component with this function in a module has too much of.
    fn of_function(module: &str) -> Option<&'static str> {
        match cost(&format!("(component (core module {module}))")) {
            Ok(()) => None,
            Err(TooCostly::Count { what, .. }) => Some(what),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_component_is_as_large_as_is_allowed() {
        let bytes = wat::parse_str("(component)").unwrap();
        assert_eq!(check(&bytes, 8), Ok(()));
        assert_eq!(check(&bytes, 7), Err(TooCostly::Size { found: 8, allowed: 7 }));
    }

    #[test]
    fn instances_are_counted_as_the_compiler_writes_them_out() {
        let levels = |levels: usize| {
            let level = |at: usize| {
                let instances = "(instance (instantiate $c))".repeat(10);
                format!("(component $c{at} (alias outer $root $c{} (component $c)) {instances})", at - 1)
            };
            let nested: String = (1..=levels).map(level).collect();
            cost(&format!("(component $root (component $c0) {nested} (instance (instantiate $c{levels})))"))
        };
        assert_eq!(levels(4), Ok(()));
        assert!(matches!(levels(8), Err(TooCostly::Count { allowed: MAX_EXPANDED, .. })));
    }

    #[test]
    fn an_instance_of_an_unknown_component_is_refused() {
        let wat = "(component (import \"c\" (component $c)) (instance (instantiate $c)))";
        assert_eq!(cost(wat), Err(TooCostly::Unknown));
        assert_eq!(cost("(component (component $c) (instance (instantiate $c)))"), Ok(()));
    }

    #[test]
    fn nesting_has_a_depth() {
        let nested = |depth: usize| cost(&format!("{}{}", "(component ".repeat(depth), ")".repeat(depth)));
        assert_eq!(nested(MAX_DEPTH), Ok(()));
        assert!(matches!(nested(MAX_DEPTH + 1), Err(TooCostly::Count { .. })));
    }

    #[test]
    fn a_function_passes_on_a_bounded_number_of_values() {
        let wide = format!("(func $wide (param {}))", "i64 ".repeat(1000));
        let calls = |count: usize| {
            // Each call takes what `unreachable` leaves on the stack: anything.
            of_function(&format!("{wide} (func unreachable {})", "call $wide ".repeat(count)))
        };
        assert_eq!(calls(199), None);
        assert_eq!(calls(201), Some("values that a function passes to calls and blocks"));

        let blocks = |count: usize| {
            let ty = format!("(type $t (func (result {})))", "i64 ".repeat(1000));
            let branches = "(br_if 0) unreachable ".repeat(count);
            of_function(&format!("{ty} (func (block (type $t) unreachable {branches}) unreachable)"))
        };
        assert_eq!(blocks(190), None);
        assert_eq!(blocks(201), Some("values that a function passes to calls and blocks"));
    }

    #[test]
    fn what_lives_through_loops_is_bounded() {
        let function = |loops: usize| {
            let (begin, end) = ("(loop ".repeat(loops), ")".repeat(loops));
            of_function(&format!("(func (local {}) {begin}{end})", "i64 ".repeat(50_000)))
        };
        assert_eq!(function(99), None);
        assert_eq!(function(100), Some("blocks of a function times its locals"));
    }

    #[test]
    fn tables_have_a_bounded_number_of_elements() {
        let elements = |count: usize| of_function(&format!("(func $f) (elem func {})", "$f ".repeat(count)));
        assert_eq!(elements(1_000_000), None);
        assert_eq!(elements(1_000_001), Some("elements of tables"));
    }

    #[test]
    fn what_cannot_be_read_is_not_left_to_the_compiler() {
        for bytes in [&b""[..], b"\0asm\x0d\0\x01", b"\0asm\x0d\0\x01\0\xff"] {
            assert!(matches!(check(bytes, usize::MAX), Err(TooCostly::Invalid(_))), "{bytes:?}");
        }
    }

    #[test]
    fn vectors_of_the_standard_are_known() {
        let two = "local.get 0 local.get 0";
        assert_eq!(of_function(&format!("(func (param v128) (result v128) {two} i8x16.add)")), None);
        assert_eq!(of_function(&format!("(func (param v128) (result v128) {two} f32x4.relaxed_min)")), None);
    }
}
