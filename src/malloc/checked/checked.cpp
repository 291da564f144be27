// The checked malloc finds double frees, overruns, leaks and mismatched calls. Each call locks one
// lock, and calls the adaptor `checked`, which calls the engine:
//
//     malloc -> malloc.cpp -> checked_requests -> checked -> engine
//                                                    \-> records, in separate mappings
//
// Heaps (mallard/heap.hpp) are not checked.
#include "backend.hpp"

#include "../options.hpp"

#include "../../heap/fork.hpp"
#include "../../heap/guests.hpp"
#include "../../heap/heap.hpp"
#include "../../heap/misuse.hpp"
#include "../../heap/requests.hpp"

#include <mallard/debug/checked.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <utility>

#include <dlfcn.h>
#include <pthread.h>

namespace mallard {
namespace {

/// The source from which `checked` allocates blocks with their redzones. The source is the engine.
struct engine_blocks {
    static chunk try_take(layout l) noexcept
    {
        return {engine::allocate_aligned(l.bytes, l.align), l.bytes, l.align};
    }
    static void give(chunk c) noexcept { engine::deallocate(c.data); }
};

/// The source from which `checked` allocates memory for its records. This memory is in dedicated
/// mappings, far from any block. If a mapping fails (limited address space, seccomp), the memory is
/// a block of the engine.
struct own_mappings {
    static chunk try_take(layout l) noexcept
    {
        void* at = os::map(l.bytes);
        if (at == nullptr && l.bytes <= engine::block_bytes_max)
            at = engine::allocate_aligned(l.bytes, l.align);
        return {at, l.bytes, l.align};
    }
    static void give(chunk c) noexcept
    {
        if (engine::reservation_of(c.data) != nullptr)
            engine::deallocate(c.data);
        else
            os::unmap(static_cast<std::byte*>(c.data), c.bytes);
    }
};

constexpr checked_options options{.quarantine = std::size_t{16} << 20, .frames = 8};
using checked_engine = checked<engine_blocks, options, own_mappings>;

constinit os::lock one_at_a_time;
/// The lock for guests, which are threads that call malloc or free while another thread forks (see
/// src/heap/guests.hpp).
constinit os::lock guests;

const void* module_of(const void* address) noexcept
{
    Dl_info info{};
    return ::dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

/// Removes the innermost frames of a call stack, as far as they are in this library. The result may
/// be empty.
call_stack calls_of_program(call_stack s) noexcept
{
    while (!s.calls.empty() && module_of(s.calls.front()) == module_of(&one_at_a_time))
        s.calls = s.calls.subspan(1);
    return s.calls.empty() ? call_stack{} : s;
}

/// Whether this thread holds the lock or is about to lock it. Volatile, because a signal handler
/// reads this variable.
constinit thread_local volatile std::sig_atomic_t is_in_call = 0;

[[noreturn, gnu::cold]] void stop_at_signal() noexcept
{
    one_at_a_time.give(); // the interrupted call holds the lock, and will not continue
    is_in_call = 0;
    (fatal_message() << "mallard: a signal handler calls malloc or free\n"
                     << "  it interrupted malloc or free in the same thread; nothing was "
                        "allocated or freed\n"
                     << "  help: let the handler set a flag or write to a pipe; `man 7 "
                        "signal-safety` lists what it may call\n")
        .stop();
}

/// The scope of a call by the program. A nested call in the same thread comes from a signal
/// handler, and would deadlock. So the constructor stops the process if a call is nested.
class call_of_program {
public:
    call_of_program() noexcept
    {
        if (is_in_call != 0) [[unlikely]]
            stop_at_signal();
        is_in_call = 1;
    }
    call_of_program(const call_of_program&) = delete;
    call_of_program& operator=(const call_of_program&) = delete;
    ~call_of_program() { is_in_call = 0; }
};

/// Reports a violation and stops the process. Unlocks the lock first, because a handler of SIGABRT
/// may allocate, or may wait for a thread that allocates.
void stop(const fault& found, void*) noexcept
{
    one_at_a_time.give();
    is_in_call = 0;
    faulty_block block = found.blocks.empty() ? faulty_block{} : found.blocks.front();
    block.allocated = calls_of_program(block.allocated);
    block.freed = calls_of_program(block.freed);
    fault told = found;
    told.blocks = std::span(&block, found.blocks.size());
    stop_at_fault(told);
}

constexpr family other_than(family f) noexcept
{
    return f == family::of_malloc ? family::of_new : family::of_malloc;
}

/// Whether each family may free blocks of the other, as in libmallard.so (MALLARD_MIXED=1).
constinit bool families_mixed = false;

/// Returns the adaptor `checked` of a family, with its records. The adaptor is constructed by the
/// first call, which may come before all static constructors, and is never destroyed, since calls
/// may come after all destructors. The caller holds the lock.
template <family By>
checked_engine& records_of() noexcept
{
    if (By == family::of_new && families_mixed)
        return records_of<family::of_malloc>();
    alignas(checked_engine) static std::byte room[sizeof(checked_engine)];
    static checked_engine& made =
        *::new (room) checked_engine({By == family::of_malloc ? "malloc" : "operator new", stop});
    return made;
}

// --- guests: calls while another thread forks. The records do not change then. -----

/// A record of a block that a guest (a thread that called during a fork) allocated or freed.
struct note {
    note* next = nullptr;
    void* block = nullptr;
    layout asked{0};
    family by = family::of_malloc;
    bool is_stated = false; ///< whether the caller of free passed the layout
};

/// Adds a note to a list with a single store, so that the list is always valid in the child of a
/// fork.
void leave(note*& first, const note& what) noexcept
{
    void* const room = engine::allocate(sizeof(note));
    if (room == nullptr) // without memory for the note, the block leaks, or its allocation fails
        return;
    note* const n = ::new (room) note(what);
    n->next = first;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    first = n;
}

// The two lists below are protected by the lock `one_at_a_time` or, while that lock is held across
// a fork, by the lock `guests`.
constinit note* untracked =
    nullptr; ///< blocks that guests allocated; such blocks never get a record in `checked`
constinit note* deferred = nullptr; ///< blocks to free after the fork; these have a record

note** find_untracked(const void* block) noexcept
{
    note** at = &untracked;
    while (*at != nullptr && (*at)->block != block)
        at = &(*at)->next;
    return at;
}

void* allocate_untracked(std::size_t bytes, std::size_t align) noexcept
{
    void* const block = engine::allocate_aligned(bytes, align);
    if (block == nullptr)
        return nullptr;
    leave(untracked, {.block = block, .asked = {bytes, align}});
    if (untracked != nullptr && untracked->block == block)
        return block;
    engine::deallocate(block);
    return nullptr;
}

/// Frees a block that has no record in `checked`, because the block was allocated during a fork. If
/// `block` is not such a block, frees nothing and returns false.
bool free_untracked(void* block) noexcept
{
    note** const at = find_untracked(block);
    note* const found = *at;
    if (found == nullptr)
        return false;
    *at = found->next;
    engine::deallocate(block);
    engine::deallocate(found);
    return true;
}

/// Returns whether `p` is a block of a heap, which `free` accepts, too.
bool is_of_heap(const void* p) noexcept
{
    engine::reservation* const w = engine::reservation_of(p);
    return w != nullptr && engine::is_heaps(w->entry_at(w->slice_of(p)));
}

[[noreturn, gnu::cold]] void stop_at_mismatch(const void* block, family by) noexcept
{
    one_at_a_time.give();
    is_in_call = 0;
    (fatal_message() << "mallard: " << (by == family::of_malloc ? "free" : "delete") << " of "
                     << block << ", which is from "
                     << (by == family::of_malloc ? "operator new" : "malloc")
                     << "\n  the block is in use; this call changed nothing\n"
                     << "  help: pair new with delete, and malloc or strdup with free; or set "
                        "MALLARD_MIXED=1\n")
        .stop();
}

template <family By>
std::optional<layout> requested_layout(const void* block) noexcept
{
    engine::access const alone(one_at_a_time, guests);
    if (note const* const n = *find_untracked(block))
        return n->asked;
    return records_of<By>().requested_layout(block);
}

/// Frees a block for a function of the family `By` (malloc's or operator new's family). `stated` is
/// the layout that the caller passed, or null.
template <family By>
void free_as(void* block, const layout* stated) noexcept
{
    if (block == nullptr)
        return;
    if (is_of_heap(block))
        return engine::deallocate(block);
    engine::access const alone(one_at_a_time, guests);
    if (free_untracked(block))
        return;
    if (alone.is_guest())
        return leave(deferred, {.block = block,
                                .asked = stated != nullptr ? *stated : layout{0},
                                .by = By,
                                .is_stated = stated != nullptr});
    std::optional const asked = records_of<By>().requested_layout(block);
    if (!asked && records_of<other_than(By)>().requested_layout(block))
        stop_at_mismatch(block, By);
    layout const l = stated != nullptr ? *stated : asked.value_or(layout{0});
    records_of<By>().give({block, l.bytes, l.align}); // stops the process if there is no such block
}

} // namespace

template <family By>
void* checked_requests<By>::allocate_aligned(std::size_t bytes, std::size_t align) noexcept
{
    call_of_program const only;
    int const before = errno; // a failed first try sets errno, even if the second try succeeds
    engine::access const alone(one_at_a_time, guests);
    layout const l{bytes, std::max(align, align_min)};
    void* const block =
        alone.is_guest() ? allocate_untracked(l.bytes, l.align) : records_of<By>().try_take(l).data;
    if (block == nullptr)
        return os::out_of_memory();
    errno = before;
    return block;
}

template <family By>
void* checked_requests<By>::allocate_zeroed(std::size_t bytes) noexcept
{
    void* const block = allocate(bytes);
    return block == nullptr ? nullptr : std::memset(block, 0, bytes);
}

template <family By>
void* checked_requests<By>::reallocate(void* block, std::size_t bytes) noexcept
{
    if (is_of_heap(block))
        return engine::reallocate(block, bytes);
    std::optional<layout> asked;
    {
        call_of_program const only;
        asked = requested_layout<By>(block);
    }
    if (!asked)
        return deallocate(block), nullptr; // reports the violation and stops
    void* const fresh = allocate(bytes);
    if (fresh == nullptr)
        return nullptr;
    std::memcpy(fresh, block, std::min(asked->bytes, bytes));
    deallocate(block);
    return fresh;
}

template <family By>
std::size_t checked_requests<By>::usable_bytes(const void* block, const char* call) noexcept
{
    if (is_of_heap(block))
        return engine::usable_bytes(block, call);
    std::optional<layout> asked;
    {
        call_of_program const only;
        asked = requested_layout<By>(block);
        if (!asked)
            asked = requested_layout<other_than(By)>(block);
    }
    if (!asked)
        engine::stop_at_foreign(block, call);
    return asked->bytes;
}

template <family By>
void checked_requests<By>::deallocate(void* block) noexcept
{
    call_of_program const only;
    free_as<By>(block, nullptr);
}

template <family By>
void checked_requests<By>::deallocate_sized(void* block, std::size_t bytes,
                                            std::size_t align) noexcept
{
    call_of_program const only;
    layout const stated{bytes, std::max(align, align_min)};
    free_as<By>(block, &stated);
}

template struct checked_requests<family::of_malloc>;
template struct checked_requests<family::of_new>;

namespace {

// Fork handlers, like those in src/heap/fork.cpp. Before a fork, `one_at_a_time` is locked before
// the engine's locks. After the fork, the engine's locks are unlocked first.
constinit thread_local unsigned forks_without_lock = 0;
constinit thread_local bool fork_holds_lock = false;

void before_fork() noexcept
{
    if (fork_holds_lock || !engine::can_take_locks()) {
        forks_without_lock += 1;
        return;
    }
    fork_holds_lock = true;
    one_at_a_time.take();
    records_of<family::of_malloc>(); // construct the records now, not during the fork
    records_of<family::of_new>();
    one_at_a_time.keep();
}

void free_now(note const& n) noexcept
{
    const layout* const stated = n.is_stated ? &n.asked : nullptr;
    if (n.by == family::of_malloc)
        free_as<family::of_malloc>(n.block, stated);
    else
        free_as<family::of_new>(n.block, stated);
}

void after_fork_in_parent() noexcept
{
    if (forks_without_lock != 0) {
        forks_without_lock -= 1;
        return;
    }
    note* left = nullptr;
    {
        os::hold const no_guest_is_here(guests);
        left = std::exchange(deferred, nullptr);
        one_at_a_time.open();
    }
    fork_holds_lock = false;
    while (left != nullptr) {
        note* const n = std::exchange(left, left->next);
        free_now(*n);
        engine::deallocate(n);
    }
}

void after_fork_in_child() noexcept
{
    if (forks_without_lock != 0)
        forks_without_lock -= 1;
    fork_holds_lock = false;
    deferred = nullptr; // in the child, these frees did not happen
    guests.reset();
    one_at_a_time.reset();
}

bool take_calls(const char* value) noexcept
{
    bool wanted;
    if (!is_switch(value, wanted))
        return false;
    os::want_calls(wanted);
    return true;
}

constexpr option of_this_build[] = {
    {"MALLARD_CALLS", take_calls,
     "is neither 0 nor 1; no calls are recorded; help: MALLARD_CALLS=1"},
    {"MALLARD_MIXED", [](const char* value) noexcept { return is_switch(value, families_mixed); },
     "is neither 0 nor 1; free of a block of new stops the program; help: MALLARD_MIXED=1"},
};

/// Registers the fork handlers after those of the engine, so that `one_at_a_time` is locked before
/// the engine's locks.
[[gnu::constructor(102)]] void begin(int, char**, char** environment) noexcept
{
    os::want_calls(false);
    read_options(of_this_build, environment);
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/// Verifies all blocks when the program exits. This library was initialised first, so its
/// destructor runs last.
[[gnu::destructor]] void verify_at_end() noexcept
{
    os::hold const alone(one_at_a_time);
    records_of<family::of_malloc>().verify();
    records_of<family::of_new>().verify();
}

} // namespace
} // namespace mallard
