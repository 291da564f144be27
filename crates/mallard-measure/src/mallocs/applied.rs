//! Applies plans in programs without changing the programs. A preloaded library in front of the
//! program's malloc serves the call stacks of the plan from local allocators.

use super::{Allocator, Variables};
use crate::error::Failure;
use crate::process::installed::PLAN;
use crate::process::preload::{joined, preloadable};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// A compiled plan, and the library that applies plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedPlan {
    /// The file of the plan.
    pub file: PathBuf,
    /// The library.
    pub library: PathBuf,
}

/// What the library does with the blocks of the plan's call stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    /// The library serves the blocks from local allocators.
    Serves,
    /// The library decides about each block in the same way, but then allocates the block from the
    /// program's malloc. The difference from a program without the library is the cost of deciding.
    Control,
}

impl AppliedPlan {
    /// Finds the library that applies plans. Does not read the plan; the library reads it, and the
    /// caller should check it before.
    pub fn find(file: &Path) -> Result<AppliedPlan, Failure> {
        let library = PLAN.find("the program was not started")?;
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_path_buf());
        Ok(AppliedPlan { file, library })
    }

    /// Returns the environment variables that apply the plan in a program. `own` is the malloc of
    /// the program.
    pub fn variables(&self, own: &Allocator, program: &Path, applies: Applies) -> Variables {
        let mut variables = own.variables(program);
        let is_preload = |(name, _): &(OsString, Option<OsString>)| name == "LD_PRELOAD";
        let others = match variables.iter().position(is_preload) {
            Some(at) => variables.remove(at).1,
            None => std::env::var_os("LD_PRELOAD"),
        };
        let preload = joined([preloadable(&self.library).into()].into_iter().chain(others));
        let control = (applies == Applies::Control).then(|| OsString::from("1"));
        variables.push(("LD_PRELOAD".into(), Some(preload)));
        variables.push(("MALLARD_PLAN".into(), Some(self.file.clone().into())));
        variables.push(("MALLARD_PLAN_CONTROL".into(), control));
        variables
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plan_library_is_preloaded_before_the_malloc() {
        let plan =
            AppliedPlan { file: "/a.plan".into(), library: "/lib/libmallard-plan.so".into() };
        let of = |own: &Allocator, applies| {
            let variables = plan.variables(own, Path::new("/bin/true"), applies);
            let text = |name: &str| {
                let variable = variables.iter().find(|(of, _)| of == name).expect(name);
                variable.1.as_ref().map(|value| value.to_string_lossy().into_owned())
            };
            [text("LD_PRELOAD"), text("MALLARD_PLAN"), text("MALLARD_PLAN_CONTROL")]
        };
        let own = Allocator {
            library: Some("/lib/libmine.so".into()),
            as_started: false,
            ..Allocator::as_started("mine")
        };
        let [preload, file, control] = of(&own, Applies::Serves);
        assert!(preload.unwrap().starts_with("/lib/libmallard-plan.so:/lib/libmine.so"));
        assert_eq!((file.as_deref(), control), (Some("/a.plan"), None));
        let [preload, _, control] = of(&Allocator::as_started("glibc"), Applies::Control);
        assert!(preload.unwrap().starts_with("/lib/libmallard-plan.so"));
        assert_eq!(control.as_deref(), Some("1"));
    }
}
