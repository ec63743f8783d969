//! Whose statement "the answer is B" is, by what stands before it in its
//! sentence.

use crate::patterns::compile;
use regex::Regex;

/// Who says what a label states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Voice {
    /// The writer, of the question.
    Writer,
    /// Perhaps the writer, of another case: "In a vacuum, …".
    Unclear,
    /// Others, or nobody.
    Others,
}

/// Tells voices apart.
pub struct Voices {
    /// Somebody else's answer: "your", "second best".
    owner: Regex,
    /// The answer to another question.
    elsewhere: Regex,
    /// A form or an example.
    example: Regex,
    /// An opening quotation mark.
    quoted: Regex,
    /// Somebody says or thinks.
    said: Regex,
    /// A source of the question says it.
    source: Regex,
    /// The writer says or thinks.
    own: Regex,
    /// "The claim that", "it is wrong to say".
    noun: Regex,
    /// "Nothing suggests that".
    nothing: Regex,
    /// The writer's own words, and no others.
    firm: Regex,
    /// The end of a clause before the statement's own.
    clause: Regex,
    hedge: Regex,
    /// The head of another case: "In a vacuum".
    case: Regex,
}

/// Words between what introduces a statement and its label.
const DETERMINERS: &str = r#"(?: [\s*_"“'‘(\[]* \b(?:that|the|my|our|an?|this|correct|right|best|final|true|only|actual|overall|most|one|it['’]s|it\s+is)\b )* [\s*_"“'‘(\[]* \z"#;

/// Verbs for what somebody says or thinks.
const SAY: &str = r"(?: (?: think|believe|say|argue|expect|assume|claim|suppose|guess|feel|imagine|insist|maintain|hint|assert|report|swear|deny|state|note|tell|list|pretend|hope|fear|wish )
    (?:s|d|ed|ing|en)? | denies|thought|said|felt|told | (?:tells?|told)\s+(?:me|us|you|them) )";

/// Verbs for what follows from something.
const SHOW: &str = r"(?: (?: mean|show|impl(?:y|ie)|indicate|suggest|confirm|prove|demonstrate|reveal|conclude|infer|see|find|determine|deduce|follow|establish|verify|note|know|get|obtain|agree|lead|point|make|seem|appear ) (?:s|d|ed|n|ing)?
    | meant|found|seen|led|made|saw|got|knew )";

impl Voices {
    pub fn new() -> Result<Self, regex::Error> {
        let compile = |pattern: &str| compile(&format!("(?ix) {pattern}"));
        Ok(Self {
            owner: compile(
                r#"(?: \b(?:your|their|his|her|its|whose|no|second|third|2nd|3rd|next|runner[-\ ]?up|alternate|alternative|backup|fallback|old|former|previous|prior|earlier|example|sample|student|user|chatgpt|gpt(?:-?\d\w*)?|opponent|teacher|candidate|expected|wrong|incorrect) [-\s]+
                    | \b (?P<owner>\p{L}+) ['’]s \s+ )
                (?:(?:correct|right|best|final|first|own|new|old|previous|original|preferred|likely|most)[-\s]+)* \z"#,
            )?,
            elsewhere: compile(
                r"\b(?:to|for|of|in|from)\s [^.:,\n]*? \b(?:similar|another|others?|different|previous|next|related|follow-?up|second|opposite|reverse|converse|last\s+(?:question|problem)|other)\b [^,]* \z",
            )?,
            example: compile(
                r#"\b(?: e\.g\.,? | (?:for\s+)?(?:example|instance) | such\s+as | as\s+in | (?:format(?:ted)?|template|pattern|form|style)
                    (?:\s+(?:is|of|as|like|to\s+be|should\s+be|must\s+be|required|requested))* | (?:looks?|something|written|formatted)\s+(?:like|as)
                    | placeholder | not ) [\s,:]* (?:\b(?:an?|the|with|as|in)\s+)* [\s"“'‘`(*\[$]* (?:<answer>|<Answer>|\\boxed\{|the|my|final)?\s* \z
                | \blet\s+\$* \z"#,
            )?,
            quoted: compile(r#"(?:\A|[\s(\[:,]) ["“'‘`] (?:(?:the|so|my|final|correct)\s+)* \z"#)?,
            said: compile(&format!(r"\b{SAY} :? {DETERMINERS}"))?,
            source: compile(&format!(
                r"\b(?:(?:text)?book|passage|text|article|author|table|graph|figure|paragraph|study|rule|law|theorem|definition|formula) \s+ {SAY} {DETERMINERS}"
            ))?,
            own: compile(&format!(
                r"(?: \b(?:i|we)(?:['’](?:d|ll|m|ve|re))? (?:\s+(?:\w+ly|would|do|will|can|must|should|may|am|are|have|had|to|therefore|thus|hence|now|still|also|inclined|strongly|just|then|only|safely|tempted|going))*
                    | \b(?:you|one)\s+can | \b(?:this|that|which|these|it\s+all) | \b(?:safe|reasonable|fair|right|correct|us|me) (?:\s+to)? | \A[\s*]* (?:to|and|so|but)? ) \s* {SAY} [,:]? {DETERMINERS}"
            ))?,
            noun: compile(&format!(
                r"\b(?: (?:claim|idea|possibility|notion|belief|myth|view|opinion|assumption|assertion|hypothesis|suggestion|argument|thought|theory|impression|suspicion|rumou?r|misconception|fallacy|evidence|proof|reason|chance|risk|objection|conjecture|contention|lie) s? (?:\s+is)? \s+ that
                    | \b(?:i|we)(?:\s+have|['’]ve)?\s+(?:heard|read|been\s+told)\s+that | has\s+it\s+that
                    | (?:wrong|incorrect|false|mistaken|untrue|misleading|absurd|nonsense|error|mistake|premature|tempting|unreasonable|unlikely|impossible|doubtful) \s+ (?: to \s+ \w+ | that ) ) {DETERMINERS}"
            ))?,
            nothing: compile(&format!(
                r"\b(?:nothing|none|nobody|no\s+one|neither|no|hardly|without)\b [^.,;:!?\n]* \b{SHOW} \b {DETERMINERS}"
            ))?,
            firm: compile(&format!(
                r"\A [\s*_\#>•()\[\]\d.\-–—]*
                (?: (?: so|therefore|thus|hence|then|and|but|or|yet|now|here|finally|lastly|again|also|still|overall|indeed|well|ok|okay|yes|no|sure|of\s+course|actually|in\s+fact|instead|rather|consequently|accordingly|however|nevertheless|wait|sorry
                    | \w+ly | step\s+\d+
                    | in\s+(?:conclusion|summary|short|the\s+end|this\s+(?:case|question|problem|context|scenario|situation|passage)|other\s+words|sum|total|all|essence|fact|general|my\s+(?:opinion|view))
                    | (?:for|to)\s+(?:this|the\s+above|the\s+given)\s+(?:question|problem|exercise|reason)s? | on\s+(?:reflection|balance|(?:a\s+)?second\s+\w+|the\s+whole|the\s+other\s+hand) | for\s+(?:these|the\s+above)\s+reasons | as\s+(?:a\s+result|such|shown|stated|noted|explained|before|we\s+(?:saw|see))
                    | by\s+(?:elimination|exclusion|process\s+of\s+elimination) | to\s+(?:conclude|sum\s+up|summari[sz]e|answer)
                    | from\s+(?:this|that|here|the\s+above) | that\s+is | i\.e\. | because | since | as | given | if | when
                    | (?:it|this|that|which|there|all|everything|they|these|those)['’]?s? (?:\s+\w+){{0,4}}? \s+ {SHOW} (?:\s+(?:me|us|you|to|out|like|sure|clear|strongly|the\s+conclusion|conclude|say|believe|think|be|is|it))*
                    | (?:the|my|our) (?:\s+[\p{{L}}-]+){{1,4}} \s+ {SHOW}
                    | (?:it|this|that|which)(?:\s+is|['’]s) \s+ (?:\w+\s+)?(?:clear|obvious|evident|apparent|certain|likely|why|how|known|because|safe\s+to\s+say)
                    | (?:i|we)(?:['’](?:d|ll|m|ve|re))? (?:\s+[\p{{L}}'’]+){{1,6}} | (?:one|you)\s+can\s+{SHOW} | let\s+(?:me|us)\s+\w+
                    | (?:the|my|our)\s+(?:conclusion|result|point|fact)\s+is ) \b [\s,:*_]* )*
                {DETERMINERS}"
            ))?,
            clause: compile(&format!(
                r"(?: [:;—–,] | \s- ) [\s*_]* (?:\b(?:and|but|so|then|thus|therefore|hence|yet|while|whereas|here|now)\b[\s,]*)* {DETERMINERS}"
            ))?,
            hedge: compile(
                r"\A [\s*_>-]* (?:possibly|maybe|perhaps|alternatively|sometimes|occasionally|conceivably) \b",
            )?,
            case: compile(
                r"\A [\s*_\#>-]* (?:(?:and|but|also)\s+)? (?:in|on|at|under|without|outside|within|for|per|inside|during|before|until|possibly|maybe|perhaps|alternatively|sometimes|often|usually|if|when|unless|assuming|suppose) \b",
            )?,
        })
    }

    /// The voice of a label; `before` is the text of its sentence before it,
    /// and `words` are its own.
    pub fn of(&self, before: &str, words: &str) -> Voice {
        if self.owned(before) || self.elsewhere.is_match(words) || self.example.is_match(before) {
            return Voice::Others;
        }
        // "Answer to another question, but here the answer is B".
        if [", but ", ", so ", ", and "].iter().any(|clause| words.contains(clause)) {
            return Voice::Writer;
        }
        let prose = !words.trim_end().ends_with([':', '：', '=']);
        if prose {
            self.of_prose(before)
        } else if self.quoted.is_match(before) {
            Voice::Unclear
        } else {
            Voice::Writer
        }
    }

    /// Whether a box, an element or a quoted label shows a form: "e.g.
    /// \boxed{A}", "not <answer>A</answer>".
    pub fn shows(&self, before: &str) -> bool {
        self.example.is_match(before)
    }

    fn owned(&self, before: &str) -> bool {
        self.owner.captures(before).is_some_and(|found| {
            let of_question =
                ["it", "that", "here", "there", "let", "what", "question", "problem", "today", "exercise"];
            found.name("owner").is_none_or(|owner| !of_question.contains(&owner.as_str().to_lowercase().as_str()))
        })
    }

    fn of_prose(&self, before: &str) -> Voice {
        let source = self.source.is_match(before);
        let said = !source && self.said.is_match(before) && !self.own.is_match(before);
        if said || self.noun.is_match(before) || self.nothing.is_match(before) {
            return Voice::Others;
        }
        if source || self.hedge.is_match(before) || self.quoted.is_match(before) {
            return Voice::Unclear;
        }
        if self.firm.is_match(before) {
            return Voice::Writer;
        }
        // Words such as "so" begin another clause: what stands before them is
        // no case.
        let main = RESULTS.iter().any(|word| before.contains(word));
        let clause = self.clause.is_match(before) && !self.case.is_match(before);
        if main || clause { Voice::Writer } else { Voice::Unclear }
    }
}

/// Words that begin a result.
const RESULTS: [&str; 6] = [" so ", " thus ", " therefore ", " hence ", " means ", " making "];
