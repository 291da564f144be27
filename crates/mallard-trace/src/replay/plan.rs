//! Plans, which determine the allocator for each call of a program. A replay applies a plan to
//! recorded calls. [`crate::plan`] compiles a plan into a file that is applied in the program
//! itself.

use super::format::TARGETS_MAX;
use super::strategy::{Allocator, Strategy};
use crate::error::{Error, ErrorKind, Result};
use std::fmt;
use std::path::Path;
use toml::{Table, Value};

/// A plan. Its file is in TOML:
///
/// ```toml
/// default = "malloc"          # or another malloc: "mallard", "jemalloc=libjemalloc.so.2"
/// [[rule]]
/// region = "parse_document"   # blocks that are allocated while the function runs, or
/// site = "make_node"          # blocks that the function allocates, or
/// functions = "^json::"       # blocks of call stacks with a function, file or module that this matches, or
/// stack = 1234                # blocks of one call stack; without any of the four, all blocks
/// strategy = "AS4"            # AS1 to AS14, malloc, pool, multipool, arena, or multipool over arena
/// ends = "drained"            # of a region: exact, sure or drained
/// first_chunk = 65536         # optional
/// name = "the parser"         # optional, and only for plans that are applied in the program
/// block_bytes = 48            # optional, and only for plans that are applied in the program
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The name of the plan in errors: the name of its file or of its strategy.
    pub name: String,
    /// The malloc of the process, which serves all other blocks.
    pub default: Malloc,
    /// The rules. Their numbers begin with 1.
    pub rules: Vec<Rule>,
}

/// A malloc that a plan names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malloc {
    /// The name. `malloc` means the malloc of the system.
    pub name: String,
    /// The path of the malloc's library, if the plan contains it.
    pub library: Option<String>,
}

/// A rule, which selects blocks and the strategy that allocates them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The blocks that the rule selects.
    pub scope: Scope,
    /// The strategy that allocates the blocks.
    pub strategy: Strategy,
    /// The condition that ends an instance of a region. `None` for all other scopes.
    pub ends: Option<End>,
    /// The size in bytes of the allocator's first chunk, or 0 for the default size.
    pub first_chunk: u64,
}

/// The blocks that a rule selects. If several rules select a call stack, `Stack` takes precedence,
/// then `Site`, then the first of `Functions`, then the region that began last, then `Everything`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// All blocks. One instance lives as long as the program.
    Everything,
    /// Blocks that are allocated while a function runs. Each outermost call of the function on a
    /// thread has an instance.
    Region(String),
    /// Blocks that this function allocates, directly or through allocation wrappers. One instance
    /// lives as long as the program.
    Site(String),
    /// Blocks of call stacks with a function, file or module that this regular expression matches.
    /// One instance lives as long as the program.
    Functions(String),
    /// Blocks of one call stack, a node of the table `stacks`. One instance lives as long as the
    /// program.
    Stack(u32),
}

/// The condition that ends an instance of a region, so that its memory can be reused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum End {
    /// The program marks the end, as `include/mallard/trace/region.h` describes. The region has the
    /// name of the mark.
    Exact,
    /// The call stack of an event shows that the function has returned, because the function is
    /// missing or is called anew. The last event of the thread also ends the instance.
    Sure,
    /// The last block in use of the instance is freed.
    #[default]
    Drained,
}

const KEYS: [&str; 9] = [
    "region",
    "site",
    "functions",
    "stack",
    "strategy",
    "ends",
    "first_chunk",
    "name",
    "block_bytes",
];

/// The names of local allocators. Each name has the number of a strategy: the one that uses the
/// allocator as a type parameter and frees each block. For a pool, a replay uses a multipool.
const WORDS: [(&str, usize); 5] =
    [("malloc", 1), ("arena", 3), ("pool", 7), ("multipool", 7), ("multipool over arena", 11)];

impl Plan {
    /// Makes a plan with one strategy for the whole program. Its only instance lives as long as the
    /// program.
    pub fn of_strategy(strategy: Strategy) -> Plan {
        let rule = Rule { scope: Scope::Everything, strategy, ends: None, first_chunk: 0 };
        Plan { name: strategy.to_string(), rules: vec![rule], ..Plan::default() }
    }

    /// Reads a plan from a file.
    pub fn read(path: &Path) -> Result<Plan> {
        let name = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::new(
                ErrorKind::System,
                format!("cannot read the plan {name}: {error}"),
                "nothing was replayed",
                "ls *.toml lists the plans in this directory",
            )
        })?;
        Plan::parse(&text, &name.to_string())
    }

    /// Reads a plan from its text. `name` is the name of the plan in errors.
    pub fn parse(text: &str, name: &str) -> Result<Plan> {
        let table: Table = text.parse().map_err(|error: toml::de::Error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            let why = error.message().lines().next().unwrap_or_default();
            bad(format!("{name}:{line} is not valid TOML: {why}"), "see https://toml.io")
        })?;
        let mut plan = Plan { name: name.to_string(), ..Plan::default() };
        for (key, value) in &table {
            match (key.as_str(), value) {
                ("default", Value::String(malloc)) => plan.default = Malloc::parse(malloc, name)?,
                ("rule", Value::Array(rules)) => {
                    for (rule, number) in rules.iter().zip(1..) {
                        plan.rules.push(Rule::parse(rule, &RuleName { name, number })?);
                    }
                }
                ("default" | "rule", _) => {
                    let help = "write default = \"malloc\", and [[rule]] before each rule";
                    return Err(bad(format!("{name}: `{key}` has a value of another type"), help));
                }
                _ => return Err(unknown_key(name, key, &["default", "rule"])),
            }
        }
        if plan.rules.len() >= TARGETS_MAX as usize {
            let help = format!("an op stream has at most {TARGETS_MAX} targets");
            return Err(bad(format!("{name} has too many rules"), help));
        }
        plan.check_doubles(name)?;
        Ok(plan)
    }

    /// Returns whether the region of a rule ends where the program marks its end.
    pub(super) fn is_exact(&self, rule: usize) -> bool {
        self.rules[rule].ends == Some(End::Exact)
    }

    /// Fails if two rules have the same scope.
    fn check_doubles(&self, name: &str) -> Result<()> {
        for (i, rule) in self.rules.iter().enumerate() {
            if let Some(first) = self.rules[..i].iter().position(|r| r.scope == rule.scope) {
                return Err(bad(
                    format!(
                        "{name}: rules {} and {} are both for {}",
                        first + 1,
                        i + 1,
                        rule.scope
                    ),
                    format!("remove rule {} or rule {}", first + 1, i + 1),
                ));
            }
        }
        Ok(())
    }
}

impl Default for Plan {
    fn default() -> Plan {
        let malloc = Malloc { name: "malloc".to_string(), library: None };
        Plan { name: "the plan".to_string(), default: malloc, rules: Vec::new() }
    }
}

impl Malloc {
    fn parse(text: &str, plan: &str) -> Result<Malloc> {
        let (name, library) = match text.split_once('=') {
            Some((name, library)) => (name, Some(library)),
            None => (text, None),
        };
        if name.is_empty() || library == Some("") {
            let help = "write default = \"malloc\", or \"NAME\", or \"NAME=LIBRARY\"";
            return Err(bad(format!("{plan}: `{text}` names no malloc"), help));
        }
        Ok(Malloc { name: name.to_string(), library: library.map(str::to_string) })
    }
}

/// The plan and number of a rule, for errors.
pub(crate) struct RuleName<'a> {
    /// The name of the plan.
    pub name: &'a str,
    /// The number of the rule.
    pub number: usize,
}

impl fmt::Display for RuleName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: rule {}", self.name, self.number)
    }
}

impl Rule {
    fn parse(value: &Value, rule: &RuleName) -> Result<Rule> {
        let Value::Table(table) = value else {
            return Err(bad(format!("{rule} is not a table"), "write [[rule]] before each rule"));
        };
        if let Some(key) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(unknown_key(&rule.to_string(), key, &KEYS));
        }
        let scope = Scope::parse(table, rule)?;
        let strategy = strategy_of(table, rule)?;
        let mut ends = text(table, "ends", rule)?.map(|text| End::parse(text, rule)).transpose()?;
        let is_region = matches!(scope, Scope::Region(_));
        if is_region && ends.is_none() && table.get("strategy").is_some_and(is_word) {
            ends = Some(End::Drained); // without wink-out, the end affects only the reuse of chunks
        }
        if ends.is_some() != is_region {
            let (what, help) = if is_region {
                ("does not say what ends its region", "add ends = \"drained\", or ends = \"sure\"")
            } else {
                ("has `ends`, and is for no region", "remove `ends`, or name a region")
            };
            return Err(bad(format!("{rule} {what}"), help));
        }
        let first_chunk = number(table, "first_chunk", rule)?.unwrap_or(0);
        if first_chunk > 0 && strategy.allocator() == Allocator::Heap {
            return Err(bad(
                format!("{rule} has a `first_chunk`, and {strategy} has no chunks"),
                "remove `first_chunk`, or use a strategy from AS3 on",
            ));
        }
        Ok(Rule { scope, strategy, ends, first_chunk })
    }
}

impl Scope {
    fn parse(table: &Table, rule: &RuleName) -> Result<Scope> {
        let region = text(table, "region", rule)?.map(|name| Scope::Region(name.to_string()));
        let site = text(table, "site", rule)?.map(|name| Scope::Site(name.to_string()));
        let functions =
            text(table, "functions", rule)?.map(|text| pattern(text, rule)).transpose()?;
        let node = number(table, "stack", rule)?;
        let stack = node.map(|node| Scope::Stack(u32::try_from(node).unwrap_or(u32::MAX)));
        let mut scopes = [region, site, functions, stack].into_iter().flatten();
        match (scopes.next(), scopes.next()) {
            (Some(_), Some(_)) => Err(bad(
                format!("{rule} names more than one of region, site, functions and stack"),
                "write a rule for each",
            )),
            (scope, _) => Ok(scope.unwrap_or(Scope::Everything)),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Scope::Everything => write!(f, "the whole program"),
            Scope::Region(name) => write!(f, "the region {name}"),
            Scope::Site(name) => write!(f, "the site {name}"),
            Scope::Functions(pattern) => write!(f, "the functions {pattern}"),
            Scope::Stack(node) => write!(f, "the call stack {node}"),
        }
    }
}

impl End {
    /// Returns the word for this end in a plan.
    pub fn word(self) -> &'static str {
        match self {
            End::Exact => "exact",
            End::Sure => "sure",
            End::Drained => "drained",
        }
    }

    fn parse(text: &str, rule: &RuleName) -> Result<End> {
        match text {
            "exact" => Ok(End::Exact),
            "sure" => Ok(End::Sure),
            "drained" => Ok(End::Drained),
            _ => Err(bad(
                format!("{rule} has the unknown value `{text}` of `ends`"),
                "write ends = \"drained\", or ends = \"sure\"",
            )),
        }
    }
}

fn strategy_of(table: &Table, rule: &RuleName) -> Result<Strategy> {
    let help =
        "write strategy = \"arena\", \"multipool\" or \"pool\", or one of \"AS1\" to \"AS14\"";
    let Some(name) = text(table, "strategy", rule)? else {
        return Err(bad(format!("{rule} has no strategy"), help));
    };
    let of_word = WORDS.iter().find(|(word, _)| *word == name);
    let strategy = match of_word {
        Some(&(_, number)) => Strategy::new(number),
        None => name.parse().ok(),
    };
    strategy.ok_or_else(|| bad(format!("{rule} has the unknown strategy `{name}`"), help))
}

/// Returns whether a strategy has the name of a local allocator.
fn is_word(strategy: &Value) -> bool {
    WORDS.iter().any(|(word, _)| strategy.as_str() == Some(word))
}

fn pattern(text: &str, rule: &RuleName) -> Result<Scope> {
    match regex::Regex::new(text) {
        Ok(_) => Ok(Scope::Functions(text.to_string())),
        Err(error) => {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim().to_string();
            let what = format!("{rule}: '{text}' is not a valid regular expression: {why}");
            Err(bad(what, "functions = \"^json::\", as for mallard sites --filter"))
        }
    }
}

/// Returns the string value of a key, if the table has the key.
pub(crate) fn text<'a>(table: &'a Table, key: &str, rule: &RuleName) -> Result<Option<&'a str>> {
    match table.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(bad(format!("{rule}: `{key}` is not a string"), format!("{key} = \"...\""))),
    }
}

/// Returns the number value of a key, if the table has the key.
pub(crate) fn number(table: &Table, key: &str, rule: &RuleName) -> Result<Option<u64>> {
    match table.get(key) {
        None => Ok(None),
        Some(&Value::Integer(number)) if number >= 0 => Ok(Some(number as u64)),
        Some(_) => Err(bad(
            format!("{rule}: `{key}` is not a whole number of at least 0"),
            format!("write {key} = 65536, without quotes"),
        )),
    }
}

fn unknown_key(whose: &str, key: &str, known: &[&str]) -> Error {
    let help = match closest(key, known.iter().copied()) {
        Some(close) => format!("did you mean `{close}`?"),
        None => format!("the keys are {}", known.join(", ")),
    };
    bad(format!("{whose} has the unknown key `{key}`"), help)
}

/// Returns the name that is most similar to a word, or `None` if no name is similar.
pub(super) fn closest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let similarity = |name: &str| strsim::jaro_winkler(word, name);
    let best = names.max_by(|a, b| similarity(a).total_cmp(&similarity(b)))?;
    (similarity(best) > 0.75).then_some(best)
}

/// Makes an error about a plan.
pub(crate) fn bad(what: impl Into<String>, help: impl Into<String>) -> Error {
    Error::new(ErrorKind::Plan, what, "nothing was replayed", help)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"
        default = "jemalloc=libjemalloc.so.2"
        [[rule]]
        region = "parse_document"
        strategy = "AS4"
        ends = "drained"
        first_chunk = 65536
        [[rule]]
        site = "make_node"
        strategy = "AS7"
        [[rule]]
        stack = 1234
        strategy = "AS2"
        [[rule]]
        strategy = "AS11"
    "#;

    #[test]
    fn a_plan_file_is_parsed() {
        let plan = Plan::parse(WHOLE, "a.toml").unwrap();
        assert_eq!(plan.default.name, "jemalloc");
        assert_eq!(plan.default.library.as_deref(), Some("libjemalloc.so.2"));
        let scopes: Vec<String> = plan.rules.iter().map(|rule| rule.scope.to_string()).collect();
        let expected = [
            "the region parse_document",
            "the site make_node",
            "the call stack 1234",
            "the whole program",
        ];
        assert_eq!(scopes, expected);
        let numbers: Vec<usize> = plan.rules.iter().map(|rule| rule.strategy.number()).collect();
        assert_eq!(numbers, [4, 7, 2, 11]);
        assert_eq!(plan.rules[0].ends, Some(End::Drained));
        assert_eq!((plan.rules[0].first_chunk, plan.rules[1].first_chunk), (65536, 0));
        let empty = Plan::parse("", "a.toml").unwrap();
        assert_eq!(empty, Plan { name: "a.toml".to_string(), ..Plan::default() });
    }

    #[test]
    fn a_plan_may_name_a_strategy_by_its_allocator_without_an_end() {
        let of = |rule: &str| {
            Plan::parse(&format!("[[rule]]\n{rule}"), "a.toml").unwrap().rules[0].clone()
        };
        for (word, number) in WORDS {
            let rule = of(&format!("functions = '^json::'\nstrategy = '{word}'\nname = 'n'"));
            assert_eq!((rule.strategy.number(), rule.ends), (number, None), "{word}");
            assert_eq!(rule.scope, Scope::Functions("^json::".to_string()));
        }
        assert_eq!(of("region = 'f'\nstrategy = 'arena'").ends, Some(End::Drained));
        assert_eq!(of("region = 'f'\nstrategy = 'arena'\nends = 'sure'").ends, Some(End::Sure));
    }

    #[test]
    fn the_plan_of_a_strategy_is_for_the_whole_program() {
        let plan = Plan::of_strategy(Strategy::new(8).unwrap());
        let text = "[[rule]]\nstrategy = \"AS8\"";
        assert_eq!(plan, Plan::parse(text, "AS8").unwrap());
    }

    /// Returns the first and the last line of the error for a plan.
    fn error(text: &str) -> (String, String) {
        let error = Plan::parse(text, "a.toml").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Plan);
        assert_eq!(error.state(), "nothing was replayed");
        (error.what().to_string(), error.help().to_string())
    }

    #[test]
    fn an_invalid_plan_is_rejected() {
        let rule = |keys: &str| format!("[[rule]]\nstrategy = \"AS3\"\n{keys}");
        let cases = [
            ("default = ".to_string(), "a.toml:1 is not valid TOML", "toml.io"),
            ("\n\nrule = [".to_string(), "a.toml:3 is not valid TOML", "toml.io"),
            (
                "default = 3".to_string(),
                "a.toml: `default` has a value of another",
                "write default",
            ),
            ("rule = 3".to_string(), "a.toml: `rule` has a value of another type", "[[rule]]"),
            ("rule = [3]".to_string(), "a.toml: rule 1 is not a table", "[[rule]]"),
            ("defalt = 'm'".to_string(), "a.toml has the unknown key `defalt`", "`default`?"),
            ("default = '=a.so'".to_string(), "a.toml: `=a.so` names no malloc", "NAME"),
            (rule("regoin = 'f'"), "rule 1 has the unknown key `regoin`", "did you mean `region`?"),
            (rule("x = 1"), "rule 1 has the unknown key `x`", "the keys are region, site"),
            (rule("region = 3"), "a.toml: rule 1: `region` is not a string", "region = \"...\""),
            (
                rule("stack = -3"),
                "a.toml: rule 1: `stack` is not a whole number of at least 0",
                "without quotes",
            ),
            (rule("site = 'a'\nstack = 3"), "rule 1 names more than one of region", "for each"),
            (rule("functions = '('"), "rule 1: '(' is not a valid regular expression", "^json::"),
            (rule("region = 'a'"), "a.toml: rule 1 does not say what ends its region", "add ends"),
            (
                rule("region = 'a'\nends = 'x'"),
                "rule 1 has the unknown value `x` of `ends`",
                "write ends",
            ),
            (rule("site = 'a'\nends = 'sure'"), "rule 1 has `ends`, and is for no", "remove"),
            ("[[rule]]\nsite = 'a'".to_string(), "a.toml: rule 1 has no strategy", "AS14"),
            ("[[rule]]\nstrategy = 'AS15'".to_string(), "unknown strategy `AS15`", "AS14"),
            (
                "[[rule]]\nstrategy = 'AS1'\nfirst_chunk = 9".to_string(),
                "rule 1 has a `first_chunk`, and AS1 has no chunks",
                "AS3",
            ),
            (
                rule("site = 'a'\n") + &rule("site = 'a'"),
                "a.toml: rules 1 and 2 are both for the site a",
                "remove rule 1 or rule 2",
            ),
            (rule("").repeat(8192), "a.toml has too many rules", "8192 targets"),
            (rule("\n") + &rule(""), "rules 1 and 2 are both for the whole program", "remove"),
        ];
        for (text, what, help) in cases {
            let (found, advice) = error(&text);
            assert!(found.contains(what), "{text}: {found}");
            assert!(advice.contains(help), "{text}: {advice}");
        }
    }

    #[test]
    fn a_missing_plan_file_is_named_in_the_error() {
        let error = Plan::read(Path::new("/no/such/plan.toml")).unwrap_err();
        assert!(error.what().starts_with("cannot read the plan /no/such/plan.toml"), "{error}");
    }
}
