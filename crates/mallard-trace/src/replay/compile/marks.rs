//! Follows the marks of the program, which begin and end regions with exact ends.

use super::super::plan::Scope;
use super::super::selection::NO_RULE;
use super::Compiler;
use crate::format::op;
use crate::rows::Row;

impl Compiler<'_> {
    /// Handles a mark. The end of a region ends the regions inside of it too.
    pub(super) fn mark(&mut self, row: &Row, thread: usize) {
        let marks = &mut self.threads.state(thread).marks;
        if row.op == op::REGION_BEGIN {
            return marks.push(row.stack);
        }
        let Some(at) = marks.iter().rposition(|&open| open == row.stack) else { return };
        let left = marks.split_off(at);
        for mark in left {
            let is_open = self.threads.state(thread).marks.contains(&mark);
            if let Some(rule) = self.selection.marked(mark).filter(|_| !is_open) {
                self.regions.over(thread, rule, &mut self.emitter);
            }
        }
    }

    /// The rule of an allocation. A rule for a call stack or a site comes first, then the mark that
    /// began last.
    #[inline]
    pub(super) fn rule_of(&mut self, node: i32, thread: usize) -> usize {
        let rule = self.selection.rule(node);
        let marks = &self.threads.state(thread).marks;
        if marks.is_empty() {
            return rule;
        }
        let scope = (rule != NO_RULE).then(|| &self.plan.rules[rule].scope);
        if matches!(scope, Some(Scope::Stack(_) | Scope::Site(_))) {
            return rule;
        }
        let marked = marks.iter().rev().find_map(|&mark| self.selection.marked(mark));
        marked.unwrap_or(rule)
    }
}
