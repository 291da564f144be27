//! Where a thread's list of a size lies, as src/heap/classes.hpp has it: computed here, so that it
//! is a constant where the compiler knows the size.

/// Sizes to this one are looked up.
pub const LOOKED_UP_MAX: usize = 1024;

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

/// Of at most `LOOKED_UP_MAX` bytes.
#[inline(always)]
pub fn code_of(bytes: usize) -> usize {
    CODES[bytes.div_ceil(16)] as usize
}

#[cfg(test)]
mod tests {
    extern "C" {
        fn mallard_rust_code_of(bytes: usize) -> u32;
    }

    #[test]
    fn codes_are_those_of_the_engine() {
        for bytes in 0..=super::LOOKED_UP_MAX {
            // SAFETY: a function of its argument.
            assert_eq!(super::code_of(bytes), unsafe { mallard_rust_code_of(bytes) } as usize);
        }
    }
}
