// Visits: a thread returns the free blocks of another thread that sleeps.
//
// There are two kinds. `visit_if_much_is_waiting` splices messages into the slabs of a thread that
// is not in a slow path; it does not touch the thread's lists. `visit_threads` takes the lists,
// too.
//
// In every call a thread uses the lists of its own cache without a lock, and no other thread uses
// them. A visitor, a thread that wants the blocks, can still take these lists, and only the slow
// paths of the visited thread pay for that:
//
//   1. The visitor shows the thread `visited_thread_cache`, whose lists are empty, in place of its
//      own cache, and marks the cache as wanted. All threads run a barrier. From now on the thread
//      begins no operation on its lists before `resume_after_visit`, which waits for the visitor.
//      Only an operation that was interrupted in the middle can still go on.
//   2. The visitor takes the heads of all lists. All threads run a barrier again.
//   3. An operation changes `room` first, then reads the head. Suppose that the operation read a
//      head before the visitor took that head. Then the visitor now sees that `room` plus the
//      number of blocks is not `limit`, or that the list has a head again. Such a list is in doubt,
//      and its thread decides in `resume_after_visit`. All other lists belong to the visitor. (If
//      the system refuses the second barrier, the taken blocks are lost.)
//
// tests/models/engine_visit.pml and engine_lists.pml model this protocol for Spin.
#pragma once

#include "thread_cache.hpp"

namespace mallard::engine {

enum class visited {
    idle, ///< threads that were in no slow path since the last visit
    all,  ///< all threads that are not in a slow path right now
};
/// Takes the free blocks of other threads, including their lists, and returns them. The caller may
/// be in a slow path of its own cache.
void visit_threads(visited which) noexcept;
/// Visits idle threads, unless a thread did so in the last 250 ms.
void visit_threads_soon() noexcept;

/// Counts a message of `bytes` that was sent to `to`. Each time that another MiB waits in the
/// inbox, splices the messages if the thread is idle.
void visit_if_much_is_waiting(thread_cache& to, std::size_t bytes) noexcept;

} // namespace mallard::engine
