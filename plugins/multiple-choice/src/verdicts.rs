//! The choice of a list or table that judges each option.

use crate::letters::class;
use crate::patterns::compile;
use regex::Regex;

/// Finds verdicts.
pub struct Verdicts {
    option: Regex,
    right: Regex,
    wrong: Regex,
}

impl Verdicts {
    pub fn new(choices: &[char]) -> Result<Self, regex::Error> {
        let before = r"(?: \A | [|:.;,!?)\]—–-] ) [\s*_:—–-]*";
        let after = r"[*_]* \s* (?: [.!|:;,—–-] | \z )";
        Ok(Self {
            // "B) Correct", "| B | Mars | Yes |", "Option B: ✓".
            option: compile(&format!(
                r"(?x) \A [\s*_>\#|-]* (?:(?i:option|choice|statement)\s+)? [(\[]? ({}) [*_]* (?: [)\]:.|] | \s*[|—–:✓✔✅☑✗✘❌✖✕×-] )",
                class(choices)
            ))?,
            right: compile(&format!(
                r"(?x) [✓✔✅☑] | {before} (?i: correct | yes | right | this\s+is\s+it | this\s+(?:one\s+)?(?:is\s+correct|fits|matches|works) ) {after}"
            ))?,
            wrong: compile(&format!(
                r"(?x) [✗✘❌✖✕] | {before} (?i: incorrect | wrong | no | not\s+(?:quite|correct|right|this) | false | this\s+is\s+not\s+it ) {after}"
            ))?,
        })
    }

    /// The only option that is called right, where two or more are judged.
    pub fn choice(&self, response: &str) -> Option<char> {
        let mut right = Vec::new();
        let mut judged = 0;
        for line in response.lines().map(str::trim) {
            let Some(option) = self.option.captures(line) else { continue };
            let Some(letter) = option.get(1) else { continue };
            let rest = &line[letter.end()..];
            judged += 1;
            if self.right.is_match(rest) && !self.wrong.is_match(rest) {
                right.extend(letter.as_str().chars());
            }
        }
        if let [choice] = right[..]
            && judged > 1
        {
            Some(choice)
        } else {
            None
        }
    }
}
