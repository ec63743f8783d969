//! Regular expressions for the words around a stated answer. Letters are read
//! apart from them.

/// What an answer is called, up to "is" or ":".
pub const LABEL: &str = r#"(?ix)
    (?: (?:\b|_) (?: (?:correct|right|best|final|proper|appropriate|likely|suitable|accurate|only|valid|chosen|selected|true|my) \s+
            (?:multiple[-\ ]choice\s+)?
            (?:answers?|options?|choices?|letter|alternative|selection|response|statement|fit|match|guess|one)
          | answers? (?:\s+(?:choice|option|letter|here|then|therefore|now))? | ans | solution )
      | (?: \A | \n ) [\s*\#>_-]* (?:option|choice|selection)
      | (?: 答案 | 答え | 正解 | 정답 | 답
          | \b(?:r[ée]ponse|respuesta|resposta|antwort|risposta|ответ|odpowiedź|cevap|jawaban) ) (?:\s+\p{L}+)? )
    (?: [*_\s"']* =
      | (?: \s+ (?:to|for|of|in|among|from|given) \s+ [^.\n:：]{1,80}? | , [^,.\n:：]{1,40} , )?
        (?: \s* \([^()\n]{1,20}\) | \s+\#?\d{1,3} )?
        [*_\s"')\]]*
        (?: (?P<not> \b(?:is|must|should|would|could|will)n['’]t(?:\s+be)?\b | \bcan['’]t\s+be\b | \bcan\s*not\s+be\b
                | \b(?:could|must|should|would|will)\s+not\s+be\b )
          | (?: \b(?:seems|appears|turns\s+out|is\s+found|comes\s+out|remains)(?:\s+(?:to\s+be|as))?\b
              | \b(?:would|should|must|will)\s+(?:\w+\s+)?be\b | \b has\s+to\s+be\b
              | \b(?:is|are|es|est|ist|é|è)\b | ['’]s\b | [是为為은는は] )
            \s* [:：]?
          | [:：] ) )
"#;

/// The head of a line, over an answer or before it.
pub const HEADING: &str = r"(?ix) (?: \A | \n ) [\s*\#>_-]* (?:the\s+)? (?:(?:final|correct|right|best|my)\s+)? (?:answer|ans) [*_.]*
    [\ \t]* (?: (?P<apart> [-–—→⇒]+>? | \.{3} | [\ \t]*\n ) | [\ \t] ) ";

/// Words that make what follows a condition or a doubt.
pub const DOUBT: &str = r"(?ix) (?: \b(?:if|whether|unless|suppos(?:e|ing)|assuming|why|doubt|rather\s+than
        | not\s+(?:sure|certain|clear|true|think|believe)) | n['’]t\s+(?:think|believe|say) ) (?:\s+(?:that|if))?
    (?:\s+(?:the|my|our|an?|this|your|correct|right|best|final|true|only|actual|option|choice))* \s* \z";

/// Words before an answer that is not the response's own.
pub const OTHER: &str = r"(?i)\b(?:wrong|incorrect|tempting|possible|plausible|common|other|another|false|previous|earlier|initial|alternative)\s*\z";

/// Words that begin a correction.
pub const CORRECTION: &str = r"(?ix)
    (?: \b(?:wait|actually|sorry|correction|scratch\s+that|i\s+mean|i\s+meant|make\s+(?:it|that)) \b [\s,.:;!…—–-]*
      | \bno [,.;!…—–] [\s,.…—–-]* )
    (?: \b(?:it['’]s|it\s+is|it\s+should\s+be|that['’]s|i\s+meant?|make\s+(?:it|that)|actually|wait|no|rather) \b [\s,:.]* )*";

/// Before a choice: the writer takes it, or it follows from what was said.
pub const TAKEN: &str = r"(?ix)
      \b (?:i|we|let['’]?s|let\s+us) (?:['’](?:ll|d|m|ve))?
        (?:\s+(?:will|would|am|must|should|can|shall|therefore|thus|hence|finally))*
        \s+ (?: choos(?:e|ing) | chose | pick(?:ing)? | select(?:ing)? | go(?:ing)?\s+(?:with|for) | opt(?:ing)?\s+for
            | settle\s+on | guess | answer | vote\s+for ) \s
    | (?:\b(?:which|this|that|it)(?:\s+is|['’]s)|\bmatch(?:es)?|\bcorrespond(?:s|ing)?\s+to|\bleads?\s+to|\bpoints?\s+to)
        \s+ (?:the\s+)? (?:option|choice|answer(?:\s+choice)?) \s";

/// Before a choice that ends its sentence.
pub const HENCE: &str = r"(?ix)
    (?: \b(?:so|thus|therefore|hence|consequently|conclusion)\b
      | (?m:^) \s* (?: [→⇒∴] | =+> | (?:it['’]s|it\s+is|it\s+must\s+be|definitely|probably|clearly)\b ) )
    [\s,:]* (?:(?:it['’]s|it\s+is|it\s+must\s+be)\b)?";
