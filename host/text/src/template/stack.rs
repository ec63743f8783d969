//! Reading a template in a stack that is large enough for it.
//!
//! The engine's parser bounds brackets and blocks, but neither chains of operators nor `elif`. It reads, compiles and
//! drops them by recursion.

use super::budget::is_reserved;
use crate::error::{Result, TextError};
use minijinja::machinery::{Token, tokenize};
use minijinja::syntax::SyntaxConfig;
use std::path::Path;

/// The most bytes of a template. The longest of open models have 0.1 MB.
const BYTES: usize = 4 << 20;
/// The most words and signs between `{{` or `{%` and its end.
const TAG: usize = 4096;
/// The most `elif` of a template.
const ELIF: usize = 1024;
/// The stack for the deepest template within these bounds, ten times over. Untouched, it takes no memory.
const STACK: usize = 64 << 20;

/// Checks that a template is read within [`deep`].
pub(super) fn check(path: &Path, source: &str, syntax: &SyntaxConfig) -> Result<()> {
    let wrong =
        |what: String| Err(TextError::File { path: path.to_owned(), what: format!("the chat template has {what}") });
    if source.len() > BYTES {
        return wrong(format!("more than {BYTES} bytes"));
    }
    let (mut tag, mut elif) = (0, 0);
    // Where a token is none, the parser stops, too.
    for (token, span) in tokenize(source, false, syntax.clone()).map_while(std::result::Result::ok) {
        if let Token::Ident(name) = token
            && is_reserved(name)
        {
            return wrong(format!("the reserved name `{name}` (line {})", span.start_line));
        }
        match token {
            Token::VariableStart | Token::BlockStart => tag = 0,
            Token::Ident("elif") if tag == 0 => elif += 1,
            _ => tag += 1,
        }
        if tag > TAG {
            return wrong(format!("more than {TAG} words and signs in a tag (line {})", span.start_line));
        }
        if elif > ELIF {
            return wrong(format!("more than {ELIF} `elif` (line {})", span.start_line));
        }
    }
    Ok(())
}

/// Runs `work` in a thread with a large stack.
///
/// # Errors
/// The system starts no thread.
pub(super) fn deep<T: Send>(work: impl FnOnce() -> T + Send) -> std::io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work)?;
        match thread.join() {
            Ok(done) => Ok(done),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(source: &str) -> std::result::Result<(), String> {
        check(Path::new("t"), source, &SyntaxConfig::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_tag_has_a_most_of_signs() {
        // A tag has its end, too.
        let sum = |terms: usize| format!("a\n{{{{ 1{} }}}}", "+1".repeat(terms - 1));
        assert_eq!(checked(&sum(TAG / 2)), Ok(()));
        let error = format!("t: the chat template has more than {TAG} words and signs in a tag (line 2)");
        assert_eq!(checked(&sum(TAG / 2 + 1)), Err(error));
        assert_eq!(checked(&"{{ 1 + 1 }}{% if elif %}{% endif %}{# elif #} elif ".repeat(TAG)), Ok(()));
    }

    #[test]
    fn a_template_does_not_replace_the_calls_that_count() {
        for name in ["__measured", "__kept", "__kept_in", "__searched", "__compared", "__spread"] {
            let error = Err(format!("t: the chat template has the reserved name `{name}` (line 2)"));
            assert_eq!(checked(&format!("\n{{% for {name} in [dict] %}}{{% endfor %}}")), error);
            assert_eq!(checked(&format!("{name} {{{{ '{name}' ~ {name}s }}}}")), Ok(()));
        }
    }

    #[test]
    fn a_template_has_a_most_of_elif_and_of_bytes() {
        let chain = |elif: usize| format!("{{% if 0 %}}{}{{% endif %}}", "{%- elif 1 -%}".repeat(elif));
        assert_eq!(checked(&chain(ELIF)), Ok(()));
        let error = format!("t: the chat template has more than {ELIF} `elif` (line 1)");
        assert_eq!(checked(&chain(ELIF + 1)), Err(error));
        let error = format!("t: the chat template has more than {BYTES} bytes");
        assert_eq!(checked(&" ".repeat(BYTES + 1)), Err(error));
    }
}
