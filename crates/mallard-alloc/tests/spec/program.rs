//! Runs a test program of `spec/` line by line.

use super::element::{book, set_book, Book};
use super::line::{broken, hold, Broken, Held, Line};
use super::subject::{State, Subject};

/// Makes the allocator that the first word of a line names. `None` if the word names no allocator.
pub type Maker = fn(kind: &str, l: &mut Line, state: &State) -> Held<Option<Box<dyn Subject>>>;

pub struct Program {
    make: Maker,
    subject: Option<Box<dyn Subject>>, // dropped before `state`, which it uses
    state: State,
}

/// Runs a program. An error is a message such as `spec/arena.ops:8: failed: expect c is b`, with
/// the reason.
pub fn run(make: Maker, path: &str, text: &str) -> Result<(), String> {
    let mut program = Program { make, subject: None, state: State::default() };
    let mut at = (0, "its end");
    let mut all = || {
        for (i, written) in text.lines().enumerate() {
            at = (i + 1, written.split('#').next().unwrap_or("").trim());
            program.step(&mut Line::new(written))?;
        }
        at = (at.0, "its end");
        program.end()
    };
    let why = match all() {
        Ok(()) => return Ok(()),
        Err(Broken::Refused) => "it is refused".into(),
        Err(Broken::Why(why)) => why,
    };
    let (line, statement) = at;
    let gap = if why.is_empty() { "" } else { "\n  " };
    Err(format!("{path}:{line}: failed: {statement}{gap}{why}"))
}

impl Program {
    fn step(&mut self, l: &mut Line) -> Held {
        if l.is_empty() {
            return Ok(());
        }
        for (word, of_word) in [
            ("in", Self::in_language as fn(&mut Self, &mut Line) -> Held),
            ("repeat", Self::repeat),
            ("fail", Self::fail),
            ("expect", Self::expect),
            ("refuses", Self::refuses),
            ("throws", Self::throws),
            ("attempt", Self::attempt),
        ] {
            if l.take(word) {
                return of_word(self, l);
            }
        }
        self.call(l)
    }

    fn call(&mut self, l: &mut Line) -> Held {
        let name = l.result()?;
        let verb = l.word("a verb")?;
        hold(self.count(&name).is_none(), &format!("{name} is the name of a count"))?;
        if name.is_empty() && self.begin(&verb, l)? {
            return Ok(());
        }
        match self.count(&verb) {
            Some(n) if !name.is_empty() => {
                self.state.named.insert(name, n);
            }
            _ => {
                let known = about(&mut self.subject)?.run(&verb, &name, l, &self.state)?;
                hold(known, &format!("there is no verb {verb} here"))?;
            }
        }
        l.end()
    }

    fn in_language(&mut self, l: &mut Line) -> Held {
        match l.word("a language")?.as_str() {
            "c++" => Ok(()),
            "rust" => self.step(l),
            other => broken(format!("there is no language {other}")),
        }
    }

    fn repeat(&mut self, l: &mut Line) -> Held {
        let times = l.number("how often", &self.state.named)?;
        hold(times != 0, "a line is repeated once at least")?;
        (0..times).try_for_each(|_| self.step(&mut l.clone()))
    }

    fn fail(&mut self, l: &mut Line) -> Held {
        let State { ground, named } = &self.state;
        match l.word("when")?.as_str() {
            "after" => ground.fail_after(l.number("requests", named)?),
            "above" => ground.fail_above(l.number("bytes", named)?),
            "never" => ground.fail_never(),
            _ => return broken("it fails after, above or never"),
        }
        l.end()
    }

    fn expect(&mut self, l: &mut Line) -> Held {
        let name = l.word("what is expected")?;
        let is = l.word("what it is")?;
        if let Some(n) = self.count(&name) {
            hold(self.compares(n, &is, l)?, &format!("{name} is {n}"))?;
        } else {
            let known = about(&mut self.subject)?.expect(&name, &is, l, &self.state.named)?;
            hold(known, &format!("there is no expectation {is} here"))?;
        }
        l.end()
    }

    fn compares(&self, n: usize, is: &str, l: &mut Line) -> Held<bool> {
        let other = is == "is" && l.take("not");
        let m = l.number("a number", &self.state.named)?;
        Ok(match is {
            "is" => (n == m) != other,
            "<" => n < m,
            "<=" => n <= m,
            ">" => n > m,
            ">=" => n >= m,
            _ => return broken(format!("there is no comparison {is}")),
        })
    }

    /// Runs a line that may fail, and checks that a failure changes no live block or object. Chunks
    /// that were allocated for bookkeeping may stay for the next attempt.
    fn attempt(&mut self, l: &mut Line) -> Held {
        let before = self.lives();
        match self.step(l) {
            Err(Broken::Refused) => hold(self.lives() == before, "what lives has changed"),
            other => other,
        }
    }
    fn refuses(&mut self, l: &mut Line) -> Held {
        let verb = l.word("a verb")?;
        self.unchanged(|subject, state| {
            let known = subject.refuses(&verb, l, state)?;
            hold(known, &format!("{verb} cannot fail so here"))
        })?;
        l.end()
    }
    fn throws(&mut self, l: &mut Line) -> Held {
        let verb = l.word("a verb")?;
        self.unchanged(|subject, state| {
            hold(subject.throws(&verb, l, state)?, "nothing was thrown")
        })?;
        l.end()
    }

    /// Runs a call that must fail, and checks that nothing has changed.
    fn unchanged(&mut self, call: impl FnOnce(&mut dyn Subject, &State) -> Held) -> Held {
        let (lives, taken, chunks) = (self.lives(), self.count("taken"), self.count("chunks"));
        let subject = about(&mut self.subject)?;
        call(subject, &self.state)?;
        subject.verify()?;
        hold(self.lives() == lives, "what lives has changed")?;
        hold(self.count("taken") == taken, "it has taken memory, or given some back")?;
        hold(self.count("chunks") == chunks, "it has taken a chunk, or given one back")
    }
    fn lives(&mut self) -> [Option<usize>; 2] {
        [self.count("live"), self.count("dropped")]
    }

    /// Makes the allocator `kind`, which replaces the current one. Returns `false` if `kind` names
    /// no allocator.
    fn begin(&mut self, kind: &str, l: &mut Line) -> Held<bool> {
        let state = State::default();
        let Some(subject) = (self.make)(kind, l, &state)? else {
            return Ok(false);
        };
        l.end()?;
        self.end()?;
        self.subject = Some(subject);
        self.state = state;
        set_book(Book::default());
        Ok(true)
    }

    fn end(&mut self) -> Held {
        if let Some(subject) = self.subject.take() {
            subject.verify()?;
        }
        hold(self.state.ground.chunks() == 0, "all is given back in the end")
    }

    fn count(&mut self, name: &str) -> Option<usize> {
        match name {
            "taken" => Some(self.state.ground.taken()),
            "chunks" => Some(self.state.ground.chunks()),
            "calls" => Some(self.state.ground.calls()),
            "dropped" => Some(book().dropped),
            "last" => Some(book().last),
            _ => self.subject.as_mut()?.count(name),
        }
    }
}

fn about(subject: &mut Option<Box<dyn Subject>>) -> Held<&mut dyn Subject> {
    match subject {
        Some(subject) => Ok(&mut **subject),
        None => broken("there is no allocator yet"),
    }
}
