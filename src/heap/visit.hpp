// Visits: a thread returns the free blocks of another thread that sleeps.
//
// There are two kinds. `visit_if_much_is_waiting` splices the messages in a thread's inbox (remote
// frees) into the thread's slabs; it does not touch the thread's lists. `visit_threads` takes the
// lists, too.
//
// A thread uses the lists of its own cache in every call, without a lock. A visitor, a thread that
// wants the blocks, can take the lists all the same. The fast path of the visited thread pays
// nothing for that:
//
//   1. The visitor makes the thread use `visited_thread_cache`, whose lists are empty, and marks
//      the thread's own cache as wanted. All threads run a barrier. From now on the thread begins
//      no operation on its lists before `resume_after_visit`, which waits for the visitor. But an
//      operation that had begun before may still be under way.
//   2. The visitor takes the heads of all lists. All threads run a barrier again.
//   3. An operation changes `room` first, then reads the head, then writes a new head. If an
//      operation read a head before the visitor took that head, the visitor now sees a sign of
//      the operation: `room` plus the number of blocks is not `limit`, or the list has a head
//      again. Such a list is in doubt: in `resume_after_visit` its thread puts the taken blocks
//      back, unless the operation has stored them in the list again. The blocks of all other lists
//      belong to the visitor. (If the system refuses the second barrier, the taken blocks are
//      lost.)
//
// tests/models/engine_visit.pml and engine_lists.pml model this protocol for Spin.
#pragma once

#include "thread_cache.hpp"

namespace mallard::engine {

enum class visited {
    idle, ///< threads that were in no slow path since the last visit
    all,  ///< all threads that are not in a slow path right now
};
/// Takes free blocks from the caches and lists of other threads, and returns the blocks to their
/// slabs. The caller may be in a slow path of its own cache.
void visit_threads(visited which) noexcept;
/// Visits idle threads, unless a thread did so in the last 250 ms.
void visit_threads_soon() noexcept;

/// Counts a message of `bytes` that was sent to `to`. Each time that another MiB has piled up in
/// the inbox, splices the messages for the thread, if the thread is idle.
void visit_if_much_is_waiting(thread_cache& to, std::size_t bytes) noexcept;

} // namespace mallard::engine
