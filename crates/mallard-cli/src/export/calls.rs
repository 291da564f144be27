//! Reads the call stacks of a trace, in the form that every export needs.

use mallard_measure::error::Failure;
use mallard_trace::names::{is_wrapper, short};
use mallard_trace::trace::{FrameInfo, Stacks};
use mallard_trace::{SiteRow, Trace};
use std::borrow::Cow;

/// The frame that replaces an unknown call stack.
const NO_STACK: FrameInfo<'static> =
    FrameInfo { function: "(no call stack)", file: "", line: None, module: "", is_inlined: false };

/// The sites of a trace, and their call stacks.
pub struct Calls {
    /// The sites that allocate.
    pub sites: Vec<SiteRow>,
    stacks: Stacks,
    is_full: bool,
}

/// The functions at one return address of a call stack.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place<'a> {
    /// The frame; `None` if the call stack is not known.
    pub frame: Option<u32>,
    /// The functions, the innermost first. There is at least one function, and each was inlined
    /// into the next one.
    pub functions: &'a [FrameInfo<'a>],
}

/// The functions of each frame.
pub struct Functions<'a>(Vec<Vec<FrameInfo<'a>>>);

impl Calls {
    /// Reads the sites and call stacks of a trace. If `is_full`, names keep their arguments, and
    /// functions that only pass an allocation on are kept.
    pub fn read(trace: &Trace, is_full: bool) -> Result<Calls, Failure> {
        Ok(Calls { sites: trace.sites()?, stacks: trace.stacks()?, is_full })
    }

    /// Looks up the functions of all frames.
    pub fn functions(&self) -> Functions<'_> {
        let frames = 0..self.stacks.frames() as u32;
        Functions(frames.map(|frame| self.stacks.functions_at(frame)).collect())
    }

    /// Returns the places of a site's call stack, the innermost first. There is at least one place.
    pub fn places<'a>(&self, site: &SiteRow, functions: &'a Functions<'a>) -> Vec<Place<'a>> {
        let of = |frame: u32| {
            let functions = functions.0.get(frame as usize)?.as_slice();
            (!functions.is_empty()).then_some(Place { frame: Some(frame), functions })
        };
        let mut places: Vec<Place> = self.stacks.frames_of(site.stack).filter_map(of).collect();
        if !self.is_full {
            leave_out_wrappers(&mut places);
        }
        if places.is_empty() {
            places.push(Place { frame: None, functions: &[NO_STACK] });
        }
        places
    }

    /// Returns the name of a function, with its arguments if `is_full`.
    pub fn name<'a>(&self, function: &FrameInfo<'a>) -> Cow<'a, str> {
        match self.is_full {
            true => function.function.into(),
            false => short(function.function).into(),
        }
    }

    /// Returns the module of a frame as a row number of the table `modules`, and the offset of the
    /// frame in the module's file.
    pub fn place_of(&self, frame: u32) -> (Option<usize>, Option<u64>) {
        self.stacks.place_of(frame)
    }
}

/// Removes the innermost functions that only pass the allocation on, unless all functions do.
fn leave_out_wrappers(places: &mut Vec<Place>) {
    let position = |place: &Place| place.functions.iter().position(|f| !is_wrapper(f.function));
    let first = places.iter().enumerate().find_map(|(at, place)| Some((at, position(place)?)));
    if let Some((at, function)) = first {
        places.drain(..at);
        places[0].functions = &places[0].functions[function..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(function: &str) -> FrameInfo<'_> {
        FrameInfo { function, ..NO_STACK }
    }

    #[test]
    fn inlined_allocation_wrappers_are_omitted_from_exported_stacks() {
        let inner = [function("operator new(unsigned long)")];
        let outer = [function("std::allocator<int>::allocate"), function("parse"), function("f")];
        let place = |frame, functions| Place { frame: Some(frame), functions };
        let mut places = vec![place(1, &inner[..]), place(2, &outer), place(3, &inner)];
        leave_out_wrappers(&mut places);
        assert_eq!(places, [place(2, &outer[1..]), place(3, &inner)]);
        let mut only = vec![place(1, &inner[..])];
        leave_out_wrappers(&mut only);
        assert_eq!(only.len(), 1);
    }
}
