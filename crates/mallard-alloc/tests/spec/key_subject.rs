//! Runs the test programs of `spec/` on a `SlotMap` and its keys.

use super::element::{catches_thrown, throw, Element, Plain};
use super::ground::Ground;
use super::line::{broken, hold, Broken, Held, Line, Numbers};
use super::subject::{State, Subject};
use mallard::{Full, Key, SlotMap};
use std::collections::HashMap;

struct Entry<K> {
    key: K,
    at: *const Plain,
}

/// A slot map under test. Each access checks that the element has not moved.
pub struct KeySubject<K: Key> {
    map: Option<Box<SlotMap<K, Plain, Ground>>>,
    by_name: HashMap<String, Entry<K>>,
}

/// Checks that the call failed and returned its value. Does not drop the value, so that no drop of
/// it is counted.
fn came_back(result: Result<(), Full<Plain>>, value: usize) -> Held {
    match result {
        Ok(()) => broken("it succeeds"),
        Err(full) => {
            let full = full.into_inner();
            let back = full.value();
            std::mem::forget(full);
            hold(back == value, "the value comes back")
        }
    }
}

impl<K: Key> KeySubject<K> {
    pub fn boxed(source: Ground) -> Box<Self> {
        let map = Some(Box::new(SlotMap::new_in(source)));
        Box::new(Self { map, by_name: HashMap::new() })
    }

    fn map(&mut self) -> Held<&mut SlotMap<K, Plain, Ground>> {
        self.map.as_deref_mut().ok_or(Broken::Why("the map has ended".into()))
    }
    fn entry(&self, name: &str) -> Held<&Entry<K>> {
        let entry = self.by_name.get(name);
        entry.ok_or_else(|| Broken::Why(format!("there is no key {name}")))
    }
    fn key(&self, l: &mut Line) -> Held<K> {
        Ok(self.entry(&l.word("a key")?)?.key)
    }
    fn at(&mut self, key: K) -> Held<*const Plain> {
        self.map()?.get(key).map(std::ptr::from_ref).ok_or(Broken::Why("it is gone".into()))
    }

    fn insert(&mut self, name: &str, value: usize) -> Held {
        let key = match self.map()?.try_insert(Plain::new(value)) {
            Ok(key) => key,
            Err(full) => {
                std::mem::forget(full);
                return Err(Broken::Refused);
            }
        };
        hold(!key.is_null(), "a key that was given is not null")?;
        let at = self.at(key)?;
        if !name.is_empty() {
            self.by_name.insert(name.into(), Entry { key, at });
        }
        Ok(())
    }
    fn fill(&mut self, value: usize) -> Held {
        loop {
            match self.insert("", value) {
                Ok(()) => {}
                Err(Broken::Refused) => return Ok(()),
                Err(other) => return Err(other),
            }
        }
    }
    fn reattach(&mut self, name: &str, value: usize) -> Held {
        let key = self.entry(name)?.key;
        hold(self.map()?.reattach(key, Plain::new(value)).is_ok(), "it was not detached")?;
        let at = self.at(key)?;
        self.by_name.insert(name.into(), Entry { key, at });
        Ok(())
    }
}

impl<K: Key> Subject for KeySubject<K> {
    fn run(&mut self, verb: &str, name: &str, l: &mut Line, state: &State) -> Held<bool> {
        match verb {
            "insert" => self.insert(name, l.number("a value", &state.named)?)?,
            "fill" => self.fill(l.number("a value", &state.named)?)?,
            "erase" => {
                let key = self.key(l)?;
                let detached = self.map()?.detached();
                let found = self.map()?.remove(key).is_some();
                hold(found || self.map()?.detached() < detached, "it was gone")?;
            }
            "remove" => {
                let key = self.key(l)?;
                hold(self.map()?.remove(key).is_some(), "it was gone")?;
            }
            "detach" => {
                let key = self.key(l)?;
                hold(self.map()?.detach(key).is_some(), "it was gone")?;
            }
            "reattach" => {
                let name = l.word("a key")?;
                self.reattach(&name, l.number("a value", &state.named)?)?;
            }
            "clear" => self.map()?.clear(),
            "end" => self.map = None,
            "move" => self.map = self.map.take().map(|map| Box::new(*map)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn refuses(&mut self, verb: &str, l: &mut Line, state: &State) -> Held<bool> {
        if verb == "insert" {
            let value = l.number("a value", &state.named)?;
            came_back(self.map()?.try_insert(Plain::new(value)).map(drop), value)?;
            return Ok(true);
        }
        let key = self.key(l)?;
        match verb {
            "erase" | "remove" => hold(self.map()?.remove(key).is_none(), "it was there")?,
            "detach" => hold(self.map()?.detach(key).is_none(), "it was there")?,
            "reattach" => came_back(self.map()?.reattach(key, Plain::new(1)), 1)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn throws(&mut self, verb: &str, l: &mut Line, state: &State) -> Held<bool> {
        hold(verb == "insert", &format!("{verb} makes nothing"))?;
        l.number("a value", &state.named)?;
        let map = self.map()?;
        Ok(catches_thrown(|| _ = map.insert_with_key(|_| throw::<Plain>())))
    }

    fn expect(&mut self, name: &str, is: &str, l: &mut Line, named: &Numbers) -> Held<bool> {
        let Entry { key, at } = *self.entry(name)?;
        match is {
            "holds" => {
                let value = l.number("a value", named)?;
                let found = self.map()?.get(key);
                hold(found.is_some_and(|element| element.value() == value), "")?;
                hold(self.at(key)? == at, "an element stays where it is")?;
            }
            "gone" => {
                let map = self.map()?;
                hold(map.get(key).is_none() && !map.contains_key(key), "")?;
            }
            "is" => {
                let other = l.take("not");
                hold((key == self.key(l)?) != other, "")?;
            }
            "in_place_of" => hold(key.index() == self.key(l)?.index(), "")?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn count(&mut self, name: &str) -> Option<usize> {
        match (name, &self.map) {
            ("live", Some(map)) => Some(map.len()),
            ("live", None) => Some(0),
            ("retired", Some(map)) => Some(map.retired()),
            ("met", Some(map)) => Some(map.iter().count()),
            _ => None,
        }
    }

    fn verify(&self) -> Held {
        let Some(map) = &self.map else { return Ok(()) };
        self.by_name.values().try_for_each(|entry| match map.get(entry.key) {
            Some(at) => hold(std::ptr::eq(at, entry.at), "an element stays where it is"),
            None => Ok(()),
        })
    }
}
