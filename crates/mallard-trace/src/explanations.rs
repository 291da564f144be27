//! Explains the measures D, V, L, U, C and F.
//!
//! These texts are the only definition of the measures in words. The option `--explain`, the report
//! and the table in docs/guide.md use them.

/// The explanation of one measure: its letter, name and unit, and how it is computed.
pub struct Explanation {
    /// The letter of the measure: D, V, L, U, C or F.
    pub letter: char,
    /// The word that the letter stands for.
    pub word: &'static str,
    /// The unit of the measure.
    pub unit: &'static str,
    /// The question that the measure answers about a part of a program.
    pub question: &'static str,
    /// The advice if the value is near 0; may be empty.
    pub low: &'static str,
    /// The advice if the value is high.
    pub high: &'static str,
    /// How the measure is computed, what a high value means, and how the confidence interval is
    /// computed.
    pub text: &'static str,
}

/// The six measures, in the order D, V, L, U, C, F.
pub const EXPLANATIONS: [Explanation; 6] = [
    Explanation {
        letter: 'D',
        word: "density",
        unit: "calls/ms",
        question: "How much of the part's work is allocating and freeing?",
        low: "nothing to gain: keep the heap",
        high: "every nanosecond of an allocation counts",
        text: "Calls that allocate or free blocks of the site, for each millisecond of CPU time of \
               the program. A high value means that the speed of allocation matters. n counts \
               calls. The interval comes from a bootstrap over up to 32 equal slices of the time.",
    },
    Explanation {
        letter: 'V',
        word: "variation",
        unit: "bits",
        question: "How many different sizes, per allocation?",
        low: "few: a pool or a multipool",
        high: "many: an arena, which serves every size alike",
        text: "The entropy of the size classes of the allocations: 0 if all have one class, 3 if \
               eight classes are equally frequent. A low value means that pools fit. n counts \
               allocations. The interval comes from a bootstrap over allocations.",
    },
    Explanation {
        letter: 'L',
        word: "locality",
        unit: "ratio",
        question: "Of the pages that the part's blocks touch, what share do these blocks fill?",
        low: "they are scattered: a separate allocator keeps them together",
        high: "they are packed: nothing to gain",
        text: "At the largest extent of the site: the bytes of its blocks, divided by the bytes of \
               the pages that any of its blocks touches. 1 means that a reader of these pages meets \
               nothing else. Accesses are not recorded: whether the part reads its blocks again and \
               again, so that scattered ones cost time, only a run tells. n counts blocks. The \
               interval comes from a bootstrap over pages.",
    },
    Explanation {
        letter: 'U',
        word: "utilisation",
        unit: "ratio",
        question: "Of all that the part ever allocates, how much is in use at the peak?",
        low: "blocks are freed and allocated again: a pool or multipool",
        high: "blocks are allocated, and in the end all are freed: an arena",
        text: "The maximum of bytes in use at the same time, divided by all bytes ever allocated. \
               An arena that frees nothing would need 1/U times the memory. n counts allocations. The \
               interval comes from a bootstrap over blocks, in its normal limit.",
    },
    Explanation {
        letter: 'C',
        word: "contention",
        unit: "ratio",
        question: "Do several threads allocate at the same time?",
        low: "",
        high: "one allocator for each thread",
        text: "The mean number of other threads that were inside a call while a call of the site \
               ran, divided by the number of other threads. 0 with one thread. n counts calls \
               whose duration was measured. The interval comes from a bootstrap over calls, in its \
               normal limit.",
    },
    Explanation {
        letter: 'F',
        word: "fragmentability",
        unit: "ratio",
        question: "Do other parts allocate between this part's blocks?",
        low: "no: nothing to gain",
        high: "a separate allocator keeps other blocks out",
        text: "At the largest extent of the site: 1 - pages that the bytes of its blocks fill / \
               pages that any of its blocks touches. 0 if the blocks are contiguous, near 1 if \
               each small block is alone on its page. n counts blocks. The interval comes from a \
               bootstrap over pages.",
    },
];

/// Returns the explanation of a letter, or `None` if the letter is not one of the six measures.
pub fn explain(letter: char) -> Option<&'static Explanation> {
    let letter = letter.to_ascii_uppercase();
    EXPLANATIONS.iter().find(|explanation| explanation.letter == letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text of the directory docs/.
    fn doc(name: &str) -> String {
        let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        std::fs::read_to_string(docs.join(name)).unwrap()
    }

    #[test]
    fn each_letter_of_the_allocation_measures_is_explained() {
        let letters: String = EXPLANATIONS.iter().map(|explanation| explanation.letter).collect();
        assert_eq!(letters, "DVLUCF");
        assert_eq!(explain('u').unwrap().word, "utilisation");
        assert!(explain('x').is_none());
    }

    #[test]
    fn low_locality_and_high_fragmentability_both_suggest_a_local_allocator() {
        // L is high if the blocks of a site fill their pages. F is high if they do not.
        let [l, f] = ['L', 'F'].map(|letter| explain(letter).unwrap());
        assert!(l.low.contains("separate allocator") && f.high.contains("separate allocator"));
        assert!(l.high.contains("nothing to gain") && f.low.contains("nothing to gain"));
        assert!(l.text.contains("Accesses are not recorded"));
    }

    #[test]
    fn the_table_in_the_guide_explains_the_measures_in_the_same_words() {
        let guide = doc("guide.md");
        for of in &EXPLANATIONS {
            let (first, rest) = of.question.split_at(1);
            let question = first.to_lowercase() + rest;
            let cells = [&question, of.low, of.high, of.unit];
            let row = format!("| **{}** {} | {} |\n", of.letter, of.word, cells.join(" | "));
            let row = row.replace("|  |", "| |");
            assert!(guide.contains(&row), "docs/guide.md lacks the line\n{row}");
        }
    }

    #[test]
    fn the_glossary_names_the_measures_in_the_same_words() {
        let words = EXPLANATIONS.map(|explanation| explanation.word);
        let (last, others) = words.split_last().unwrap();
        let list = format!("{} and {last}", others.join(", "));
        assert!(doc("glossary.md").contains(&list), "docs/glossary.md lacks `{list}`");
    }
}
