//! Regular expressions for statements in other languages than English. `\b` is a boundary between letters of ASCII and
//! others, so none stands beside a letter that is not of ASCII.

/// What an answer is called, up to a copula or ":"; `no` where it is denied.
pub const LABEL: &str = r#"(?: (?:
        (?: 答案 | 答え | 正解 | 정답 | 답 | उत्तर | الإجابة | الجواب
          | \b(?:r[ée]ponse|respuesta|resposta|antwort|antwoord|risposta|odpowiedź|cevap|jawaban|svar|câu\s+trả\s+lời) | ответ | đáp\s+án ) (?:\s+(?:no\s+)?\p{L}+){0,2}?
      | \b(?:opci[óo]n|opção|opzione|alternativa|letra|lettera|lettre|variante?)\s+(?:correc?t[ao]|corrett[ao]|cert[ao]|giusta|exacte)
      | \b(?:richtige|bonne|juste|juiste)\s+(?:option|optie|aussage|lösung|lettre|affirmation)
      | \b richtig )
    [*_\s"']*
    (?: (?P<no> (?: \bno\s+(?:es|puede\s+ser)\b | \b(?:n['’]|ne\s+)est\s+pas\b | \bnão\s+(?:é|pode\s+ser) | \bnon\s+(?:è|può\s+essere) | \b(?:ist|lautet|is)\s+(?:nicht|niet)\b | \bto\s+nie\b | \bnie\s+(?:jest|to)\b
              | \bbukan(?:lah)?\b | \bkhông\s+phải\s+là\s | (?:ليست?|\sне(?:\s+является)?)\s | 不(?:可能)?是 )
            | \s* [:：] \s* (?: \b(?:no\s+es|pas|nicht|niet|non|não|nie|bukan)\b | не\s | 不是 ) )
      | (?: é\s+(?-i:[ao])\s | \b(?:es|est|ist|lautet|is|to|adalah|ialah|är|er)\b | (?:é|è|là)\s | 应?该?[是为為] | [은는は] | هي | هو | [—–-] (?:\s+это\b)? ) \s* [:：]?
      | [:：] )
  | \b doğru\s+cevap \s | उत्तर \s
  | (?: 故 | 所以 | 因此 | 应该? | 答案 | 本题 | 此题 | 综上 | 我 ) \s* 应?该? (?: 选择? ) \s* [:：]?
  | 应该?是 )"#;

/// Words that begin a correction.
pub const CORRECTION: &str = r"(?: (?: \b(?:espera|perd[óo]n|en\s+realidad|mejor\s+dicho|non|attendez|attends|pardon|en\s+fait|plut[ôo]t|nein|moment|eigentlich|vielmehr|korrektur|aspett[ai]|anzi|in\s+realt[àa]|não|espere|espera|na\s+verdade|aliás) | нет | точнее | вернее
      | いや | 違う | 违 | 不对 | 不對 | 等等 | 等一下 | 更正 | 아니(?:요|다)? ) [\s,.:;!…。，、：！—–-]+ )";

/// Words between a correction and its choice.
pub const COPULA: &str = r"(?: \b(?:es|c['’]est|est|ist|es\s+ist|la|die|a)\b | \bl['’] | è | é | это | (?:我)?应该?[是选为] | 是 | 正解は | 답은 )";

/// Between a choice that is denied and the one that is meant.
pub const CONTRAST: &str = r"(?ix) \A [^\n.!?。？]{0,60}? (?: \b(?:sondern|sino|e\s+sim|maar|melainkan|lecz)\b | \bmà\s+là\s | 而是 | ，\s*是 | では?なく(?:て)? | じゃなくて? | 아니라 | \b no,\s | \b değil,? \s ) [、,，\s]* (?:(?:es|la|el)\b|(?-i:[ao])\s)?";

/// After a choice: it is denied.
pub const DENIED: &str = r"(?: では?(?:ない|なかった|ありません|なく) | じゃない | \s*[가이은는]?\s*아(?:니|닙) | \s+(?:değil(?:dir)?\b|नहीं) | \s+no\b\s*[,.] | ではあ )";

/// Before the choice that is meant, after one that is denied.
pub const INSTEAD: &str = r"(?: e\s+sim(?:\s+(?-i:[ao])\b)? | (?:sondern|sino|mais|mas|ma|maar|lecz|ale|melainkan)\b | (?:а|но)\s | 而是 | 是 )";
