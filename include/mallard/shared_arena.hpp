// An arena for several threads.
#pragma once

#include <mallard/arena.hpp>
#include <mallard/detail/threads/fronts_of.hpp>

namespace mallard {

/// Gives blocks to any thread, each from a part of its own: without a lock or an
/// atomic operation while that has room. All die together.
///
///     mallard::shared_arena<> request;
///     ... in any thread: auto& node = request.make<tree_node>(7);
///     request.reset(); // when all threads are done with it
///
/// A part is an arena, and grows as one: 1 KiB, by four to 16 MiB, with a limit
/// in the growth that is each part's own. The part of a thread that has ended goes
/// on being filled by the next new thread. `deallocate` takes back the last block
/// of the calling thread and otherwise does nothing.
///
/// `allocate` throws `std::bad_alloc`, or what the source throws; `try_allocate`
/// gives null. A failed call has changed nothing. Any thread may call anything at
/// any time, but for `reset`, `release` and the end of the arena: no other thread
/// is inside a call then, and all blocks die. Threads may end before or after. The
/// source does not call back. Neither copied nor moved. Needs the library.
template <source Source = default_heap, arena_options Options = arena_options{}>
class shared_arena : public arena_objects<shared_arena<Source, Options>> {
    friend class arena_objects<shared_arena>;
    using holder = source_holder<Source, sync::thread_cached>;
    using shared_source = std::remove_reference_t<decltype(std::declval<holder&>().shared())>;

    struct alignas(cache_line_bytes) part : thread_front {
        constexpr part(shared_source& from, growth_argument<Options.grow>& rule) noexcept
            : blocks(rule, ref<shared_source>(from))
        {
        }

        arena<ref<shared_source>, Options> blocks;
        chunk taken; // null: it is part of the shared arena
    };

public:
    constexpr shared_arena() noexcept
        requires std::default_initializable<Source>
        : parts_(source_.shared(), rule_)
    {
        parts_.hold_at_fork(source_.mutex(), nullptr);
    }
    constexpr explicit shared_arena(Source from, growth_argument<Options.grow> rule = {}) noexcept
        : source_(std::move(from)), rule_(rule), parts_(source_.shared(), rule_)
    {
        parts_.hold_at_fork(source_.mutex(), nullptr);
    }
    ~shared_arena() { release(); }

    [[nodiscard]] void* allocate(layout l) { return bump<true>(l); }
    [[nodiscard]] void* try_allocate(layout l) noexcept { return bump<false>(l); }

    void deallocate(void* block, layout l) noexcept
    {
        auto* const p = static_cast<part*>(parts_.here());
        if (p == nullptr)
            return;
        if (p->enter())
            p->blocks.deallocate(block, l);
        p->leave();
    }

    /// Frees everything and keeps the memory; O(threads) but for owned objects.
    void reset() noexcept
    {
        owned_.run_until(nullptr);
        for (part* p = parts_.first(); p != nullptr; p = parts_.next(p))
            p->blocks.reset();
    }

    /// Frees everything and gives all memory back to the source.
    void release() noexcept
    {
        owned_.run_until(nullptr);
        parts_.part();
        for (part* p = parts_.first(); p != nullptr; p = parts_.next(p))
            p->blocks.release();
        parts_.give_all(source_.shared());
    }

    /// Gives the idle chunks of each part back, beyond `keep` bytes.
    void trim(std::size_t keep = 0) noexcept
    {
        std::lock_guard const alone(parts_.lock);
        frozen const still(parts_);
        for (part* p = parts_.first(); p != nullptr; p = parts_.next(p))
            p->blocks.trim(keep);
    }

    /// Of all parts together, at one moment.
    [[nodiscard]] statistics stats() const noexcept
    {
        std::lock_guard const alone(parts_.lock);
        frozen const still(parts_);
        statistics all;
        all.bytes_taken = parts_.bytes();
        for (part* p = parts_.first(); p != nullptr; p = parts_.next(p))
            all += p->blocks.stats();
        return all;
    }

    Source& upstream() noexcept { return source_.bare(); }
    const Source& upstream() const noexcept { return source_.bare(); }

private:
    /// Leaves, by an exception too.
    struct visit {
        thread_front& front;
        ~visit() { front.leave(); }
    };

    template <bool Throws>
    [[gnu::always_inline]] void* bump(layout l) noexcept(!Throws)
    {
        if (auto* const p = static_cast<part*>(parts_.here()); p != nullptr) [[likely]] {
            visit const here{*p};
            if (p->enter()) [[likely]]
                return bump_in<Throws>(*p, l);
        }
        return begin<Throws>(l);
    }

    template <bool Throws>
    [[gnu::always_inline]] static void* bump_in(part& p, layout l) noexcept(!Throws)
    {
        if constexpr (Throws)
            return p.blocks.allocate(l);
        else
            return p.blocks.try_allocate(l);
    }

    /// There is no part yet, or it is frozen.
    template <bool Throws>
    MALLARD_COLD void* begin(layout l) noexcept(!Throws)
    {
        for (;;) {
            part* const p = parts_.own(source_.shared(), source_.shared(), rule_);
            if (p == nullptr) { // no memory for one: the house's, under the lock
                std::lock_guard const alone(parts_.lock);
                frozen const still(parts_);
                return bump_in<Throws>(parts_.house(), l);
            }
            {
                visit const here{*p};
                if (p->enter())
                    return bump_in<Throws>(*p, l);
            }
            parts_.wait_for_thaw();
        }
    }

    template <class F>
    void with_owned(F f) noexcept
    {
        std::lock_guard const alone(parts_.lock);
        f(owned_);
    }

    holder source_;
    growth_argument<Options.grow> rule_{};
    fronts_of<part> parts_;
    finalizers owned_; // of all threads; under the parts' lock
};

} // namespace mallard
