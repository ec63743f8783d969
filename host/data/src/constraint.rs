//! What restricts the tokens of responses, such as a grammar.

use std::fmt::Debug;
use std::sync::Arc;

/// Restricts the tokens of responses.
pub trait Constraint: Debug + Send + Sync {
    /// The state of a response without tokens.
    fn begin(&self) -> Box<dyn ConstraintState>;
}

/// What may follow the tokens of one response.
pub trait ConstraintState: Send {
    /// The tokens that may come next, at least one: bit `id % 32` of word `id / 32`. Tokens beyond the last word may
    /// not come.
    ///
    /// # Errors
    /// Why none is known, now and in later calls.
    fn allowed(&mut self) -> Result<Vec<u32>, String>;

    /// Adds the next token. If this fails, the next [`allowed`](Self::allowed) gives the reason.
    fn advance(&mut self, token: u32);
}

/// A constraint that requests share. Two are equal if they are the same.
#[derive(Debug, Clone)]
pub struct SharedConstraint(Arc<dyn Constraint>);

impl SharedConstraint {
    /// Shares a constraint.
    pub fn new(constraint: impl Constraint + 'static) -> Self {
        Self(Arc::new(constraint))
    }

    /// As [`Constraint::begin`].
    pub fn begin(&self) -> Box<dyn ConstraintState> {
        self.0.begin()
    }
}

impl PartialEq for SharedConstraint {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Nothing;

    impl ConstraintState for Nothing {
        fn allowed(&mut self) -> Result<Vec<u32>, String> {
            Err("nothing".into())
        }

        fn advance(&mut self, _: u32) {}
    }

    impl Constraint for Nothing {
        fn begin(&self) -> Box<dyn ConstraintState> {
            Box::new(Nothing)
        }
    }

    #[test]
    fn only_copies_are_equal() {
        let one = SharedConstraint::new(Nothing);
        assert_eq!(one, one.clone());
        assert_ne!(one, SharedConstraint::new(Nothing));
        assert_eq!(one.begin().allowed(), Err("nothing".into()));
    }
}
