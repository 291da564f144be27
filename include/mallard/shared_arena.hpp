// An arena for several threads.
#pragma once

#include <mallard/arena.hpp>
#include <mallard/detail/threads/thread_caches.hpp>

namespace mallard {

/// An arena for any number of threads. Each thread allocates from a separate arena, without a lock
/// or an atomic operation. All blocks are freed together.
///
///     mallard::shared_arena<> request;
///     ... in any thread: auto& node = request.make<tree_node>(7);
///     request.reset(); // when all threads are done with it
///
/// The arena of a thread grows as an `arena` does. The first chunk has 1 KiB, and each later chunk
/// is four times as large as the one before, up to 16 MiB. A limit in the growth rule applies to
/// the arena of each thread separately. When a thread exits, the next new thread continues with the
/// arena of the exited thread. `deallocate` frees the block that the calling thread allocated last,
/// and does nothing for any other block.
///
/// `allocate` throws `std::bad_alloc`, or what the source throws; `try_allocate` returns null. A
/// failed call changes nothing. Any thread may call any function at any time, except `reset`,
/// `release` and the destructor. No other thread may be inside a call while one of these runs.
/// Threads may exit before or after the arena is destroyed. The source must not call the arena. A
/// `shared_arena` is neither copied nor moved. Needs the compiled library.
template <source Source = default_heap, arena_options Options = arena_options{}>
class shared_arena : public arena_objects<shared_arena<Source, Options>> {
    friend class arena_objects<shared_arena>;
    using shared_source = mallard::shared_source<Source>;

    struct alignas(false_sharing_bytes) thread_arena : thread_cache {
        constexpr thread_arena(shared_source& from, growth_argument<Options.grow>& rule) noexcept
            : blocks(rule, ref<shared_source>(from))
        {
        }

        arena<ref<shared_source>, Options> blocks;
        chunk taken; // the memory of this object; null for the object inside the shared_arena
    };

public:
    constexpr shared_arena() noexcept
        requires std::default_initializable<Source>
        : arenas_(source_, rule_)
    {
        arenas_.hold_at_fork(mutex_of(source_), nullptr);
    }
    /// Makes an arena over a source, optionally with a growth rule.
    constexpr explicit shared_arena(Source from, growth_argument<Options.grow> rule = {}) noexcept
        : source_(std::move(from)), rule_(rule), arenas_(source_, rule_)
    {
        arenas_.hold_at_fork(mutex_of(source_), nullptr);
    }
    ~shared_arena() { release(); }

    /// Allocates a block, or throws `std::bad_alloc` or what the source throws.
    [[nodiscard]] void* allocate(layout l) { return bump<true>(l); }
    /// Allocates a block, or returns null.
    [[nodiscard]] void* try_allocate(layout l) noexcept { return bump<false>(l); }

    /// Frees the block if it is the last one that the calling thread allocated, and otherwise does
    /// nothing.
    void deallocate(void* block, layout l) noexcept
    {
        auto* const p = static_cast<thread_arena*>(arenas_.mine());
        if (p == nullptr)
            return;
        if (p->enter())
            p->blocks.deallocate(block, l);
        p->leave();
    }

    /// Frees all blocks and keeps the memory. Takes O(threads) time plus the time for destructors
    /// of owned objects.
    void reset() noexcept
    {
        owned_.run_until(nullptr);
        for (thread_arena* p = arenas_.first(); p != nullptr; p = arenas_.next(p))
            p->blocks.reset();
    }

    /// Frees all blocks and returns all memory to the source.
    void release() noexcept
    {
        owned_.run_until(nullptr);
        arenas_.detach_all();
        for (thread_arena* p = arenas_.first(); p != nullptr; p = arenas_.next(p))
            p->blocks.release();
        arenas_.release_all(source_);
    }

    /// Returns idle chunks to the source, until each thread's arena has at most `keep` idle bytes.
    void trim(std::size_t keep = 0) noexcept
    {
        std::lock_guard const alone(arenas_.lock);
        freeze_guard const frozen(arenas_);
        for (thread_arena* p = arenas_.first(); p != nullptr; p = arenas_.next(p))
            p->blocks.trim(keep);
    }

    /// Returns statistics that sum up all threads' arenas at one moment.
    [[nodiscard]] statistics stats() const noexcept
    {
        std::lock_guard const alone(arenas_.lock);
        freeze_guard const frozen(arenas_);
        statistics all;
        all.bytes_taken = arenas_.bytes();
        for (thread_arena* p = arenas_.first(); p != nullptr; p = arenas_.next(p))
            all += p->blocks.stats();
        return all;
    }

    /// Returns the source of the chunks.
    Source& upstream() noexcept { return source_; }
    const Source& upstream() const noexcept { return source_; }

private:
    /// A C++ scope in which the thread is inside its arena. The destructor leaves the arena, after
    /// an exception too.
    struct visit {
        thread_cache& arena;
        ~visit() { arena.leave(); }
    };

    template <bool Throws>
    [[gnu::always_inline]] void* bump(layout l) noexcept(!Throws)
    {
        if (auto* const p = static_cast<thread_arena*>(arenas_.mine()); p != nullptr) [[likely]] {
            visit const here{*p};
            if (p->enter()) [[likely]]
                return bump_in<Throws>(*p, l);
        }
        return begin<Throws>(l);
    }

    template <bool Throws>
    [[gnu::always_inline]] static void* bump_in(thread_arena& p, layout l) noexcept(!Throws)
    {
        if constexpr (Throws)
            return p.blocks.allocate(l);
        else
            return p.blocks.try_allocate(l);
    }

    /// Runs the slow path of an allocation. Either the thread has no arena yet, or another thread
    /// runs `trim`, `stats` or a fork, and keeps all threads out of their arenas for a moment.
    template <bool Throws>
    MALLARD_COLD void* begin(layout l) noexcept(!Throws)
    {
        for (;;) {
            thread_arena* const p = arenas_.find_or_make(source_, source_, rule_);
            if (p == nullptr) {
                // There is no memory for an arena of this thread, so this code uses the built-in
                // arena under the lock.
                std::lock_guard const alone(arenas_.lock);
                freeze_guard const frozen(arenas_);
                return bump_in<Throws>(arenas_.built_in(), l);
            }
            {
                visit const here{*p};
                if (p->enter())
                    return bump_in<Throws>(*p, l);
            }
            arenas_.wait_for_thaw();
        }
    }

    template <class F>
    void with_finalizers(F f) noexcept
    {
        std::lock_guard const alone(arenas_.lock);
        f(owned_);
    }

    shared_source source_;
    growth_argument<Options.grow> rule_{};
    thread_caches<thread_arena> arenas_;
    finalizers owned_; // owned objects of all threads; guarded by arenas_.lock
};

} // namespace mallard
