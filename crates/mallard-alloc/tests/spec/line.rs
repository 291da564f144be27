//! One line of a test program of `spec/`, read word by word. `spec/README.md` describes the
//! language.

use std::collections::HashMap;

/// The reason why a line fails or cannot be parsed.
#[derive(Debug)]
pub enum Broken {
    Why(String),
    /// The call failed because there is no memory.
    Refused,
}

pub type Held<T = ()> = Result<T, Broken>;
pub type Numbers = HashMap<String, usize>;

pub fn broken<T>(why: impl Into<String>) -> Held<T> {
    Err(Broken::Why(why.into()))
}

pub fn hold(holds: bool, why: &str) -> Held {
    if holds {
        Ok(())
    } else {
        broken(why)
    }
}

#[derive(Clone)]
pub struct Line {
    words: Vec<String>,
    next: usize,
}

impl Line {
    pub fn new(text: &str) -> Self {
        let code = text.split('#').next().unwrap_or("");
        Self { words: code.split_whitespace().map(String::from).collect(), next: 0 }
    }

    pub fn is_empty(&self) -> bool {
        self.next == self.words.len()
    }

    /// Consumes the next word if it equals `expected`.
    pub fn take(&mut self, expected: &str) -> bool {
        let found = self.words.get(self.next).is_some_and(|word| word == expected);
        self.next += found as usize;
        found
    }

    pub fn word(&mut self, what: &str) -> Held<String> {
        let Some(word) = self.words.get(self.next) else {
            return broken(format!("there should be {what}"));
        };
        self.next += 1;
        Ok(word.clone())
    }

    /// Consumes `NAME =` if the line begins with it.
    pub fn result(&mut self) -> Held<String> {
        if self.words.get(self.next + 1).is_none_or(|word| word != "=") {
            return Ok(String::new());
        }
        self.next += 2;
        let name = self.words[self.next - 2].clone();
        hold(!name.bytes().all(|b| b.is_ascii_digit()), "a name is not a number")?;
        Ok(name)
    }

    /// Consumes a number: 40, 64K, 2M, 8G, `most`, or the name of a number.
    pub fn number(&mut self, what: &str, named: &Numbers) -> Held<usize> {
        let text = self.word(what)?;
        if text == "most" {
            return Ok(usize::MAX);
        }
        if let Some(n) = named.get(&text) {
            return Ok(*n);
        }
        let digits = text.trim_end_matches(['K', 'M', 'G']);
        let unit = match &text[digits.len()..] {
            "" => 0,
            "K" => 10,
            "M" => 20,
            "G" => 30,
            _ => return broken(format!("{text} should be {what}")),
        };
        match digits.parse::<usize>() {
            Ok(value) => Ok(value << unit),
            Err(_) => broken(format!("{text} should be {what}")),
        }
    }

    pub fn end(&self) -> Held {
        match self.words.get(self.next) {
            None => Ok(()),
            Some(word) => broken(format!("nothing should follow, but there is {word}")),
        }
    }
}
