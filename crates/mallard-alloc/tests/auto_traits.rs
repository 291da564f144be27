//! Which types may go to another thread, and which may be used by several at a time.

use mallard::handles::{Arc, Box, Rc};
use mallard::{sync, Arena, Buffer, Key64, Multipool, ObjectPool, Pool, SecondaryMap};
use mallard::{SharedArena, SharedSlotMap, SlotMap, TypedArena};
use std::cell::Cell;

/// Whether a type is of a trait.
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
fn an_allocator_for_one_thread_may_move_to_another_and_is_not_shared() {
    check! {
        Arena => send, no;
        Buffer<'static> => send, no;
        Pool => send, no;
        Multipool => send, no;
        TypedArena<u8> => send, no;
        TypedArena<std::rc::Rc<u8>> => no, no;
        ObjectPool<u8> => send, no;
        ObjectPool<std::rc::Rc<u8>> => no, no;
    }
    #[cfg(target_os = "linux")]
    check! { mallard::FileArena => send, no; }
}

#[test]
fn an_allocator_for_several_threads_is_shared_as_far_as_its_values_allow() {
    check! {
        SharedArena => send, sync;
        Pool<sync::Mutex> => send, sync;
        Pool<sync::LockFree> => send, sync;
        Pool<sync::ThreadCached> => send, sync;
        ObjectPool<u8, sync::ThreadCached> => send, sync;
        ObjectPool<std::rc::Rc<u8>, sync::ThreadCached> => no, no;
        SharedSlotMap<Key64, u8> => send, sync;
        SharedSlotMap<Key64, Cell<u8>> => send, no;
        SharedSlotMap<Key64, std::rc::Rc<u8>> => no, no;
    }
    #[cfg(target_os = "linux")]
    check! {
        mallard::SharedMemory => send, sync;
        mallard::Pages => send, sync;
    }
}

#[test]
fn a_map_is_what_a_vector_of_its_values_is() {
    check! {
        SlotMap<Key64, u8> => send, sync;
        SlotMap<Key64, Cell<u8>> => send, no;
        SlotMap<Key64, std::rc::Rc<u8>> => no, no;
        SecondaryMap<Key64, u8> => send, sync;
        SecondaryMap<Key64, Cell<u8>> => send, no;
        SecondaryMap<Key64, std::rc::Rc<u8>> => no, no;
    }
}

#[test]
fn a_handle_goes_to_another_thread_only_if_its_pool_may_be_called_there() {
    check! {
        Box<'static, u8> => no, sync;
        Box<'static, u8, sync::Mutex> => send, sync;
        Box<'static, Cell<u8>, sync::Mutex> => send, no;
        Rc<'static, u8> => no, no;
        Arc<'static, u8, sync::Mutex> => send, sync;
        Arc<'static, Cell<u8>, sync::Mutex> => no, no;
        mallard::arena::Box<'static, u8> => no, no;
        mallard::arena::Box<'static, u8, SharedArena> => send, sync;
    }
}
