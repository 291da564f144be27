//! Generates text that resembles natural language and is the same in every run.

pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * n as u128) >> 64) as usize
    }
}

/// Picks a word. Squaring the random number makes some words much more frequent than others.
pub fn word(random: &mut Random) -> String {
    let rank = {
        let r = random.below(1000);
        r * r / 100
    };
    let mut letters = Random(rank as u64 * 0x9e37_79b9_7f4a_7c15 + 1);
    (0..3 + letters.below(9)).map(|_| (b'a' + letters.below(26) as u8) as char).collect()
}

pub fn file(seed: u64, lines: usize) -> String {
    let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1);
    let mut text = String::new();
    for _ in 0..lines {
        for i in 0..4 + random.below(10) {
            if i != 0 {
                text.push(' ');
            }
            text.push_str(&word(&mut random));
            if random.below(40) == 0 {
                text.push_str(&format!("={}", random.below(100_000)));
            }
        }
        text.push('\n');
    }
    text
}

pub fn mix(sum: u64, with: usize) -> u64 {
    (sum ^ with as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
}
