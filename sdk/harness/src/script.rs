//! The answers of a fake, and the requests that it got.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Answers of the type `A` to questions of the type `Q`.
pub(crate) struct Script<Q, A> {
    answers: Mutex<Answers<Q, A>>,
    asked: Mutex<Vec<Q>>,
}

enum Answers<Q, A> {
    InOrder(VecDeque<A>),
    Function(Box<dyn Fn(&Q) -> A + Send + Sync>),
}

impl<Q, A> Script<Q, A> {
    pub(crate) fn in_order(answers: impl IntoIterator<Item = A>) -> Self {
        Self { answers: Mutex::new(Answers::InOrder(answers.into_iter().collect())), asked: Mutex::default() }
    }

    pub(crate) fn function(answer: impl Fn(&Q) -> A + Send + Sync + 'static) -> Self {
        Self { answers: Mutex::new(Answers::Function(Box::new(answer))), asked: Mutex::default() }
    }

    /// The answer, and the number of the question, from 1. There is no answer
    /// after the end of a script.
    pub(crate) fn ask(&self, question: Q) -> (Option<A>, usize) {
        let mut answers = lock(&self.answers);
        let answer = match &mut *answers {
            Answers::InOrder(answers) => answers.pop_front(),
            Answers::Function(answer) => Some(answer(&question)),
        };
        let mut asked = lock(&self.asked);
        asked.push(question);
        (answer, asked.len())
    }

    /// Restarts with other answers.
    pub(crate) fn restart(&self, answers: impl IntoIterator<Item = A>) {
        *lock(&self.answers) = Answers::InOrder(answers.into_iter().collect());
        lock(&self.asked).clear();
    }
}

impl<Q: Clone, A> Script<Q, A> {
    pub(crate) fn asked(&self) -> Vec<Q> {
        lock(&self.asked).clone()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
