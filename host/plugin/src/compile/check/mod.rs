//! The cost of compiling a component, counted from its bytes alone. A few hundred
//! bytes can ask for more than a machine has.

mod component;
mod cost;
mod module;

pub use cost::TooCostly;

use component::Component;
use cost::within;
use module::Module;
use wasmparser::{Encoding, Parser, Payload};

/// The most components within each other. Tools nest three or four deep.
const MAX_DEPTH: usize = 32;

/// Refuses a component whose compilation could use up the whole machine, and one
/// that cannot be read: the compiler might find more in it than this check.
pub(crate) fn check(component: &[u8], max_bytes: usize) -> Result<(), TooCostly> {
    if component.len() > max_bytes {
        return Err(TooCostly::Size { found: component.len(), allowed: max_bytes });
    }
    let mut reading = Reading::default();
    for payload in Parser::new(0).parse_all(component) {
        reading.visit(payload?)?;
    }
    Ok(())
}

fn out_of_place() -> TooCostly {
    TooCostly::Invalid("a section lies outside of every component".into())
}

/// The reader's place in a component.
#[derive(Default)]
struct Reading {
    /// The component, after those that it is in.
    components: Vec<Component>,
    /// The module; nothing nests in a module.
    module: Option<Module>,
}

impl Reading {
    fn visit(&mut self, payload: Payload<'_>) -> Result<(), TooCostly> {
        match (payload, &mut self.module) {
            (Payload::Version { encoding: Encoding::Module, .. }, _) => self.module = Some(Module::default()),
            (Payload::Version { encoding: Encoding::Component, .. }, _) => {
                within("components within each other", self.components.len() as u64 + 1, MAX_DEPTH as u64)?;
                self.components.push(Component::default());
            }
            (Payload::End(_), _) => self.end(),
            (payload, Some(module)) => module.visit(payload)?,
            (payload, None) => {
                let Some((component, outer)) = self.components.split_last_mut() else { return Err(out_of_place()) };
                component.visit(outer, payload)?;
            }
        }
        Ok(())
    }

    /// Ends the module or component, and adds it to the component around it.
    fn end(&mut self) {
        if let Some(module) = self.module.take() {
            if let Some(outer) = self.components.last_mut() {
                outer.modules.push(module.instance());
            }
        } else if let Some(component) = self.components.pop()
            && let Some(outer) = self.components.last_mut()
        {
            outer.components.push(Some(component.instance()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::component::MAX_EXPANDED;
    use super::*;

    fn cost(wat: &str) -> Result<(), TooCostly> {
        check(&wat::parse_str(wat).unwrap(), usize::MAX)
    }

    /// The limit that a component with this function in a module exceeds.
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
            // `unreachable` leaves a stack with any values, which each call takes.
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
