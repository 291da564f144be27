// In a visit, a thread returns the free blocks of another thread, which sleeps, to their slabs.
//
// There are two kinds of visits. `visit_if_much_is_waiting` splices the remote frees in a thread's
// inbox into the thread's slabs, but does not use the thread's free lists. `visit_threads` takes
// the blocks of the free lists, too.
//
// A thread uses the lists of its own cache in every call, without a lock. Nevertheless, a visitor
// (another thread that wants the blocks) can take the lists, at no cost in the fast path of the
// visited thread:
//
//   1. The visitor makes the thread use `visited_thread_cache`, whose lists are empty, and sets
//      `wanted` in the thread's own cache. All threads run a barrier. From now on the thread begins
//      no operation on its lists before `resume_after_visit`, which waits for the visitor. But an
//      operation that had begun before may still be under way.
//   2. The visitor removes the heads of all lists. All threads run a barrier again.
//   3. An operation changes `room` first, then reads the head, then writes a new head. If an
//      operation read a head before the visitor removed that head, the visitor now sees a sign of
//      the operation, because `room` plus the number of blocks is not `limit`, or the list has a
//      head again. Such a list is in doubt. In `resume_after_visit`, its thread puts the removed
//      blocks back, unless the operation has stored them in the list again. The blocks of all other
//      lists belong to the visitor. (If the second barrier fails, the removed blocks are lost.)
//
// tests/models/engine_visit.pml and engine_lists.pml model this protocol for Spin.
#pragma once

#include "thread_cache.hpp"

namespace mallard::engine {

enum class visited {
    idle, ///< threads that entered no slow path since the last visit
    all,  ///< all threads that are not in a slow path right now
};
/// Returns the free blocks of other threads to their slabs. The calling thread may be in a slow
/// path.
void visit_threads(visited which) noexcept;
/// Visits idle threads, unless this function did so in the last 250 ms.
void visit_threads_soon() noexcept;

/// Counts `bytes` bytes of remote frees that were sent to the inbox of `to`. Each time that another
/// MiB of remote frees has arrived, checks whether the thread of `to` is idle. If that thread is
/// idle, splices the blocks into their slabs for that thread.
void visit_if_much_is_waiting(thread_cache& to, std::size_t bytes) noexcept;

} // namespace mallard::engine
