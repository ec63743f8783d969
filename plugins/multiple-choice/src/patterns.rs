//! Regular expressions for the words around a stated answer. Letters are read
//! apart from them.

use crate::languages;
use regex::Regex;

/// Compiles a pattern with the word boundaries of ASCII. With Unicode's boundaries, texts in other alphabets would pass
/// through an engine that is a hundred times slower.
pub fn compile(pattern: &str) -> Result<Regex, regex::Error> {
    let mut ascii = String::new();
    let mut rest = pattern;
    while let Some(at) = rest.find('\\') {
        let end = rest[at + 1..].chars().next().map_or(rest.len(), |escaped| at + 1 + escaped.len_utf8());
        ascii += &rest[..at];
        ascii += if &rest[at..end] == r"\b" { r"(?-u:\b)" } else { &rest[at..end] };
        rest = &rest[end..];
    }
    Regex::new(&(ascii + rest))
}

/// What an answer is called, up to "is" or ":".
pub fn label() -> String {
    format!("(?ix) (?: {LABEL} | (?P<foreign> {} ) )", languages::LABEL)
}

/// What an answer is called in English.
const LABEL: &str = r#"
    (?: (?: (?:\b|_) (?: (?:correct|right|best|final|proper|appropriate|likely|suitable|accurate|only|valid|chosen|selected|true|my) \s+
            (?:multiple[-\ ]choice\s+)?
            (?:answers?|options?|choices?|letter|alternative|selection|response|statement|fit|match|guess|pick|vote|one) (?:\s+(?:here|then|therefore|now))?
          | answers? (?:\s+(?:choice|option|letter|here|then|therefore|now))? | ans | solution )
      | (?: \A | \n ) [\s*\#>_-]* (?: (?:(?:1st|first)\s+)? (?:option|choice|selection) | selected | correct | right | mine | q:[^\n]*\n+a ) )
    (?: [*_\s"']* =
      | (?: \s+ (?:to|for|of|in|among|from|given) \s+ [^.?\n:：]{1,80}? | , [^,.\n:：]{1,40} , )?
        (?: \s* \([^()\n]{1,20}\) | \s+\#?\d{1,3} )?
        [*_\s"')\]]*
        (?: (?P<not> \b(?:is|must|should|would|could|will)n['’]t(?:\s+be)?\b | \bcan['’]t\s+be\b | \bcan\s*not\s+be\b
                | \b(?:could|must|should|would|will)\s+not\s+be\b )
          | (?: \b(?:seems|appears|turns\s+out|is\s+found|comes\s+out|remains)(?:\s+(?:to\s+be|as))?\b
              | \b(?:would|should|must|will)\s+(?:\w+\s+)?be\b | \b has\s+to\s+be\b
              | \b(?:is|are)\b | ['’]s\b )
            \s* [:：]?
          | [:：] ) ) )
    | ["'](?:(?:final|selected|correct)_)?(?:choice|option|selection|selected)["'] \s* :
"#;

/// The head of a line, over an answer or before it.
pub const HEADING: &str = r"(?ix) (?: \A | \n ) [\s*\#>_-]* (?:the\s+)? (?:(?:final|correct|right|best|my)\s+)? (?:answer|ans) [*_.]*
    [\ \t]* (?: (?P<apart> [-–—→⇒]+>? | \.{3} | [\ \t]*\n ) | [\ \t] ) ";

/// Words that make what follows a condition or a doubt.
pub const DOUBT: &str = r"(?ix) (?: \b(?:if|whether|unless|suppos(?:e|ing)|assuming|why|doubt|rather\s+than
        | not\s+(?:sure|certain|clear|true|think|believe)) | n['’]t\s+(?:think|believe|say) ) (?:\s+(?:that|if))?
    (?:\s+(?:the|my|our|an?|this|your|correct|right|best|final|true|only|actual|option|choice|it['’]s|it\s+is))* \s* \z";

/// Words before an answer that is not the response's own.
pub const OTHER: &str = r"(?ix) \b (?: wrong|incorrect|tempting|possible|plausible|common|popular|usual|typical|other|another|false
    | previous|earlier|initial|original|first|alternative|trap|na[iï]ve|mistaken|(?:student|user|opponent)['’]s ) \s* \z";

/// Words between "think" and the label or letter that follows it.
const DETERMINERS: &str = r"(?: [\s*_(\[]+ (?:that|the|my|our|an?|this|your|correct|right|best|final|true|only|actual|option|choice|answer
        |it['’]s|it\s+is|it\s+(?:must|should|has\s+to|can\s+only)\s+be) \b )* [\s*_(\[]* \z";

/// Verbs for what somebody thinks or says.
const THINK: &str = r"(?: (?: think|believe|say|argue|expect|assume|claim|suppose|suggest|guess|feel|imagine|insist|maintain|conclude
        |pick|choose|select|answer ) (?:s|d|ed|ing)? | believing|arguing|assuming|supposing|imagining|concluding|choosing|thought|said|felt )";

/// Words before "think" where it is not the writer who thinks, or not in
/// earnest.
const OTHERS: &str = r"(?:
      \b (?: some|many|most|few|several|others?|people|students?|learners?|readers?|beginners?|novices?|candidates?|respondents?
        | test[-\ ]takers?|critics|someone|somebody|anyone|anybody|everyone|those|he|she|they ) \b
        (?: , [^.,;!?\n]{1,30} , )? [^.,;!?\n]*?
    | \b (?:one|you) \s+ (?:[a-z]+ly\s+)? (?:might|may|could|would|will) \b [^.,;!?\n]*?
    | \b you
    | \b (?:is|was|(?:might|may|could)\s+be) \s+ (?:[a-z]+ly|often|sometimes)
    | \b i \s+ (?:(?:had|have|at)\s+)? (?:first|initially|originally|almost|briefly|once|nearly|wrongly)
    | \b (?: tempt(?:ing|ed|ation|s)?|mistakes?|errors?|traps?|pitfalls?|misconceptions?|easy ) \b [^.,;!?\n]*? )";

/// Words before an answer that are no statement by themselves: a mistake, a
/// first impression, another case.
const IMPRESSION: &str = r"(?:
      \b (?:mistake|error|trap|pitfall|misconception|fallacy|temptation) \b (?: [^.,;!?\n]*? \s (?:is|be) | \s+that )
    | \b i (?:\s+(?:had|have))? (?:\s+(?:[a-z]+ly|at\s+first))* \s+ (?:thought|believed|assumed|guessed)
    | \b (?:may|might|could) \s+ (?:[a-z]+ly\s+|at\s+first\s+)? (?:seem|appear|look) (?:\s+(?:as\s+if|as\s+though|like))?
    | \b according\s+to\s+ (?:some|many|others?|(?:most\s+)?(?:people|students)|a\s+student) \b [^.,;!?\n]*?
    | \b (?:at\s+first(?:\s+(?:glance|sight|look))?|on\s+the\s+surface|na[iï]vely|superficially|mistakenly|wrongly) \b
        (?:,?\s+it\s+(?:seems|appears|looks)(?:\s+(?:like|as\s+if))?)?
    | \b (?:otherwise|or\s+else) )";

/// What others say or might say, a mistake, or what the writer thought first,
/// up to an answer.
pub fn reported() -> String {
    format!(r"(?ix) (?: {OTHERS} \s+ {THINK} | {IMPRESSION} ,? ) {DETERMINERS}")
}

/// What the writer thinks, up to an answer.
pub fn own() -> String {
    format!(
        r"(?ix) \b (?:i|we) (?:['’](?:d|ll|m|ve))? (?:\s+(?:would|do|will|can|must|should|am|are|have|to|therefore|thus|hence|now|still|also|inclined))*
            \s+ {THINK} {DETERMINERS}"
    )
}

/// Words before an answer that may be a first impression.
pub const WEAK: &str = r"(?ix) \b (?: (?:obvious|intuitive|natural|apparent) | intuitively ,? (?:\s+the)? ) \s* \z";

/// A condition in the sentence before an answer.
pub const CONDITION: &str = r"(?ix) \b (?:if|unless|(?:in|for)\s+(?:that|which)\s+case) \b
    | (?: \A | [,;—–] | \b(?:and|but|that|because) ) [\s*_\#>-]* (?:had|were|when|should|provided|in\s+case) \s";

/// A verb for what is so in another case.
pub const WOULD: &str = r"(?i)\bwould\b|['’]d\b";

/// A condition that is none: "if I had to choose".
pub const EARNEST: &str = r"(?i)\bif\s+(?:(?:i|we)(?:\s+(?:had|have|were|must|am|remember|recall|understand|read|calculated|computed)\b|['’]m\b)|forced|pressed|asked|my\b)";

/// Words that make an answer the result of what stands before it.
pub const RESULT: &str =
    r"(?i)\b(?:so|thus|therefore|hence|consequently|meaning|means|we\s+(?:get|find|see|obtain|conclude))\b[^.;!?\n]*\z";

/// Another case, before "the answer would be".
pub const CASE: &str = r"(?i)\A[\s*_#>-]*(?:but\s+|and\s+)?(?:in|under|without|outside|at|for)\s";

/// What takes an answer back after it: a condition, or the others whose answer
/// it is.
pub const AFTER: &str = r"(?ix) \A [\ \t,)\]*_]* (?:
      (?P<condition> (?:but\s+)? (?:only\s+)? (?:if|unless|when|provided|in\s+case|had|were\s+(?:it|the)) \s
        | only\s+(?:for|in|at|under) \s )
    | (?:some|many|one|you|people|students) \s+ (?:[a-z]+\s+)? (?:might|may|would|could|think|say|argue|claim|believe) \b
    | according\s+to\s+(?:some|many|others) )";

/// Words that begin a correction, up to its choice.
pub fn correction() -> String {
    format!("(?ix) (?: {CORRECTION} | {} {}? ) {AGAIN}", languages::CORRECTION, languages::COPULA)
}

const CORRECTION: &str = r"(?: \b(?:wait|actually|sorry|oops|whoops|correction|(?:scratch|strike)\s+that|my\s+(?:bad|mistake)|i\s+mean|i\s+meant|make\s+(?:it|that)
        | on\s+(?:second\s+thought|reflection) | correct\s+(?:myself|that|this)) \b [\s,.:;!…—–-]*
      | \bno [,.;!…—–] [\s,.…—–-]* )";

/// What may follow such words.
const AGAIN: &str = r"(?: \b(?:it['’]s|it\s+is|it\s+should\s+be|that['’]s|i\s+meant?|make\s+(?:it|that)|actually|wait|hold\s+on|no|rather) \b [\s,:.]* )*";

/// After a choice: it is right.
pub const CALLED: &str = r"(?i: \s+ (?: (?:is|must\s+be|would\s+be|should\s+be|has\s+to\s+be|seems|appears\s+to\s+be) \s+ (?:(?:[a-z]+ly|in\s+fact|indeed|also|thus)\s+)? (?:(?:the|my|our)\s+)?
        (?:only\s+|most\s+|single\s+)* (?: correct|right|best|better\s+(?:choice|answer|option|fit)|appropriate|likely|suitable|accurate|answer|valid | final\s+answer ) (?:\s+(?:one|choice|option|answer|fit|pick|response)\b)?
    | (?:alone\s+)?fits\s+best ) \b | \s+ (?:it\s+(?:is|must\s+be|has\s+to\s+be)(?:,?\s+then)?|is\s+the\s+one) \s* (?:[.!\n]|\z) )";

/// Before a choice: the writer takes it, or it follows from what was said.
pub const TAKEN: &str = r"(?ix)
      \b (?:i|we|let['’]?s|let\s+us) (?:['’](?:ll|d|m|ve))?
        (?:\s+(?:will|would|am|must|should|can|shall|therefore|thus|hence|finally|going\s+to))*
        \s+ (?: choos(?:e|ing) | chose | pick(?:ing)? | select(?:ing)? | go(?:ing)?\s+(?:with|for) | opt(?:ing)?\s+for
            | settle\s+on | guess | answer | vote\s+for | lean(?:ing)?\s+towards? | say | conclude(?:\s+that\s+it\s+is)? ) \s
    | \b (?:left|leaves\s+(?:us|me)) \s+ with \s | (?:\A|\n|[.!]\s) \s* going \s+ with \s
    | (?:\b(?:which|this|that|it)(?:\s+is|['’]s)|\bmatch(?:es)?|\bcorrespond(?:s|ing)?\s+to|\bleads?\s+to|\bpoints?\s+to)
        \s+ (?:the\s+)? (?:option|choice|answer(?:\s+choice)?) \s";

/// Before a choice that ends its sentence.
pub const HENCE: &str = r"(?ix)
    (?: \b(?:so|thus|therefore|hence|consequently|conclusion|by\s+(?:elimination|exclusion))\b
      | \b(?:it|that|this|which)\s+(?:has\s+to|must|can\s+only|should|would)\s+be\b
      | \b(?:that|this|which)\s+leaves\b
      | \b(?:think|believe|say|sure|certain|confident) (?:\s+that)? \s+ (?:it['’]s|it\s+is)\b
      | \b(?:i|we)\s+(?:get|got|obtain|find)\b | (?:[:;,—–]\s|\(\s*|\bno[,.]\s) \s* it(?:['’]s|\s+is)\b | \bbut\s+it(?:['’]s|\s+is)\b
      | (?: \A | \n | [.!?]\s ) \s* (?: leaving|mine\s+is|(?:must|has\s+to)\s+be|(?:that|this|it)(?:['’]s|\s+is)|choose|select|pick
            | the\s+(?:choice|winner|option|letter)\s+is ) \b
      | (?i:\b mine \s* :)
      | (?m:^) \s* (?: [→⇒∴] | =+> | (?:definitely|probably|clearly)\b ) )
    [\s,:]* (?:(?:it['’]s|it\s+is|it\s+(?:must|has\s+to)\s+be|only|just|with)\b)?";
