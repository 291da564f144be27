//! The block sizes that a multipool keeps pools for.
//!
//! Multiples of 8 to 128 bytes, then eight sizes per doubling: 144, 160, ..., 256, 288, ... So a
//! block is at most 7 bytes, or from 128 up at most 12.5 %, larger than the request. A class is
//! aligned as far as its size divides. `spec/size_classes.csv` lists those to 32 KiB.
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

/// The class of the smallest blocks that hold `bytes`; 0 counts as 1.
#[inline]
pub const fn of(bytes: usize) -> usize {
    if bytes <= FINE_MAX {
        return (bytes + (bytes == 0) as usize - 1) / FINE_STEP;
    }
    let doubling = (bytes - 1).ilog2(); // 7 for 129..=256
    let step = (bytes - 1) >> (doubling - STEPS_LOG2); // of eight: 8..=15
    FINE_COUNT + (((doubling - 7) as usize) << STEPS_LOG2) + (step - STEPS)
}

/// Bytes of the blocks of a class.
#[inline]
pub const fn bytes(class: usize) -> usize {
    if class < FINE_COUNT {
        return (class + 1) * FINE_STEP;
    }
    let coarse = class - FINE_COUNT;
    ((coarse & (STEPS - 1)) + STEPS + 1) << ((coarse >> STEPS_LOG2) + 7 - STEPS_LOG2 as usize)
}

/// What the blocks of a class are aligned to, if all that their size allows is given.
#[inline]
pub const fn align(class: usize) -> usize {
    bytes(class) & bytes(class).wrapping_neg()
}

const TABLE_MAX: usize = 1024;

/// Entry i is the class of i * 8 bytes; two cache lines.
static SMALL: [u8; TABLE_MAX / FINE_STEP + 1] = {
    let mut table = [0; TABLE_MAX / FINE_STEP + 1];
    let mut i = 0;
    while i < table.len() {
        table[i] = of(i * FINE_STEP) as u8;
        i += 1;
    }
    table
};

/// The same as `of` for `bytes` above 0, by a table for the sizes that most blocks have.
#[inline(always)]
pub(crate) fn look_up(bytes: usize) -> usize {
    if bytes > TABLE_MAX {
        return of(bytes);
    }
    // SAFETY: the table has an entry for each step up to `TABLE_MAX`.
    unsafe { *SMALL.get_unchecked(bytes.div_ceil(FINE_STEP)) as usize }
}
