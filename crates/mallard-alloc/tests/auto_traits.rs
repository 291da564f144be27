//! Tests which types are `Send` and `Sync`. The last test searches the sources for public types
//! that are missing from the list.

use crate::common::public_types;
use mallard::{
    arena, handles, object_pool, secondary_map, shared_slot_map, slot_map, sync, typed_arena,
};
use mallard::{
    ArcPool, Arena, AsSource, Buffer, BySize, Checked, Counted, CountedPool, DefaultHeap, Failing,
    Fallback, Key64, Limited, Multipool, NoHooks, ObjectPool, Pool, RcPool, SecondaryMap,
    SharedArena, SharedSlotMap, SlotMap, SparseSecondaryMap, Synchronized, Traced, TypedArena,
};
use std::cell::Cell;

type NotSend = std::rc::Rc<u8>;
type NotSync = Cell<u8>;
/// A mode for several threads (`Many`), and the mode for one thread (`One`).
type Many = sync::Mutex;
type One = sync::Unshared;

/// Evaluates to whether a type implements a trait.
macro_rules! is {
    ($type:ty: $trait:ident) => {{
        #[allow(dead_code)]
        trait Otherwise {
            const IS: bool = false;
        }
        impl<T: ?Sized> Otherwise for T {}
        #[allow(dead_code)]
        struct Of<T: ?Sized>(std::marker::PhantomData<T>);
        #[allow(dead_code)]
        impl<T: ?Sized + $trait> Of<T> {
            const IS: bool = true;
        }
        <Of<$type>>::IS
    }};
}

macro_rules! check {
    ($($type:ty => $send:ident, $sync:ident;)*) => {$(
        assert_eq!(
            (is!($type: Send), is!($type: Sync)),
            (stringify!($send) == "send", stringify!($sync) == "sync"),
            "Send and Sync of {}",
            stringify!($type)
        );
    )*};
}

#[test]
fn an_allocator_for_one_thread_is_send_and_not_sync() {
    check! {
        Arena => send, no;
        Arena<&'static Arena> => no, no;
        arena::Mark => no, no;
        arena::Guard<'static> => no, no;
        arena::Scope<'static, 'static> => no, no;
        Buffer<'static> => send, no;
        Pool => send, no;
        Pool<One, &'static Arena> => no, no;
        Multipool => send, no;
        Multipool<&'static Arena> => no, no;
        TypedArena<u8> => send, no;
        TypedArena<NotSend> => no, no;
        TypedArena<u8, &'static Arena> => no, no;
        ObjectPool<u8> => send, no;
        ObjectPool<NotSync> => send, no;
        ObjectPool<NotSend> => no, no;
        ObjectPool<u8, One, &'static Arena> => no, no;
        ObjectPool<u8, One, DefaultHeap, LocalHooks> => no, no;
        RcPool<u8> => send, no;
        RcPool<NotSend> => no, no;
        CountedPool<u8, handles::Atomic> => send, no;
        Checked<Arena> => send, no;
    }
    #[cfg(target_os = "linux")]
    check! { mallard::FileArena => send, no; }
}

struct LocalHooks(#[allow(dead_code)] NotSend);
impl mallard::Hooks<u8> for LocalHooks {}

#[test]
fn an_allocator_for_several_threads_is_sync_if_its_values_allow() {
    check! {
        SharedArena => send, sync;
        SharedArena<Buffer<'static>> => send, sync; // the arena calls the source under a lock
        SharedArena<&'static Arena> => no, no;
        Pool<sync::Mutex> => send, sync;
        Pool<sync::LockFree> => send, sync;
        Pool<sync::ThreadCached> => send, sync;
        Pool<Many, Buffer<'static>> => send, no;
        ObjectPool<u8, sync::ThreadCached> => send, sync;
        ObjectPool<NotSync, Many> => send, sync; // each object belongs to only one box
        ObjectPool<NotSend, Many> => no, no;
        ObjectPool<u8, Many, Buffer<'static>> => send, no;
        ObjectPool<u8, Many, DefaultHeap, LocalHooks> => no, no;
        ArcPool<u8, Many> => send, sync;
        ArcPool<NotSync, Many> => send, sync;
        ArcPool<NotSend, Many> => no, no;
        ArcPool<u8, Many, Buffer<'static>> => send, no;
        SharedSlotMap<Key64, u8> => send, sync;
        SharedSlotMap<Key64, NotSync> => send, no;
        SharedSlotMap<Key64, NotSend> => no, no;
        SharedSlotMap<Key64, u8, shared_slot_map::Guarded, Buffer<'static>> => send, sync;
        SharedSlotMap<Key64, u8, shared_slot_map::Guarded, &'static Arena> => no, no;
        SharedSlotMap<Key64, u8, shared_slot_map::Copied> => send, sync;
        shared_slot_map::Guarded => send, sync;
        shared_slot_map::Copied => send, sync;
        shared_slot_map::Guard<'static, Key64, u8> => send, sync;
        shared_slot_map::Guard<'static, Key64, NotSync> => no, no;
        shared_slot_map::Guard<'static, Key64, NotSend> => no, no;
    }
    #[cfg(target_os = "linux")]
    check! {
        mallard::SharedMemory => send, sync;
        mallard::Pages => send, sync;
    }
}

#[test]
fn an_adaptor_is_send_and_sync_if_the_wrapped_allocator_is() {
    check! {
        AsSource<Arena> => send, no;
        AsSource<SharedArena> => send, sync;
        BySize<8, SharedArena, SharedArena> => send, sync;
        BySize<8, SharedArena, Arena> => send, no;
        Fallback<SharedArena, SharedArena> => send, sync;
        Fallback<Arena, SharedArena> => send, no;
        Counted<SharedArena> => send, no;
        mallard::CountingScope<'static> => no, no;
        Limited<SharedArena> => send, no;
        Failing<SharedArena> => send, no;
        Traced<SharedArena, fn(&mallard::Event)> => send, sync;
        Traced<Arena, fn(&mallard::Event)> => send, no;
        Traced<SharedArena, NotSend> => no, no;
        Synchronized<Arena> => send, sync;
        Synchronized<Arena, mallard::Spin> => send, sync;
        Synchronized<&'static Arena> => no, no;
        mallard::StdLock => send, sync;
        mallard::DefaultLock => send, sync;
        mallard::Spin => send, sync;
        mallard::SpinGuard<'static> => send, sync;
    }
}

#[test]
fn a_map_is_send_and_sync_if_a_vector_of_its_values_is() {
    check! {
        SlotMap<Key64, u8> => send, sync;
        SlotMap<Key64, NotSync> => send, no;
        SlotMap<Key64, NotSend> => no, no;
        SlotMap<Key64, u8, Buffer<'static>> => send, no;
        SecondaryMap<Key64, u8> => send, sync;
        SecondaryMap<Key64, NotSync> => send, no;
        SecondaryMap<Key64, NotSend> => no, no;
        SecondaryMap<Key64, u8, Buffer<'static>> => send, no;
        SparseSecondaryMap<Key64, u8> => send, sync;
        SparseSecondaryMap<Key64, NotSync> => send, no;
        SparseSecondaryMap<Key64, NotSend> => no, no;
        SparseSecondaryMap<Key64, u8, Buffer<'static>> => send, no;
    }
}

/// Checks that a borrowing iterator has the auto traits of a reference to the map, and that a
/// consuming iterator has those of the map.
#[test]
fn an_iterator_is_send_and_sync_if_an_iterator_of_a_vector_is() {
    macro_rules! lends {
        ($($(::$at:ident)* $name:ident;)*) => {$( check! {
            $($at::)*$name<'static, Key64, u8> => send, sync;
            $($at::)*$name<'static, Key64, NotSync> => no, no;
            $($at::)*$name<'static, Key64, NotSend> => no, no;
        } )*};
    }
    macro_rules! lends_exclusively {
        ($($(::$at:ident)* $name:ident;)*) => {$( check! {
            $($at::)*$name<'static, Key64, u8> => send, sync;
            $($at::)*$name<'static, Key64, NotSync> => send, no;
            $($at::)*$name<'static, Key64, NotSend> => no, no;
        } )*};
    }
    macro_rules! takes_out {
        ($($(::$at:ident)* $name:ident;)*) => {$( check! {
            $($at::)*$name<Key64, u8> => send, sync;
            $($at::)*$name<Key64, NotSync> => send, no;
            $($at::)*$name<Key64, NotSend> => no, no;
            $($at::)*$name<Key64, u8, Buffer<'static>> => send, no;
        } )*};
    }
    lends! { ::slot_map Iter; ::slot_map Keys; ::slot_map Values; ::secondary_map SparseIter; }
    lends_exclusively! {
        ::slot_map IterMut; ::slot_map ValuesMut; ::slot_map Drain;
        ::secondary_map SparseIterMut; ::secondary_map Drain; ::secondary_map SparseDrain;
    }
    takes_out! {
        ::slot_map IntoIter; ::slot_map IntoKeys; ::slot_map IntoValues;
        ::secondary_map IntoIter; ::secondary_map SparseIntoIter;
    }
    check! {
        slot_map::VacantEntry<'static, Key64, u8, DefaultHeap> => send, sync;
        slot_map::VacantEntry<'static, Key64, NotSend, DefaultHeap> => no, no;
        arena::IntoIter<'static, u8> => no, no;
        arena::IntoIter<'static, u8, SharedArena> => send, sync;
        arena::IntoIter<'static, NotSync, SharedArena> => send, no;
        arena::IntoIter<'static, NotSend, SharedArena> => no, no;
        // The iterators of a pool could implement these traits, but no user has asked for it.
        object_pool::Iter<'static, u8, One, DefaultHeap, NoHooks> => no, no;
        object_pool::IterMut<'static, u8, One, DefaultHeap, NoHooks> => no, no;
        typed_arena::IterMut<'static, u8> => no, no;
    }
    #[cfg(target_os = "linux")]
    check! { mallard::trace::Region<'static> => no, no; }
}

#[test]
fn a_handle_is_send_only_if_any_thread_may_call_its_pool() {
    check! {
        handles::Box<'static, u8> => no, sync;
        handles::Box<'static, u8, Many> => send, sync;
        handles::Box<'static, NotSync, Many> => send, no;
        handles::Box<'static, NotSend, Many> => no, no;
        handles::Box<'static, u8, Many, Buffer<'static>> => no, sync;
        handles::Box<'static, u8, Many, DefaultHeap, LocalHooks> => no, sync;
        handles::OwnedBox<u8> => no, no;
        handles::OwnedBox<u8, Many> => send, sync;
        handles::OwnedBox<NotSync, Many> => send, no;
        handles::OwnedBox<NotSend, Many> => no, no;
        handles::OwnedBox<u8, Many, Buffer<'static>> => no, no;
        handles::Rc<'static, u8> => no, no;
        handles::Rc<'static, u8, Many> => no, no;
        handles::Arc<'static, u8, Many> => send, sync;
        handles::Arc<'static, u8, One> => no, no;
        handles::Arc<'static, NotSync, Many> => no, no;
        handles::Arc<'static, NotSend, Many> => no, no;
        handles::Arc<'static, u8, Many, Buffer<'static>> => no, no;
        handles::Handle<'static, u8, handles::Local, Many, DefaultHeap> => no, no;
        handles::Weak<'static, u8> => no, no;
        handles::Weak<'static, u8, handles::Atomic, Many> => send, sync;
        handles::Weak<'static, NotSync, handles::Atomic, Many> => no, no;
        handles::Weak<'static, NotSend, handles::Atomic, Many> => no, no;
        handles::Local => send, no;
        handles::Atomic => send, sync;
        arena::Box<'static, u8> => no, no;
        arena::Box<'static, u8, SharedArena> => send, sync;
        arena::Box<'static, NotSync, SharedArena> => send, no;
        arena::Box<'static, NotSend, SharedArena> => no, no;
    }
}

#[test]
fn plain_values_are_send_and_sync() {
    check! {
        sync::Unshared => send, sync;
        sync::Mutex => send, sync;
        sync::LockFree => send, sync;
        sync::ThreadCached => send, sync;
        mallard::Key32 => send, sync;
        mallard::Key64 => send, sync;
        mallard::CallCounts => send, sync;
        mallard::Budget => send, sync;
        mallard::Growth => send, sync;
        mallard::Failures => send, sync;
        mallard::Statistics => send, sync;
        mallard::Validity => send, sync;
        mallard::DefaultHeap => send, sync;
        mallard::Null => send, sync;
        mallard::NoHooks => send, sync;
        mallard::Cause => send, sync;
        mallard::Full<u8> => send, sync;
        mallard::Full<NotSync> => send, no;
        mallard::Full<NotSend> => no, no;
        mallard::FaultKind => send, sync;
        // These types contain addresses.
        mallard::Chunk => no, no;
        mallard::Event => no, no;
        mallard::Fault<'static> => no, no;
        mallard::FaultyBlock => no, no;
    }
    #[cfg(feature = "tracing")]
    check! { mallard::TracingEvents => send, sync; }
    #[cfg(feature = "allocator-api2-02")]
    check! {
        mallard::allocator_api2_02::FromAllocator<u8> => send, sync;
        mallard::allocator_api2_02::FromAllocator<NotSend> => no, no;
    }
    #[cfg(target_os = "linux")]
    check! {
        mallard::SystemError => send, sync;
        mallard::FileAccess => send, sync;
        mallard::FileOptions => send, sync;
        mallard::FileStatistics => send, sync;
        mallard::Huge => send, sync;
        mallard::PagesOptions => send, sync;
    }
}

#[test]
#[cfg_attr(miri, ignore)] // Miri cannot read the source files
fn this_file_checks_send_and_sync_of_every_public_type() {
    let here = include_str!("auto_traits.rs").replace("\n", " ");
    for found in public_types() {
        let (path, in_macro) = match found.module {
            Some(module) => {
                (format!("{module}::{}", found.name), format!("::{module} {};", found.name))
            }
            None => (found.name.clone(), found.name.clone()),
        };
        let named = |text: &str| {
            here.match_indices(text).any(|(i, _)| {
                !here[i + text.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_')
            })
        };
        assert!(named(&path) || named(&in_macro), "{path} of {} is not checked", found.file);
    }
}
