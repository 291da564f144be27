//! Tests which types of this crate are `Send` and `Sync`.
#![cfg(mallard_engine)]

use mallard_malloc::{
    AnyThread, ClassStatistics, Heap, HeapStatistics, Limits, Mallard, OneThread, SharedHeap,
    Statistics,
};

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

#[test]
fn every_type_is_sync_except_a_heap_of_one_thread() {
    assert!(is!(Heap: Send) && !is!(Heap: Sync));
    assert!(is!(SharedHeap: Send) && is!(SharedHeap: Sync));
    macro_rules! for_all_threads {
        ($($type:ty),*) => { $(assert!(is!($type: Send) && is!($type: Sync), stringify!($type));)* };
    }
    for_all_threads!(
        Mallard,
        Limits,
        Statistics,
        ClassStatistics,
        HeapStatistics,
        OneThread,
        AnyThread
    );
}
