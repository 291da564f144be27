//! Reads plans that are applied in a program. These are replay plans with a few additional keys.

use super::format::{LocalAllocator, BLOCK_MAX};
use crate::error::{Error, Result};
use crate::replay::plan::{bad, number, text, RuleName};
use crate::replay::{Allocator, Plan, Rule, Scope};
use std::path::Path;
use toml::{Table, Value};

/// A plan in text form that can be applied in a program. `mallard replay --plan` reads the same
/// files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The rules, with the settings that a replay uses.
    pub plan: Plan,
    /// For each rule, the settings that only compiled plans use.
    pub details: Vec<Details>,
}

/// The settings of a rule that only compiled plans use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details {
    /// The name for messages. If `None`, messages contain the function that the rule selects.
    pub name: Option<String>,
    /// Whether the rule uses a pool, whose blocks have a single size.
    pub is_pool: bool,
    /// The maximum block size in bytes. If `None`, the recording determines it.
    pub block_bytes: Option<u32>,
}

impl Rules {
    /// Reads a plan from a file.
    pub fn read(path: &Path) -> Result<Rules> {
        let name = path.display().to_string();
        let plan = Plan::read(path).map_err(made_nothing)?;
        let text = std::fs::read_to_string(path).unwrap_or_default();
        Rules::with_details(plan, &text, &name)
    }

    /// Reads a plan from its text. `name` is the name of the plan in errors.
    pub fn parse(text: &str, name: &str) -> Result<Rules> {
        Rules::with_details(Plan::parse(text, name).map_err(made_nothing)?, text, name)
    }

    fn with_details(plan: Plan, text: &str, name: &str) -> Result<Rules> {
        let table: Table = text.parse().unwrap_or_default();
        let rules = table.get("rule").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let of = |(rule, number): (&Value, usize)| Details::parse(rule, &RuleName { name, number });
        let details = rules.iter().zip(1..).map(of).collect::<Result<_>>();
        Ok(Rules { plan, details: details.map_err(made_nothing)? })
    }

    /// Returns the name of a rule for messages.
    pub fn name(&self, rule: usize) -> String {
        let given = self.details.get(rule).and_then(|details| details.name.clone());
        given.unwrap_or_else(|| match &self.plan.rules[rule].scope {
            Scope::Everything => "everything".to_string(),
            Scope::Region(name) | Scope::Site(name) | Scope::Functions(name) => name.clone(),
            Scope::Stack(node) => format!("call stack {node}"),
        })
    }

    /// Returns the local allocator of a rule, or `None` for malloc.
    pub fn allocator(&self, rule: usize) -> Option<LocalAllocator> {
        let is_pool = self.details.get(rule).is_some_and(|details| details.is_pool);
        match self.plan.rules[rule].strategy.allocator() {
            _ if is_pool => Some(LocalAllocator::Pool),
            Allocator::Heap => None,
            Allocator::Arena => Some(LocalAllocator::Arena),
            Allocator::Multipool => Some(LocalAllocator::Multipool),
            Allocator::MultipoolOverArena => Some(LocalAllocator::MultipoolOverArena),
        }
    }

    /// Returns the maximum block size of a rule in bytes, if the plan contains it.
    pub fn block_bytes(&self, rule: usize) -> Option<u32> {
        self.details.get(rule).and_then(|details| details.block_bytes)
    }

    /// Returns the rules with their indices.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &Rule)> {
        self.plan.rules.iter().enumerate()
    }
}

/// Converts a replay plan, such as one that `mallard advise` has measured.
impl From<Plan> for Rules {
    fn from(plan: Plan) -> Rules {
        let details = vec![Details::default(); plan.rules.len()];
        Rules { plan, details }
    }
}

impl Details {
    fn parse(rule: &Value, name: &RuleName) -> Result<Details> {
        let Value::Table(table) = rule else { return Ok(Details::default()) };
        let block_bytes = number(table, "block_bytes", name)?.map(|bytes| {
            let is_right = (1..=u64::from(BLOCK_MAX)).contains(&bytes);
            is_right.then_some(bytes as u32).ok_or_else(|| {
                bad(
                    format!(
                        "{name}: `block_bytes` is {bytes}, but a block has 1 to {BLOCK_MAX} bytes"
                    ),
                    format!("write block_bytes = {BLOCK_MAX} or less, or leave it out"),
                )
            })
        });
        Ok(Details {
            name: text(table, "name", name)?.map(str::to_string),
            is_pool: table.get("strategy").and_then(Value::as_str) == Some("pool"),
            block_bytes: block_bytes.transpose()?,
        })
    }
}

/// Returns the same error with the state "no plan was made".
pub(super) fn made_nothing(error: Error) -> Error {
    Error::new(error.kind(), error.what(), "no plan was made", error.help())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_ignores_the_names_and_block_sizes_of_plan_rules() {
        let text = r#"
            [[rule]]
            name = "nodes"
            site = "make_node"
            strategy = "pool"
            block_bytes = 48
            [[rule]]
            functions = "^json::"
            strategy = "multipool over arena"
            [[rule]]
            region = "parse"
            strategy = "AS4"
            ends = "drained"
            [[rule]]
            strategy = "malloc"
        "#;
        let rules = Rules::parse(text, "a.toml").unwrap();
        let names: Vec<String> = (0..4).map(|rule| rules.name(rule)).collect();
        assert_eq!(names, ["nodes", "^json::", "parse", "everything"]);
        let of = [LocalAllocator::Pool, LocalAllocator::MultipoolOverArena, LocalAllocator::Arena];
        assert_eq!((0..3).filter_map(|rule| rules.allocator(rule)).collect::<Vec<_>>(), of);
        assert_eq!((rules.allocator(3), rules.block_bytes(0)), (None, Some(48)));
        let again = Rules::from(rules.plan.clone());
        assert_eq!(again.allocator(0), Some(LocalAllocator::Multipool));
    }

    #[test]
    fn an_invalid_rule_is_rejected_before_a_plan_is_written() {
        let of = |keys: &str| format!("[[rule]]\nstrategy = 'pool'\n{keys}");
        let cases = [
            (
                of("block_bytes = 0"),
                "a.toml: rule 1: `block_bytes` is 0, but a block has 1 to 16384",
            ),
            (of("block_bytes = 16385"), "`block_bytes` is 16385"),
            (of("block_bytes = 'x'"), "`block_bytes` is not a whole number"),
            (of("name = 3"), "`name` is not a string"),
            ("rule = 3".to_string(), "`rule` has a value of another type"),
        ];
        for (text, what) in cases {
            let error = Rules::parse(&text, "a.toml").unwrap_err();
            assert!(error.what().contains(what), "{error}");
            assert_eq!(error.state(), "no plan was made");
        }
    }
}
