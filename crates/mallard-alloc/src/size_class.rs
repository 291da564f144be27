//! Size classes, the block sizes for which a multipool has pools.
//!
//! The sizes are multiples of 8 up to 128 bytes, then eight sizes for each doubling: 144, 160, ...,
//! 256, 288, ... So a block is at most 7 bytes larger than the request, or, from 128 bytes on, at
//! most 12.5 % larger. Blocks of a class are aligned to the largest power of two that divides their
//! size. `spec/size_classes.csv` lists the classes up to 32 KiB.
//!
//! ```
//! use mallard::size_class;
//! assert_eq!(size_class::bytes(size_class::of(33)), 40);
//! assert_eq!(size_class::bytes(size_class::of(129)), 144);
//! ```

const FINE_MAX: usize = 128;
const FINE_STEP: usize = 8;
const STEPS_LOG2: u32 = 3;
const STEPS: usize = 1 << STEPS_LOG2;
const FINE_COUNT: usize = FINE_MAX / FINE_STEP;

/// Returns the class of the smallest blocks that have at least `bytes` bytes. 0 bytes count as 1.
#[inline]
pub const fn of(bytes: usize) -> usize {
    if bytes <= FINE_MAX {
        return (bytes + (bytes == 0) as usize - 1) / FINE_STEP;
    }
    let doubling = (bytes - 1).ilog2(); // 7 for 129..=256
    let step = (bytes - 1) >> (doubling - STEPS_LOG2); // one of eight values: 8..=15
    FINE_COUNT + (((doubling - 7) as usize) << STEPS_LOG2) + (step - STEPS)
}

/// Returns the size of the blocks of a class, in bytes.
#[inline]
pub const fn bytes(class: usize) -> usize {
    if class < FINE_COUNT {
        return (class + 1) * FINE_STEP;
    }
    let coarse = class - FINE_COUNT;
    ((coarse & (STEPS - 1)) + STEPS + 1) << ((coarse >> STEPS_LOG2) + 7 - STEPS_LOG2 as usize)
}

/// Returns the largest alignment that the size of the class allows.
///
/// ```
/// use mallard::size_class;
/// assert_eq!(size_class::align(size_class::of(48)), 16);
/// ```
#[inline]
pub const fn align(class: usize) -> usize {
    bytes(class) & bytes(class).wrapping_neg()
}

const TABLE_MAX: usize = 1024;

/// A table of size classes for small sizes. Entry i is the class of i * 8 bytes. The table uses
/// about two cache lines.
static SMALL: [u8; TABLE_MAX / FINE_STEP + 1] = {
    let mut table = [0; TABLE_MAX / FINE_STEP + 1];
    let mut i = 0;
    while i < table.len() {
        table[i] = of(i * FINE_STEP) as u8;
        i += 1;
    }
    table
};

/// Returns the same class as `of`, for `bytes` above 0. Uses a table for sizes up to 1 KiB.
#[inline(always)]
pub(crate) fn look_up(bytes: usize) -> usize {
    if bytes > TABLE_MAX {
        return of(bytes);
    }
    // SAFETY: the table has an entry for each step up to `TABLE_MAX`.
    unsafe { *SMALL.get_unchecked(bytes.div_ceil(FINE_STEP)) as usize }
}
