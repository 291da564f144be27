//! Computes the class offset of a size, which is the byte offset of the free list for that size
//! within the engine's thread cache. This file repeats the computation of src/heap/classes.hpp in
//! Rust, so that the offset is a constant if the compiler knows the size.

use core::alloc::Layout;

/// The largest size in the table.
const LOOKED_UP_MAX: usize = 1024;

const OFFSETS: [u16; LOOKED_UP_MAX / 16 + 1] = {
    let mut all = [0; LOOKED_UP_MAX / 16 + 1];
    let mut i = 0;
    while i < all.len() {
        all[i] = ((class_of(16 * i) + 4) * 16) as u16;
        i += 1;
    }
    all
};

/// Returns the size class of a size. The classes are multiples of 16 up to 128, then four classes
/// for each doubling of the size.
const fn class_of(bytes: usize) -> usize {
    if bytes <= 128 {
        return bytes.saturating_sub(1) / 16;
    }
    let doubling = (bytes - 1).ilog2() as usize;
    8 + (doubling - 7) * 4 + ((bytes - 1) >> (doubling - 2)) - 4
}

/// Returns the class offset of a layout. Returns `None` if the layout needs more than 16-byte
/// alignment, or if its size is not in the table.
#[inline(always)]
pub fn class_offset_of(layout: Layout) -> Option<usize> {
    // The code tests size and alignment in one comparison, because two numbers below 1024 combined
    // by `or` are below 1024. An alignment of 32 contributes 1984, and a larger alignment
    // contributes more. (Callers never pass a size of 0.)
    let bits = layout.size().wrapping_sub(1) | (layout.align() - 1) << 6;
    (bits < LOOKED_UP_MAX).then(|| OFFSETS[layout.size().div_ceil(16)] as usize)
}

#[cfg(test)]
mod tests {
    unsafe extern "C" {
        fn mallard_rust_class_offset_of(bytes: usize) -> u32;
    }

    use core::alloc::Layout;

    #[test]
    fn class_offsets_equal_those_of_the_engine() {
        for bytes in 1..=1100 {
            for shift in 0..63 {
                let Ok(layout) = Layout::from_size_align(bytes, 1 << shift) else { continue };
                // SAFETY: the function only computes a number.
                let offset = unsafe { mallard_rust_class_offset_of(bytes) } as usize;
                let is_looked_up = bytes <= 1024 && layout.align() <= 16;
                assert_eq!(
                    super::class_offset_of(layout),
                    is_looked_up.then_some(offset),
                    "{layout:?}"
                );
            }
        }
    }
}
