// What a pool of `sync::lock_free` is: a stack of slot numbers.
#pragma once

#include <mallard/detail/base/event_count.hpp>
#include <mallard/detail/pool/chunk_store.hpp>
#include <mallard/detail/pool/core_array.hpp>
#include <mallard/detail/pool/numbered_chunks.hpp>
#include <mallard/detail/threads/locks.hpp>

#include <atomic>

namespace mallard {

/// The free blocks are a stack (Treiber, 1986) of numbers: chunk and slot in 32
/// bits, and the link of each in an array in the header of its chunk. So the head
/// and a tag that tells its states apart are one word, and the link that a thread
/// reads while another already has the block is an atomic of its own: blocks are
/// never read, and no compare-exchange is wider than a word.
///
/// The tag comes round after 2^32 pops. A thread that stands still between its
/// read of the head and its compare-exchange for exactly so many, and wakes to
/// find the same block on top, would tear the list.
///
/// Growth happens while others push and pop; only those who find nothing wait
/// for it. What was never given out is handed over a stretch at a time.
template <pool_options Options>
class lock_free_core {
    static constexpr pool_options options_of_chunks = Options.with(reuse::ordered);
    using supply = chunk_supply<options_of_chunks, numbered_header>;

public:
    using geometry = typename supply::geometry;

private:
    using place = typename geometry::place;
    using number = slot_number;
    static constexpr bool watched = geometry::watched;

public:
    constexpr explicit lock_free_core(slot_shape shape,
                                      growth_argument<Options.grow> rule = {}) noexcept
        : supply_(shape, rule), numbers_(supply_.cut())
    {
    }

    constexpr void lead_to(void* owner) noexcept { supply_.lead_to(owner); }

    constexpr slot_shape shape() const noexcept { return supply_.cut().shape(); }

    static constexpr std::size_t bytes_for(slot_shape shape, std::size_t count) noexcept
    {
        return saturating_add(numbered_chunks<geometry>::first_table_bytes,
                              geometry::bytes_for(shape, count));
    }

    template <bool Throws, class Source>
    void* allocate(Source& source) noexcept(!Throws)
    {
        if (void* const block = pop()) [[likely]]
            return hand_out(block);
        return grow<Throws>(source);
    }

    template <class Source>
    void deallocate(Source&, void* block) noexcept
    {
        if constexpr (watched)
            clear_live(block);
        poison<watched>(block, shape().bytes);
        push(block);
    }

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
        std::lock_guard const no_new_chunks(lock_);
        return supply_.find(p) != nullptr;
    }

    /// Exact while no other thread is inside a call.
    validity classify(const void* p) const noexcept
    {
        std::lock_guard const no_new_chunks(lock_);
        pool_chunk* const c = supply_.find(p);
        if (c == nullptr)
            return validity::miss;
        std::size_t const slot = supply_.cut().slot_of(c, p);
        if (supply_.cut().slot_address(c, slot) != p || !c->is_carved(slot) ||
            is_in_window({c, slot}))
            return validity::invalid;
        bool free = false;
        if constexpr (watched)
            free = !c->is_live(slot);
        else
            for_each_free([&](number n) { free = free || n == numbers_.number_of({c, slot}); });
        return free ? validity::invalid : validity::valid;
    }

    template <class F>
    void for_each(F& f)
    {
        settle();
        undo const also_when_it_throws([this] { unsettle(); });
        supply_.for_each([&](pool_chunk& c) {
            c.for_each_used([&](std::size_t slot) {
                f(static_cast<void*>(supply_.cut().slot_address(&c, slot)));
            });
        });
    }

    void reset() noexcept
    {
        clear();
        supply_.for_each([](pool_chunk& c) { c.template uncarve<watched>(geometry::header); });
        list_all();
    }

    template <class Source>
    void release(Source& source) noexcept
    {
        clear();
        store_ = {};
        supply_.release(source);
        numbers_.release(source);
    }
    void forget() noexcept
    {
        clear();
        store_ = {};
        supply_.forget();
        numbers_.forget();
    }

    template <class Source>
    void trim(Source& source, std::size_t keep) noexcept
    {
        settle();
        supply_.give_idle(source, keep,
                          [](const pool_chunk& c) { return c.free_blocks() == c.carved_blocks(); });
        list_all();
        if (supply_.is_empty())
            supply_.growth().gave(numbers_.release(source));
        else
            numbers_.begin_anew();
        supply_.for_each([this](pool_chunk& c) { numbers_.enter(supply_.cut(), &c); });
        unsettle();
    }

    /// Exact while no other thread is inside a call.
    void add_to(statistics& s) const noexcept
    {
        std::lock_guard const no_new_chunks(lock_);
        std::size_t idle = stretch(window_.load(std::memory_order_acquire)).count();
        for_each_free([&](number) { ++idle; });
        std::size_t all = 0;
        supply_.for_each([&](const pool_chunk& c) {
            all += c.capacity();
            idle += c.capacity() - c.carved_blocks();
            s.chunks += 1;
        });
        std::size_t const live = all - std::min(idle, all);
        s.blocks_live += live;
        s.bytes_live += live * shape().bytes;
        s.bytes_idle += (all - live) * shape().bytes;
        s.refills += refills_;
        supply_.add_to(s);
    }

private:
    // --- the stack: a word {tag, number of the top + 1}, where 0 is "empty"
    static constexpr std::uint64_t one_tag = std::uint64_t{1} << 32;

    void* pop() noexcept
    {
        std::uint64_t head = head_.load(std::memory_order_acquire);
        while (static_cast<number>(head) != 0) {
            place const top = numbers_.place_of(static_cast<number>(head) - 1);
            std::uint64_t const next = numbers_.link_of(top).load(std::memory_order_relaxed);
            // If the link was stale, so is the head, and its tag tells.
            std::uint64_t const after = ((head + one_tag) & ~(one_tag - 1)) | next;
            if (head_.compare_exchange_weak(head, after, std::memory_order_acquire))
                return supply_.cut().slot_address(top.c, top.slot);
        }
        return carve();
    }

    void push(void* block) noexcept
    {
        place const p = supply_.place_of(block);
        std::uint64_t const top = numbers_.number_of(p) + std::uint64_t{1};
        std::atomic<number>& link = numbers_.link_of(p);
        std::uint64_t head = head_.load(std::memory_order_relaxed);
        do
            link.store(static_cast<number>(head), std::memory_order_relaxed);
        while (!head_.compare_exchange_weak(head, (head & ~(one_tag - 1)) | top,
                                            std::memory_order_release, std::memory_order_relaxed));
    }

    // --- the window: a word {end, next} of numbers that were never given out
    struct stretch {
        number next;
        number end;
        explicit stretch(std::uint64_t word) noexcept
            : next(static_cast<number>(word)), end(static_cast<number>(word >> 32))
        {
        }
        std::size_t count() const noexcept { return end - next; }
    };

    /// Null when the window is used up.
    void* carve() noexcept
    {
        std::uint64_t window = window_.load(std::memory_order_acquire);
        while (stretch(window).count() != 0) {
            if (window_.compare_exchange_weak(window, window + 1, std::memory_order_acquire)) {
                place const p = numbers_.place_of(stretch(window).next);
                return supply_.cut().slot_address(p.c, p.slot);
            }
        }
        return nullptr;
    }

    /// One thread at a time; it looks again, since the one before may have grown.
    template <bool Throws, class Source>
    MALLARD_COLD void* grow(Source& source) noexcept(!Throws)
    {
        std::lock_guard const alone(growing_);
        std::unique_lock no_readers(lock_);
        unlocked_source<Source> from(source, no_readers);
        void* block = pop();
        while (block == nullptr && (store_.replenish(supply_.cut()) || make_chunk<Throws>(from))) {
            open(store_.take_window());
            ++refills_;
            block = pop(); // others may have been quicker
        }
        if (block == nullptr)
            block = pop(); // the one before saw the stack first, and the window later
        if (block != nullptr)
            return hand_out(block);
        if constexpr (Throws)
            throw_bad_alloc();
        return nullptr;
    }

    /// What the window opens on must be found in the directory by then: the store
    /// releases, and each who gets a number has acquired it.
    void open(const carve_window& fresh) noexcept
    {
        std::uint64_t const next = numbers_.number_of(supply_.place_of(fresh.next()));
        std::uint64_t const count = fresh.bytes() / shape().bytes;
        window_.store((next + count) << 32 | next, std::memory_order_release);
    }

    template <bool Throws, class Source>
    bool make_chunk(Source& source) noexcept(!Throws)
    {
        // The number first: a chunk without one would be of no use.
        if (!numbers_.template has_room<Throws>(source, supply_.growth()))
            return false;
        pool_chunk* const c = supply_.template make<Throws>(source);
        if (c == nullptr)
            return false;
        numbers_.enter(supply_.cut(), c);
        store_.add(c);
        return store_.replenish(supply_.cut());
    }

    // --- while no other thread is inside a call
    template <class F>
    void for_each_free(F f) const
    {
        number top = static_cast<number>(head_.load(std::memory_order_acquire));
        for (std::size_t left = std::size_t{1} << 32; top != 0 && left != 0; --left) {
            f(top - 1);
            top = numbers_.link_of(numbers_.place_of(top - 1)).load(std::memory_order_relaxed);
        }
    }

    bool is_in_window(place p) const noexcept
    {
        stretch const window(window_.load(std::memory_order_acquire));
        number const n = numbers_.number_of(p);
        return window.next <= n && n < window.end;
    }

    void clear() noexcept
    {
        head_.store(head_.load(std::memory_order_relaxed) & ~(one_tag - 1),
                    std::memory_order_relaxed);
        window_.store(0, std::memory_order_relaxed);
    }

    /// All free blocks get their bits, and what is left of the window is uncarved.
    void settle() noexcept
    {
        for_each_free([this](number n) {
            place const p = numbers_.place_of(n);
            store_.set_free(p.c, p.slot);
        });
        if (stretch const left(window_.load(std::memory_order_relaxed)); left.count() != 0) {
            place const next = numbers_.place_of(left.next);
            next.c->carved = static_cast<std::uint32_t>(next.slot);
        }
        clear();
        list_all();
    }

    /// Free blocks go from the bits to the stack.
    void unsettle() noexcept
    {
        while (store_.has_recycled()) {
            void* few[64];
            std::size_t const count = store_.recycle(supply_.cut(), few);
            std::for_each_n(few, count, [this](void* block) { push(block); });
        }
    }

    void list_all() noexcept
    {
        store_.list(supply_, [](const pool_chunk&) { return true; });
    }

    // --- check::on
    [[gnu::always_inline]] void* hand_out(void* block) noexcept
    {
        unpoison<watched>(block, shape().bytes);
        if constexpr (watched) {
            place const p = supply_.place_of(block);
            p.c->exchange_live(p.slot, true);
        }
        return block;
    }

    [[gnu::noinline]] void clear_live(void* block) noexcept
    {
        std::lock_guard const no_new_chunks(lock_);
        pool_chunk* const c = supply_.find(block);
        if (c == nullptr)
            fatal_foreign_free(block);
        place const p{c, supply_.cut().slot_of(c, block)};
        std::byte* const address = supply_.cut().slot_address(c, p.slot);
        bool const carved = c->is_carved(p.slot) && !is_in_window(p);
        if (address != block || !carved || !c->exchange_live(p.slot, false))
            fatal_bad_free(block, address, shape().bytes, carved);
    }

    // Between any two calls, where no other thread is inside one:
    //   live + |stack| + |window| + |not carved|  ==  capacity of all chunks
    std::mutex growing_;      // for the source; taken before lock_
    mutable std::mutex lock_; // the chunks
    supply supply_;
    chunk_store<geometry> store_; // what the next windows are carved from
    numbered_chunks<geometry> numbers_;
    event_count refills_; // under lock_
    alignas(cache_line_bytes) std::atomic<std::uint64_t> head_{0};
    alignas(cache_line_bytes) std::atomic<std::uint64_t> window_{0};
};

} // namespace mallard
