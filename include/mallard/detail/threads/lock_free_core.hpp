// The core of a `sync::lock_free` pool. The pool has one chunk, whose free blocks form a lock-free
// stack.
#pragma once

#include <mallard/detail/base/atomic_ref.hpp>
#include <mallard/detail/pool/pool_core.hpp>
#include <mallard/detail/threads/locks.hpp>
#include <mallard/detail/threads/tagged_stack.hpp>

#include <atomic>

namespace mallard {

/// A pool with one chunk, which the first allocation requests from the source. Afterwards no call
/// locks, waits or calls the source, so signal handlers and real-time threads may allocate and
/// free.
///
///     chunk:    | block 0 | block 1 | ... | link 0, link 1, ... (32 bits each) |
///     stack_    the free blocks that were in use before, by index
///     carved_   { blocks of the chunk, blocks that were allocated at least once }
///
/// The links of the stack are in an array next to the blocks, so blocks are never read. The link of
/// a block in use has the value `in_use`, so `classify`, `for_each` and `check::on` need no other
/// record.
template <pool_options Options>
class alignas(false_sharing_bytes) lock_free_core {
    static_assert(Options.grow.is_single() || Options.grow.is_at_run_time(),
                  "a lock_free pool does not grow: set .grow = growth::none(bytes), or use "
                  "sync::thread_cached or sync::mutex for a pool that grows");

    using index = tagged_stack::index;
    static constexpr bool checks_on = Options.checks == check::on;
    static constexpr index in_use = tagged_stack::in_use;

public:
    struct layout_type {
        // The chunk has no header that a mask of a block's address could find.
        static constexpr bool by_mask = false;
    };

    constexpr explicit lock_free_core(slot_shape shape,
                                      growth_argument<Options.grow> rule = {}) noexcept
        : shape_(shape), divide_(shape.bytes), growth_(rule)
    {
    }

    constexpr slot_shape shape() const noexcept
    {
        if constexpr (Options.block != 0) // a division by a constant needs no division instruction
            return slot_shape::of(Options.block, Options.align, Options.block_min());
        else
            return shape_;
    }

    static constexpr std::size_t bytes_for(slot_shape shape, std::size_t count) noexcept
    {
        return saturating_add(shape.align, saturating_mul(count, shape.bytes + sizeof(index)));
    }

    static constexpr layout least_chunk(slot_shape shape) noexcept
    {
        return {bytes_for(shape, 1), alignof(std::uint64_t)};
    }

    template <bool Throws, class Source>
    void* allocate(Source& source) noexcept(!Throws)
    {
        if (void* const block = pop()) [[likely]]
            return hand_out(block);
        return allocate_slowly<Throws>(source);
    }

    template <class Source>
    void deallocate(Source&, void* block) noexcept
    {
        if constexpr (checks_on)
            mark_free(block);
        poison<checks_on>(block, shape().bytes);
        stack_.push(index_of(block), links());
    }

    /// Fills `out` with blocks. On failure, allocates nothing.
    template <bool Throws, class Source>
    bool allocate_batch(Source& source, std::span<void*> out) noexcept(!Throws)
    {
        return allocate_all<Throws>(*this, source, out);
    }
    template <class Source>
    void deallocate_batch(Source& source, std::span<void* const> blocks) noexcept
    {
        for (void* const block : blocks)
            deallocate(source, block);
    }

    bool owns(const void* p) const noexcept
    {
        std::size_t const bytes = carved().blocks * shape().bytes;
        return bytes != 0 && blocks_ <= p && p < blocks_ + bytes;
    }
    /// Classifies an address. The result is exact unless another thread allocates or frees the
    /// block at the same time.
    validity classify(const void* p) const noexcept
    {
        if (!owns(p))
            return validity::miss;
        index const i = index_of(p);
        bool const live = address_of(i) == p && i < carved().used && is_in_use(i);
        return live ? validity::valid : validity::invalid;
    }

    template <class F>
    void for_each(F& f)
    {
        for (index i = 0, end = carved().used; i < end; ++i)
            if (is_in_use(i))
                f(static_cast<void*>(address_of(i)));
    }

    /// Adds the statistics of this pool to `s`. They are exact if no other thread is inside a call.
    void add_to(statistics& s) const noexcept
    {
        std::lock_guard const no_new_chunk(growing_);
        std::size_t const blocks = carved().blocks;
        std::size_t const live = live_blocks();
        s.blocks_live += live;
        s.bytes_live += live * shape().bytes;
        s.bytes_idle += (blocks - live) * shape().bytes;
        s.bytes_taken += growth_.taken();
        s.chunks += blocks != 0;
        s.growths += growth_.steps();
        s.refills += growth_.steps();
    }

    // --- The functions below require that no other thread is inside a call.

    void reset() noexcept { open(carved().blocks); }

    template <class Source>
    void release(Source& source) noexcept
    {
        if (chunk_.data != nullptr) {
            unpoison<checks_on>(chunk_.data, chunk_.bytes);
            give(source, chunk_);
        }
        forget();
    }
    void forget() noexcept
    {
        open(0);
        chunk_ = {};
        growth_.restart();
    }

    template <class Source>
    void trim(Source& source, std::size_t keep) noexcept
    {
        if (live_blocks() == 0 && chunk_.bytes > keep)
            release(source);
    }

private:
    /// The value of the word `carved_`.
    struct carving {
        index used;   // the first `used` blocks of the chunk were allocated at least once
        index blocks; // number of blocks in the chunk; 0 if there is no chunk
        explicit carving(std::uint64_t word) noexcept
            : used(static_cast<index>(word)), blocks(static_cast<index>(word >> 32))
        {
        }
    };
    carving carved() const noexcept { return carving(carved_.load(std::memory_order_acquire)); }

    index index_of(const void* p) const noexcept
    {
        auto const offset = static_cast<std::size_t>(static_cast<const std::byte*>(p) - blocks_);
        if constexpr (Options.block != 0)
            return static_cast<index>(offset / shape().bytes);
        else
            return static_cast<index>(divide_(offset, shape_.bytes));
    }
    std::byte* address_of(index i) const noexcept
    {
        if (blocks_ == nullptr)
            __builtin_unreachable(); // so callers need not test for null
        return blocks_ + i * shape().bytes;
    }
    atomic_ref<index> link_of(index i) const noexcept { return atomic_ref(links_[i]); }
    auto links() const noexcept
    {
        return [this](std::size_t i) { return atomic_ref(links_[i]); };
    }

    /// Returns whether a block is in use. Requires that the block was allocated at least once.
    bool is_in_use(index i) const noexcept
    {
        return link_of(i).load(std::memory_order_relaxed) == in_use;
    }
    std::size_t live_blocks() const noexcept
    {
        std::size_t live = 0;
        for (index i = 0, end = carved().used; i < end; ++i)
            live += is_in_use(i);
        return live;
    }

    [[gnu::always_inline]] void* hand_out(void* block) const noexcept
    {
        unpoison<checks_on>(block, shape().bytes);
        return block;
    }

    [[gnu::always_inline]] void* pop() noexcept
    {
        return stack_.pop(links(), [this](index top) -> void* { return address_of(top); });
    }

    /// Allocates a block that was never allocated before. Returns null if no block is free.
    void* carve() noexcept
    {
        std::uint64_t word = carved_.load(std::memory_order_acquire);
        while (carving(word).used != carving(word).blocks) {
            if (carved_.compare_exchange_weak(word, word + 1, std::memory_order_acquire)) {
                index const i = carving(word).used;
                link_of(i).store(in_use, std::memory_order_relaxed);
                return address_of(i);
            }
        }
        // After `pop` found the stack empty, one thread may have freed a block, and another thread
        // may have carved the last block. From now on every free block is in the stack, so a second
        // `pop` finds one unless no block is free.
        return pop();
    }

    /// Runs the slow path of `allocate`, when no block is in the stack.
    template <bool Throws, class Source>
    [[gnu::noinline]] void* allocate_slowly(Source& source) noexcept(!Throws)
    {
        if (carved().blocks == 0 && !take_chunk<Throws>(source))
            return nullptr;
        if (void* const block = carve())
            return hand_out(block);
        if constexpr (Throws)
            throw_bad_alloc();
        return nullptr;
    }

    /// Requests the only chunk, unless another thread has requested it. Returns false, or throws,
    /// if the source has no memory.
    template <bool Throws, class Source>
    MALLARD_COLD bool take_chunk(Source& source) noexcept(!Throws)
    {
        std::lock_guard const one_at_a_time(growing_);
        if (chunk_.data != nullptr)
            return true;
        layout const least = least_chunk(shape());
        if (least.bytes > bytes_max / 2)
            return refuse_absurd<Throws>(source, least).data != nullptr;
        chunk_ = take_step<Throws>(source, growth_, least, least.bytes,
                                   [](std::size_t bytes) { return bytes; });
        if (chunk_.data == nullptr)
            return false;
        auto* const begin = static_cast<std::byte*>(chunk_.data);
        blocks_ = align_up(begin, shape().align);
        std::size_t const bytes = chunk_.bytes - static_cast<std::size_t>(blocks_ - begin);
        std::size_t const count =
            std::min<std::size_t>(bytes / (shape().bytes + sizeof(index)), in_use - 1);
        links_ = reinterpret_cast<index*>(blocks_ + count * shape().bytes);
        open(static_cast<index>(count));
        return true;
    }

    /// Makes all `count` blocks of the chunk free, as if they had never been allocated. The release
    /// store publishes the chunk to the threads that carve from it.
    void open(index count) noexcept
    {
        stack_.clear();
        if (count != 0)
            poison<checks_on>(blocks_, count * shape().bytes);
        carved_.store(std::uint64_t{count} << 32, std::memory_order_release);
    }

    /// Stops the process if `block` is not a block in use.
    [[gnu::noinline]] void mark_free(void* block) noexcept
    {
        if (!owns(block))
            fatal_foreign_free(block);
        index const i = index_of(block);
        bool const was_used = i < carved().used;
        // If two threads free the same block, the exchange stops one of them.
        if (address_of(i) != block || !was_used ||
            link_of(i).exchange(0, std::memory_order_relaxed) != in_use)
            fatal_bad_free(block, address_of(i), shape().bytes, was_used);
    }

    // These numbers agree whenever no thread is inside a call:
    //   blocks in use + |stack| + |not carved|  ==  blocks of the chunk
    slot_shape shape_;
    slot_divider divide_;
    // `blocks_` and `links_` are written before a store to `carved_` publishes both.
    std::byte* blocks_ = nullptr;
    index* links_ = nullptr;     // `in_use`, or 1 + the index of the next block in the stack
    mutable std::mutex growing_; // held while the chunk is allocated; protects `chunk_` and
                                 // `growth_`
    chunk chunk_;
    growth_state<Options.grow> growth_;
    alignas(false_sharing_bytes) tagged_stack stack_;
    alignas(false_sharing_bytes) std::atomic<std::uint64_t> carved_{0};
};

} // namespace mallard
