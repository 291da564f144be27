//! Where a thread's list of a size lies, as src/heap/classes.hpp has it: computed here, so that it
//! is a constant where the compiler knows the size.

use core::alloc::Layout;

/// Sizes to this one are looked up.
const LOOKED_UP_MAX: usize = 1024;

const CODES: [u16; LOOKED_UP_MAX / 16 + 1] = {
    let mut all = [0; LOOKED_UP_MAX / 16 + 1];
    let mut i = 0;
    while i < all.len() {
        all[i] = ((class_of(16 * i) + 4) * 16) as u16;
        i += 1;
    }
    all
};

/// Multiples of 16 to 128, then four sizes in each doubling.
const fn class_of(bytes: usize) -> usize {
    if bytes <= 128 {
        return bytes.saturating_sub(1) / 16;
    }
    let doubling = (bytes - 1).ilog2() as usize;
    8 + (doubling - 7) * 4 + ((bytes - 1) >> (doubling - 2)) - 4
}

/// Where blocks for it are listed, if their alignment, 16, does, and the size is looked up.
#[inline(always)]
pub fn code_of(layout: Layout) -> Option<usize> {
    // Both at once: of two numbers below 1024 all bits together are below it. An alignment of 32
    // gives 1984, larger ones more. (A size of 0, which no allocator is asked for, is not looked up.)
    let bits = layout.size().wrapping_sub(1) | (layout.align() - 1) << 6;
    (bits < LOOKED_UP_MAX).then(|| CODES[layout.size().div_ceil(16)] as usize)
}

#[cfg(test)]
mod tests {
    extern "C" {
        fn mallard_rust_code_of(bytes: usize) -> u32;
    }

    use core::alloc::Layout;

    #[test]
    fn codes_are_those_of_the_engine() {
        for bytes in 1..=1100 {
            for shift in 0..63 {
                let Ok(layout) = Layout::from_size_align(bytes, 1 << shift) else { continue };
                // SAFETY: a function of its argument.
                let code = unsafe { mallard_rust_code_of(bytes) } as usize;
                let looked_up = bytes <= 1024 && layout.align() <= 16;
                assert_eq!(super::code_of(layout), looked_up.then_some(code), "{layout:?}");
            }
        }
    }
}
