// The core of a `sync::mutex` pool, which is a `pool_core` behind a lock.
#pragma once

#include <mallard/detail/pool/pool_core.hpp>
#include <mallard/detail/threads/locks.hpp>

namespace mallard {

/// A `pool_core` behind a lock. The lock is released while the source is called, so a thread that
/// frees, or finds a free block, never waits for a thread that grows the pool. Threads grow the
/// pool one at a time. Each thread looks for a free block again before it calls the source, so one
/// new chunk can serve all waiting threads.
template <pool_options Options>
class alignas(false_sharing_bytes) locked_core {
public:
    using layout_type = typename pool_core<Options>::layout_type;

    constexpr explicit locked_core(slot_shape shape,
                                   growth_argument<Options.grow> rule = {}) noexcept
        : core_(shape, rule)
    {
    }

    constexpr void set_owner(void* owner) noexcept { core_.set_owner(owner); }

    constexpr slot_shape shape() const noexcept { return core_.shape(); }

    static constexpr std::size_t bytes_for(slot_shape shape, std::size_t count) noexcept
    {
        return pool_core<Options>::bytes_for(shape, count);
    }

    static constexpr layout least_chunk(slot_shape shape) noexcept
    {
        return pool_core<Options>::least_chunk(shape);
    }

    template <bool Throws, class Source>
    void* allocate(Source& source) noexcept(!Throws)
    {
        {
            null no_growth;
            std::lock_guard const one_at_a_time(lock_);
            if (void* const block = core_.template allocate<false>(no_growth)) [[likely]]
                return block;
        }
        return with_growth(source,
                           [&](auto& grown) { return core_.template allocate<Throws>(grown); });
    }

    template <class Source>
    void deallocate(Source& source, void* block) noexcept
    {
        {
            null no_growth;
            std::lock_guard const one_at_a_time(lock_);
            if (core_.has_room()) [[likely]]
                return core_.deallocate(no_growth, block);
        }
        deallocate_batch(source, {&block, 1});
    }

    template <bool Throws, class Source>
    bool allocate_batch(Source& source, std::span<void*> out) noexcept(!Throws)
    {
        {
            null no_growth;
            std::lock_guard const one_at_a_time(lock_);
            if (core_.template allocate_batch<false>(no_growth, out))
                return true;
        }
        return with_growth(
            source, [&](auto& grown) { return core_.template allocate_batch<Throws>(grown, out); });
    }
    template <class Source>
    [[gnu::noinline]] void deallocate_batch(Source& source, std::span<void* const> blocks) noexcept
    {
        std::unique_lock one_at_a_time(lock_);
        impatient_source<Source> now_or_never(source, one_at_a_time, growing_);
        core_.deallocate_batch(now_or_never, blocks);
    }

    bool owns(const void* p) const noexcept
    {
        std::lock_guard const one_at_a_time(lock_);
        return core_.owns(p);
    }
    validity classify(const void* p) const noexcept
    {
        std::lock_guard const one_at_a_time(lock_);
        return core_.classify(p);
    }

    /// Calls `f` for each block in use, without a lock, so that `f` may free blocks.
    template <class F>
    void for_each(F& f)
    {
        core_.for_each(f);
    }

    void reset() noexcept
    {
        std::lock_guard const one_at_a_time(lock_);
        core_.reset();
    }
    template <class Source>
    void release(Source& source) noexcept
    {
        std::lock_guard const one_at_a_time(lock_);
        core_.release(source);
    }
    void forget() noexcept
    {
        std::lock_guard const one_at_a_time(lock_);
        core_.forget();
    }
    template <class Source>
    void trim(Source& source, std::size_t keep) noexcept
    {
        std::lock_guard const one_at_a_time(lock_);
        core_.trim(source, keep);
    }

    void add_to(statistics& s) const noexcept
    {
        std::lock_guard const one_at_a_time(lock_);
        core_.add_to(s);
    }

private:
    /// The source through which a free enlarges the magazine (the array of recently freed blocks).
    /// While another thread grows the pool, this source fails instead of waiting, and a later free
    /// enlarges the array.
    template <class Source>
    class impatient_source {
    public:
        impatient_source(Source& from, std::unique_lock<std::mutex>& held,
                         std::mutex& growing) noexcept
            : from_(from, held), growing_(growing)
        {
        }

        chunk try_take(layout l) noexcept
        {
            std::unique_lock const alone(growing_, std::try_to_lock);
            return alone ? from_.try_take(l) : chunk{};
        }
        void give(chunk c) noexcept { from_.give(c); }

    private:
        unlocked_source<Source> from_;
        std::mutex& growing_;
    };

    template <class Source, class F>
    [[gnu::noinline]] auto with_growth(Source& source, F f)
    {
        std::lock_guard const alone(growing_);
        std::unique_lock one_at_a_time(lock_);
        unlocked_source<Source> unlocked(source, one_at_a_time);
        return f(unlocked);
    }

    // The lock shares a cache line with the members that most calls write.
    mutable std::mutex lock_;
    pool_core<Options> core_;
    std::mutex growing_; // held while the source is called; locked before lock_
};

} // namespace mallard
