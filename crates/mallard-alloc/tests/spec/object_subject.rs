//! Runs the test programs of `spec/` on an `ObjectPool`, `RcPool` or `ArcPool` and its handles.

use super::element::{catches_thrown, throw, Element};
use super::ground::Ground;
use super::line::{broken, hold, Broken, Held, Line, Numbers};
use super::subject::{State, Subject};
use mallard::handles::{Box as ObjectBox, Counts, Handle, Weak};
use mallard::sync::Mode;
use mallard::{CountedPool, Full, ObjectPool};
use std::collections::HashMap;
use std::ptr::NonNull;

/// The methods of all object pools, and the methods that only some of them have. The handles borrow
/// a pool for the lifetime 'static, so the caller must ensure that the pool outlives them.
pub trait Pool: Sized + 'static {
    type Object: Element;
    type Handle: 'static;
    type Watcher: 'static;

    fn try_make(&'static self, value: Self::Object) -> Result<Self::Handle, Full<Self::Object>>;
    fn make_with(&'static self, f: fn() -> Self::Object) -> Self::Handle;
    fn place(handle: &Self::Handle) -> *const Self::Object;
    fn share(_: &Self::Handle) -> Option<Self::Handle> {
        None
    }
    fn watch(_: &Self::Handle) -> Option<Self::Watcher> {
        None
    }
    fn lock(_: &Self::Watcher) -> Option<Self::Handle> {
        None
    }
    fn clear(&mut self);
    fn release(&mut self);
    fn trim(&mut self, keep: usize);
    fn len(&self) -> usize;
    fn met(&mut self) -> usize;
}

macro_rules! same_in_all_pools {
    () => {
        fn try_make(&'static self, value: T) -> Result<Self::Handle, Full<T>> {
            self.try_make(value)
        }
        fn make_with(&'static self, f: fn() -> T) -> Self::Handle {
            self.make_with(f)
        }
        fn clear(&mut self) {
            self.clear();
        }
        fn release(&mut self) {
            self.release();
        }
        fn trim(&mut self, keep: usize) {
            self.trim(keep);
        }
        fn len(&self) -> usize {
            self.len()
        }
        fn met(&mut self) -> usize {
            self.iter().count()
        }
    };
}

impl<T: Element, M: Mode + 'static> Pool for ObjectPool<T, M, Ground> {
    type Object = T;
    type Handle = ObjectBox<'static, T, M, Ground>;
    type Watcher = std::convert::Infallible;

    fn place(handle: &Self::Handle) -> *const T {
        ObjectBox::as_ptr(handle).as_ptr()
    }
    same_in_all_pools!();
}

impl<T: Element, C: Counts + 'static, M: Mode + 'static> Pool for CountedPool<T, C, M, Ground> {
    type Object = T;
    type Handle = Handle<'static, T, C, M, Ground>;
    type Watcher = Weak<'static, T, C, M, Ground>;

    fn place(handle: &Self::Handle) -> *const T {
        Handle::as_ptr(handle).as_ptr()
    }
    fn share(handle: &Self::Handle) -> Option<Self::Handle> {
        Some(Handle::clone(handle))
    }
    fn watch(handle: &Self::Handle) -> Option<Self::Watcher> {
        Some(Handle::downgrade(handle))
    }
    fn lock(watcher: &Self::Watcher) -> Option<Self::Handle> {
        watcher.upgrade()
    }
    same_in_all_pools!();
}

pub struct ObjectSubject<P: Pool> {
    /// A pool in a `Box`. Its handles are forgotten (`mem::forget`) before the pool is dropped or
    /// borrowed exclusively.
    pool: Option<NonNull<P>>,
    handles: HashMap<String, P::Handle>,
    without_name: Vec<P::Handle>,
    watchers: HashMap<String, P::Watcher>,
    places: HashMap<String, *const P::Object>,
}

impl<P: Pool> Drop for ObjectSubject<P> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<P: Pool> ObjectSubject<P> {
    pub fn boxed(pool: P) -> Box<Self> {
        Box::new(Self {
            pool: Some(NonNull::from(Box::leak(Box::new(pool)))),
            handles: HashMap::new(),
            without_name: Vec::new(),
            watchers: HashMap::new(),
            places: HashMap::new(),
        })
    }

    fn raw(&self) -> Held<NonNull<P>> {
        self.pool.ok_or(Broken::Why("the pool has ended".into()))
    }
    fn pool(&self) -> Held<&'static P> {
        // SAFETY: the pool stays alive until `end`, which forgets all handles before it drops the
        // pool.
        Ok(unsafe { self.raw()?.as_ref() })
    }
    /// Forgets all handles (`mem::forget`), and returns exclusive access to the pool.
    fn pool_alone(&mut self) -> Held<&mut P> {
        self.let_go();
        // SAFETY: nothing borrows the pool any more.
        Ok(unsafe { self.raw()?.as_mut() })
    }
    fn let_go(&mut self) {
        self.watchers.clear();
        self.handles.drain().for_each(|(_, handle)| std::mem::forget(handle));
        self.without_name.drain(..).for_each(std::mem::forget);
    }
    fn end(&mut self) {
        self.let_go();
        if let Some(pool) = self.pool.take() {
            // SAFETY: the pool is from a `Box`, and nothing borrows it any more.
            drop(unsafe { Box::from_raw(pool.as_ptr()) });
        }
    }
    /// Moves the pool to another address, because handles must not contain the address of the pool
    /// object.
    fn relocate(&mut self) -> Held {
        // SAFETY: the pool is from a `Box`, and handles do not borrow the `Box` itself.
        let pool = *unsafe { Box::from_raw(self.raw()?.as_ptr()) };
        self.pool = Some(NonNull::from(Box::leak(Box::new(pool))));
        Ok(())
    }

    fn keep(&mut self, name: &str, handle: P::Handle) -> Held {
        if name.is_empty() {
            self.without_name.push(handle);
            return Ok(());
        }
        self.places.insert(name.into(), P::place(&handle));
        let before = self.handles.insert(name.into(), handle);
        hold(before.is_none(), &format!("{name} is in use"))
    }
    fn make(&mut self, name: &str, value: usize) -> Held {
        match self.pool()?.try_make(P::Object::new(value)) {
            Ok(handle) => self.keep(name, handle),
            Err(full) => {
                std::mem::forget(full); // dropping this value must not count as a drop by the pool
                Err(Broken::Refused)
            }
        }
    }
    fn fill(&mut self, value: usize) -> Held {
        loop {
            match self.make("", value) {
                Ok(()) => {}
                Err(Broken::Refused) => return Ok(()),
                Err(other) => return Err(other),
            }
        }
    }
    fn handle(&self, l: &mut Line) -> Held<&P::Handle> {
        let name = l.word("a handle")?;
        self.handles.get(&name).ok_or_else(|| Broken::Why(format!("there is no handle {name}")))
    }
    fn take(&mut self, l: &mut Line) -> Held<P::Handle> {
        let name = l.word("a handle")?;
        let handle = self.handles.remove(&name);
        handle.ok_or_else(|| Broken::Why(format!("there is no handle {name}")))
    }
    fn lock(&self, l: &mut Line) -> Held<Option<P::Handle>> {
        let name = l.word("a watcher")?;
        match self.watchers.get(&name) {
            Some(watcher) => Ok(P::lock(watcher)),
            None => broken(format!("there is no watcher {name}")),
        }
    }
    fn place(&self, name: &str) -> Held<*const P::Object> {
        let place = self.places.get(name).copied();
        place.ok_or_else(|| Broken::Why(format!("there is no {name}")))
    }
}

fn of_shared<T>(handle: Option<T>) -> Held<T> {
    handle.ok_or(Broken::Why("boxes do not share".into()))
}

impl<P: Pool> Subject for ObjectSubject<P> {
    fn run(&mut self, verb: &str, name: &str, l: &mut Line, state: &State) -> Held<bool> {
        match verb {
            "make" => self.make(name, l.number("a value", &state.named)?)?,
            "fill" => self.fill(l.number("a value", &state.named)?)?,
            "free" => drop(self.take(l)?),
            "leak" => std::mem::forget(self.take(l)?),
            "clear" => self.pool_alone()?.clear(),
            "release" => self.pool_alone()?.release(),
            "end" => self.end(),
            "trim" => {
                let keep = l.number("bytes to keep", &state.named)?;
                // SAFETY: the memory that handles borrow is not in the pool object, and stays in place.
                unsafe { self.raw()?.as_mut() }.trim(keep);
            }
            "move" => self.relocate()?,
            "share" => {
                let handle = of_shared(P::share(self.handle(l)?))?;
                self.keep(name, handle)?;
            }
            "watch" => {
                let watcher = of_shared(P::watch(self.handle(l)?))?;
                self.watchers.insert(name.into(), watcher);
            }
            "lock" => {
                let handle = self.lock(l)?.ok_or(Broken::Why("the object is dead".into()))?;
                self.keep(name, handle)?;
            }
            "unwatch" => {
                let found = self.watchers.remove(&l.word("a watcher")?);
                hold(found.is_some(), "there is no such watcher")?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn refuses(&mut self, verb: &str, l: &mut Line, state: &State) -> Held<bool> {
        match verb {
            "make" => {
                let value = l.number("a value", &state.named)?;
                let Err(full) = self.pool()?.try_make(P::Object::new(value)) else {
                    return broken("try_make gives an object");
                };
                let full = full.into_inner();
                let back = full.value();
                std::mem::forget(full);
                hold(back == value, "the value comes back")?;
            }
            "lock" => hold(self.lock(l)?.is_none(), "lock gives an owner")?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn throws(&mut self, verb: &str, l: &mut Line, state: &State) -> Held<bool> {
        hold(verb == "make", &format!("{verb} makes nothing"))?;
        l.number("a value", &state.named)?;
        let pool = self.pool()?;
        Ok(catches_thrown(|| drop(pool.make_with(throw))))
    }

    fn expect(&mut self, name: &str, is: &str, l: &mut Line, named: &Numbers) -> Held<bool> {
        let at = self.place(name)?;
        match is {
            "holds" => {
                let handle = self.handles.get(name);
                let handle = handle.ok_or_else(|| Broken::Why(format!("{name} is no more")))?;
                hold(P::place(handle) == at, "an object stays where it is")?;
                // SAFETY: the object has a handle, so the object is alive, and nothing else uses it.
                let value = unsafe { (*at).value() };
                hold(value == l.number("a value", named)?, "")?;
            }
            "aligned" => hold(at.addr() % l.number("an alignment", named)? == 0, "")?,
            "is" => {
                let other = l.take("not");
                hold((at == self.place(&l.word("a handle")?)?) != other, "")?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn count(&mut self, name: &str) -> Option<usize> {
        match (name, self.pool()) {
            ("live", Ok(pool)) => Some(pool.len()),
            ("live", Err(_)) => Some(0),
            // SAFETY: the pool is borrowed only for counting, and nothing uses the objects.
            ("met", Ok(_)) => Some(unsafe { self.pool?.as_mut() }.met()),
            _ => None,
        }
    }

    fn verify(&self) -> Held {
        Ok(())
    }
}
