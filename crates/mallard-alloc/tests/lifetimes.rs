//! Tests the variance of each parameter of each public type, and whether the data that a value
//! borrows must outlive the value.

use crate::common::public_types;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Each line is `type; variance; drop`. `%` is the lifetime that is tested, and `@` is a type with
/// that lifetime:
/// - `+` means covariant, like `&'% u8`. `0` means invariant, like `Cell`. No type is
///   contravariant.
/// - `strict` means that borrowed data must outlive the value, because its destructor may use them.
///   `of T` means that they must only if the destructor of `@` uses the data. `free` means that the
///   destructor uses no borrowed data.
const TYPES: &str = "
    Arena<Buffer<'%>>; +; strict
    SharedArena<Buffer<'%>>; 0; strict
    TypedArena<@>; 0; of T
    TypedArena<u8, Buffer<'%>>; +; strict
    Multipool<Buffer<'%>>; +; strict
    Pool<Unshared, Buffer<'%>>; 0; strict
    ObjectPool<@>; 0; strict
    ObjectPool<u8, Unshared, Buffer<'%>>; 0; strict
    ObjectPool<u8, Unshared, DefaultHeap, Hook<'%>>; 0; strict
    CountedPool<@, Local>; 0; strict
    CountedPool<@, Atomic, Mutex>; 0; strict
    CountedPool<u8, Local, Unshared, Buffer<'%>>; 0; strict
    SlotMap<Key64, @>; +; strict
    SlotMap<Key64, u8, Buffer<'%>>; +; strict
    SecondaryMap<Key64, @>; +; strict
    SecondaryMap<Key64, u8, Buffer<'%>>; +; strict
    SparseSecondaryMap<Key64, @>; +; strict
    SparseSecondaryMap<Key64, u8, Buffer<'%>>; +; strict
    SharedSlotMap<Key64, @>; 0; strict
    SharedSlotMap<Key64, u8, Guarded, Buffer<'%>>; 0; strict
    Buffer<'%>; +; free
    Full<@>; +; of T
    Fault<'%>; +; free

    AsSource<Arena<Buffer<'%>>>; +; strict
    BySize<8, Arena<Buffer<'%>>, Arena>; +; strict
    BySize<8, Arena, Arena<Buffer<'%>>>; +; strict
    Fallback<Arena<Buffer<'%>>, Arena>; +; strict
    Fallback<Arena, Arena<Buffer<'%>>>; +; strict
    Counted<Arena<Buffer<'%>>>; +; strict
    CountingScope<'%>; +; strict
    Limited<Arena<Buffer<'%>>>; +; strict
    Failing<Arena<Buffer<'%>>>; +; strict
    Failing<u8, @>; +; of T
    Traced<Arena<Buffer<'%>>, u8>; +; strict
    Traced<u8, @>; +; of T
    Checked<Arena<Buffer<'%>>>; +; strict
    Synchronized<Arena<Buffer<'%>>>; +; strict
    SpinGuard<'%>; +; strict
    Region<'%>; +; strict

    arena::Box<'%, u8>; +; strict
    arena::Box<'static, @>; +; strict
    arena::Box<'%, u8, Arena<Buffer<'%>>>; +; strict
    arena::IntoIter<'%, u8>; +; strict
    arena::IntoIter<'static, @>; +; strict
    arena::Guard<'%>; +; strict
    arena::Guard<'%, Buffer<'%>>; +; strict
    arena::Scope<'%, 'static>; +; free
    arena::Scope<'%, '%>; 0; free

    handles::Box<'%, u8>; +; strict
    handles::Box<'static, @>; 0; strict
    handles::Box<'%, u8, Unshared, Buffer<'%>>; +; strict
    handles::Box<'%, u8, Unshared, DefaultHeap, Hook<'%>>; +; strict
    handles::OwnedBox<@>; 0; strict
    handles::OwnedBox<u8, Unshared, Buffer<'%>>; 0; strict
    handles::Handle<'%, u8, Local, Unshared, DefaultHeap>; +; strict
    handles::Handle<'static, @, Local, Unshared, DefaultHeap>; 0; strict
    handles::Handle<'%, u8, Local, Unshared, Buffer<'%>>; +; strict
    handles::Weak<'%, u8>; +; strict
    handles::Weak<'static, @>; 0; strict
    handles::Weak<'%, u8, Local, Unshared, Buffer<'%>>; +; strict

    object_pool::Iter<'%, u8, Unshared, DefaultHeap, NoHooks>; +; free
    object_pool::Iter<'%, @, Unshared, DefaultHeap, NoHooks>; +; free
    object_pool::IterMut<'%, u8, Unshared, DefaultHeap, NoHooks>; +; free
    object_pool::IterMut<'%, @, Unshared, DefaultHeap, NoHooks>; 0; free
    typed_arena::IterMut<'%, u8>; +; free
    typed_arena::IterMut<'%, @>; 0; free
    slot_map::Iter<'%, Key64, @>; +; free
    slot_map::Keys<'%, Key64, @>; +; free
    slot_map::Values<'%, Key64, @>; +; free
    slot_map::IterMut<'%, Key64, u8>; +; free
    slot_map::IterMut<'%, Key64, @>; 0; free
    slot_map::ValuesMut<'%, Key64, u8>; +; free
    slot_map::ValuesMut<'%, Key64, @>; 0; free
    slot_map::Drain<'%, Key64, u8>; +; strict
    slot_map::Drain<'%, Key64, @>; 0; strict
    slot_map::VacantEntry<'%, Key64, u8, DefaultHeap>; +; free
    slot_map::VacantEntry<'%, Key64, @, DefaultHeap>; 0; free
    slot_map::IntoIter<Key64, @>; +; strict
    slot_map::IntoKeys<Key64, @>; +; strict
    slot_map::IntoValues<Key64, @>; +; strict
    secondary_map::Drain<'%, Key64, u8>; +; strict
    secondary_map::Drain<'%, Key64, @>; 0; strict
    secondary_map::IntoIter<Key64, @>; +; strict
    secondary_map::SparseIter<'%, Key64, @>; +; free
    secondary_map::SparseIterMut<'%, Key64, u8>; +; free
    secondary_map::SparseIterMut<'%, Key64, @>; 0; free
    secondary_map::SparseDrain<'%, Key64, u8>; +; strict
    secondary_map::SparseDrain<'%, Key64, @>; 0; strict
    secondary_map::SparseIntoIter<Key64, @>; +; strict
    shared_slot_map::Guard<'%, Key64, u8>; +; strict
    shared_slot_map::Guard<'%, Key64, @>; 0; strict
";

const PRELUDE: &str = "#![allow(unused)]
use mallard::handles::{self, Atomic, Local}; use mallard::shared_slot_map::{self, Guarded};
use mallard::sync::{Mutex, Unshared}; use mallard::trace::Region; use mallard::*;
pub struct Hook<'h>(&'h u8); impl<T: ?Sized> Hooks<T> for Hook<'_> {}
pub struct Noisy<'n>(&'n u8); impl Drop for Noisy<'_> { fn drop(&mut self) { println!(\"{}\", self.0); } }
";

/// A test program with one function per line, and the lines that the compiler must reject.
#[derive(Default)]
struct Program {
    text: String,
    refused: BTreeSet<usize>,
    lines: Vec<String>,
}

impl Program {
    fn add(&mut self, what: &str, function: &str, accepted: bool) {
        self.lines.push(what.to_owned());
        if !accepted {
            self.refused.insert(self.lines.len());
        }
        writeln!(self.text, "{function}").unwrap();
    }

    fn add_type(&mut self, row: &str) {
        let [name, variance, end] = row.split("; ").collect::<Vec<_>>()[..] else {
            panic!("{row}")
        };
        let n = self.lines.len();
        let of = |life: &str| name.replace('@', "&'% u8").replace('%', life);
        let becomes =
            |from, to| format!("pub fn f{n}<'l: 's, 's>(x: {}) -> {} {{ x }}", of(from), of(to));
        self.add(&format!("{name}: shorter"), &becomes("l", "s"), variance == "+");
        let longer = becomes("s", "l").replace("pub fn f", "pub fn g");
        self.add(&format!("{name}: longer"), &longer, false);
        let mut ends_later = |held: &str, accepted| {
            let n = self.lines.len();
            let held_type = name.replace('@', held);
            let function = format!(
                "fn m{n}<'x>(_: &'x u8) -> {} {{ loop {{}} }} \
                 pub fn e{n}() {{ let value; let borrowed = 1; value = m{n}(&borrowed); }}",
                held_type.replace('%', "x")
            );
            self.add(&format!("{held_type}: may end after what it borrows"), &function, accepted);
        };
        ends_later("&'% u8", end != "strict");
        if name.contains('@') {
            ends_later("Noisy<'%>", end == "free");
        }
    }
}

/// Returns the lines in which `cargo check` finds an error.
fn refused(text: &str) -> BTreeSet<usize> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let project = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lifetimes");
    std::fs::create_dir_all(project.join("src")).unwrap();
    let manifest = format!(
        "[package]\nname = \"lifetimes\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n\
         [dependencies]\nmallard-alloc = {{ path = {here:?} }}\n"
    );
    std::fs::write(project.join("Cargo.toml"), manifest).unwrap();
    for lock in ["../../Cargo.lock", "Cargo.lock"] {
        let _ = std::fs::copy(here.join(lock), project.join("Cargo.lock"));
    }
    std::fs::write(project.join("src/lib.rs"), text).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["check", "--offline", "--message-format", "short"]).current_dir(&project);
    cargo.env("CARGO_TARGET_DIR", project.join("target")).env_remove("RUSTFLAGS");
    let output = cargo.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let mut lines = BTreeSet::new();
    for line in said.lines().filter(|line| line.starts_with("src/lib.rs:")) {
        let number = line.split(':').nth(1).unwrap().parse::<usize>().unwrap();
        assert!(!line.contains("E0107") && !line.contains("E0277"), "{line}");
        lines.insert(number - PRELUDE.lines().count());
    }
    assert!(!lines.is_empty(), "{said}");
    lines
}

fn rows() -> impl Iterator<Item = &'static str> {
    TYPES.lines().map(str::trim).filter(|row| !row.is_empty())
}

#[test]
#[cfg_attr(miri, ignore)] // Miri cannot run the compiler
fn lifetimes_reject_invalid_programs_and_accept_valid_ones() {
    let mut program = Program { text: PRELUDE.into(), ..Program::default() };
    rows().for_each(|row| program.add_type(row));
    let refused = refused(&program.text);
    let names = |lines: BTreeSet<usize>| -> Vec<String> {
        lines.into_iter().map(|line| program.lines[line - 1].clone()).collect()
    };
    let unsound = names(&program.refused - &refused);
    assert!(unsound.is_empty(), "accepted, and must not be: {unsound:#?}");
    let too_strict = names(&refused - &program.refused);
    assert!(too_strict.is_empty(), "refused, and need not be: {too_strict:#?}");
}

#[test]
#[cfg_attr(miri, ignore)] // Miri cannot read the source files
fn this_file_checks_the_lifetimes_of_every_generic_public_type() {
    for found in public_types().into_iter().filter(|found| found.is_generic) {
        let path = found.module.map_or(String::new(), |module| format!("{module}::")) + &found.name;
        let path = path.replace("sync::", "") + "<";
        if path != "FromAllocator<" {
            assert!(rows().any(|row| row.starts_with(&path)), "{path} of {}", found.file);
        }
    }
}
