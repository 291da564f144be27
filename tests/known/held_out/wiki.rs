// expected advice: switch
//
// The articles of a wiki. Each edit makes a text that is a little longer, the last revisions of an
// article are kept, and one revision in eight is kept for ever. The blocks have thousands of sizes.
use std::collections::{HashMap, VecDeque};

struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) * end) >> 32
    }
}

struct Article {
    title: String,
    revisions: VecDeque<String>,
    milestones: Vec<String>,
    edits: u64,
}

impl Article {
    fn new(number: u64) -> Article {
        let title = format!("article number {number} of the encyclopedia");
        let first = format!("{title} begins here.");
        Article { title, revisions: VecDeque::from([first]), milestones: Vec::new(), edits: 0 }
    }

    /// Inserts words somewhere in the newest revision.
    fn edit(&mut self, words: &str, random: &mut Random) {
        let newest = self.revisions.back().expect("there is a revision");
        let place = random.below(newest.len() as u64 + 1) as usize;
        let mut text = String::with_capacity(newest.len() + words.len());
        text.push_str(&newest[..place]);
        text.push_str(words);
        text.push_str(&newest[place..]);
        self.revisions.push_back(text);
        self.edits += 1;
        if self.revisions.len() > 4 {
            let oldest = self.revisions.pop_front().expect("there are five");
            if self.edits % 8 == 0 {
                self.milestones.push(oldest);
            }
        }
    }

    fn checksum(&self) -> u64 {
        let all = self.revisions.iter().chain(&self.milestones).chain([&self.title]);
        all.fold(self.edits, |sum, text| sum.wrapping_mul(31).wrapping_add(text.len() as u64))
    }
}

fn main() {
    let rounds: u64 =
        std::env::args().nth(1).map_or(60, |rounds| rounds.parse().expect("a number"));
    let sentence = "and there is more to say about the subject, which some readers know well; ";
    let mut random = Random(53);
    let mut articles: HashMap<u64, Article> = HashMap::new();
    let mut next = 0;
    let mut sum = 0_u64;
    for _ in 0..rounds {
        for _ in 0..40_000 {
            // Sometimes, a new article takes the place of an old one.
            if next < 2_000 || random.below(40) == 0 {
                articles.insert(next, Article::new(next));
                next += 1;
                if next > 2_000 {
                    let old = next - 1 - random.below(2_000);
                    if let Some(dropped) = articles.remove(&old) {
                        sum = sum.wrapping_add(dropped.checksum());
                    }
                }
            }
            let chosen = next - 1 - random.below(next.min(2_000));
            let length = 10 + random.below(60) as usize;
            if let Some(article) = articles.get_mut(&chosen) {
                article.edit(&sentence[..length], &mut random);
            }
        }
    }
    for number in 0..next {
        if let Some(article) = articles.get(&number) {
            sum = sum.wrapping_mul(31).wrapping_add(article.checksum());
        }
    }
    println!("checksum of the results: {sum:016x}");
}
