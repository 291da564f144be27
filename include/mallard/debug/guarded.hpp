// `guarded`, an adaptor that places each block next to an inaccessible page.
#pragma once

#include <mallard/adapt/adaptor.hpp>
#include <mallard/detail/debug/block_records.hpp>
#include <mallard/detail/threads/locks.hpp>
#include <mallard/pages.hpp>

#include <atomic>

namespace mallard {

/// Selects calls at random, on average one in `one_in`.
class sample_countdown {
public:
    /// Returns true in one of `one_in` calls on average. Costs a decrement and a test, except when
    /// the countdown reaches 0. The number of calls from one true result to the next is random, and
    /// equally likely to be any number from 1 to `2 * one_in - 1`.
    bool is_due(std::uint64_t one_in) noexcept
    {
        if (--left_ != 0) [[likely]]
            return false;
        bool const is_first = random_ == 0; // the first call only chooses when the countdown ends
        left_ = 1 + draw() % (2 * one_in - 1);
        return !is_first;
    }

private:
    [[gnu::cold, gnu::noinline]] std::uint64_t draw() noexcept
    {
        // The seed is the address of the countdown, which differs by run and by thread.
        if (random_ == 0)
            random_ = reinterpret_cast<std::uintptr_t>(this) * 0x9e3779b97f4a7c15u | 1;
        // Marsaglia, "Xorshift RNGs", 2003.
        random_ ^= random_ << 13;
        random_ ^= random_ >> 7;
        random_ ^= random_ << 17;
        return random_ >> 11; // the lowest bits are the least random
    }

    std::uint64_t left_ = 1;
    std::uint64_t random_ = 0;
};

/// Which end of a block lies next to the inaccessible page.
enum class guard_at {
    end,  ///< the end: finds accesses after the block
    begin ///< the start: finds accesses before the block
};

/// Options of `guarded`.
///
///     constexpr mallard::guarded_options one_in_a_thousand{.one_in = 1000};
///     mallard::guarded<mallard::multipool<>, one_in_a_thousand> orders("orders");
struct guarded_options {
    guard_at side = guard_at::end; ///< which end of a block is next to the inaccessible page
    std::size_t one_in = 1;        ///< on average, one in `one_in` allocations is guarded
    std::size_t quarantine = std::size_t{1} << 28; ///< maximum bytes of address space in quarantine
    std::size_t blocks_max = 16384; ///< limit of guarded blocks in use; each needs two mappings
    std::size_t reserve_bytes = std::size_t{1} << 34; ///< address space of all guarded blocks
    std::size_t frames = 0; ///< recorded stack frames at each guarded allocation and free
    bool shared = false; ///< whether several threads may call, if the wrapped allocator allows it
};

/// Puts each block of any allocator or source in separate pages, with an inaccessible page after
/// the block, or before the block:
///
///     mallard::guarded<mallard::multipool<>> orders("orders");
///     auto* block = static_cast<char*>(orders.allocate({48}));
///     block[48] = 1; // stops here with a segmentation fault
///
/// An access to the first byte beyond the block faults at the instruction that accesses the byte.
/// An access to a freed block faults too, as long as the addresses of the block are in quarantine.
/// The memory of a freed block returns to the system immediately. The alignment of a block may
/// leave a gap at its guarded end (`slack`). This gap and the rest of the page at the other end are
/// redzones. Both are filled with a pattern, and the free verifies that no byte has changed. Bad
/// frees are found at the free, as with `checked`. Leaks are not found. In a handler of SIGSEGV,
/// `explain` finds the block to which an address belongs.
///
/// A guarded block costs at least a page, two mappings, and about 40 us for the allocation and the
/// free together, nearly all of it in the kernel. With `one_in = 1000`, most blocks come from the
/// wrapped allocator, and an allocation and its free together cost 8 more instructions. So
/// `guarded` can be used in production, as GWP-ASan is (Serebryany and others, "GWP-ASan:
/// Sampling-Based Detection of Memory-Safety Bugs in Production", 2024).
///
/// When the system has no page or no mapping left, or when `blocks_max` blocks are guarded, a block
/// comes from the wrapped allocator and is not guarded. `unguarded` counts such blocks, and
/// `last_failure` returns the reason. The records of guarded blocks are in memory of `Heap`. The
/// destructor frees all guarded blocks. A `guarded` is neither copied nor moved. Needs the compiled
/// library.
template <source Inner = default_heap, guarded_options Options = guarded_options{},
          source Heap = default_heap>
class guarded : public adaptor<guarded<Inner, Options, Heap>, Inner> {
    static_assert(Options.one_in > 0, "mallard: guarded: one_in must be at least 1");

    using base = adaptor<guarded, Inner>;
    friend adaptor_access;

    using inspector_type = block_inspector<Options.frames, Heap>;
    using record = typename inspector_type::record;

public:
    /// Whether any thread may call this object (see `shareable`).
    static constexpr bool any_thread = Options.shared && shareable<Inner>;

    /// Makes an allocator. `reporter` contains the name of the allocator for messages, and
    /// optionally a fault handler.
    explicit guarded(fault_reporter reporter = {}) noexcept
        requires std::default_initializable<Inner>
        : inspector_(reporter)
    {
    }
    /// Makes an allocator, and constructs the wrapped allocator from `args`.
    template <class... Args>
        requires std::constructible_from<Inner, Args...>
    guarded(fault_reporter reporter, std::in_place_t, Args&&... args)
        : base(std::in_place, std::forward<Args>(args)...), inspector_(reporter)
    {
    }
    ~guarded()
    {
        verify();
        // Unpoisons the redzones, which would otherwise stay poisoned for AddressSanitizer after
        // they are unmapped.
        inspector_.remove_all();
    }

    /// Looks for overwritten bytes in the redzones of all guarded blocks in use.
    void verify() noexcept
    {
        std::lock_guard const alone(lock_);
        inspector_.records().live().for_each([this](record& r) { inspector_.inspect_redzones(r); });
    }

    /// Returns whether `p` lies in the address range of the guarded blocks, in a block or between
    /// blocks.
    [[nodiscard]] bool is_guarded(const void* p) const noexcept
    {
        auto const at = reinterpret_cast<std::uintptr_t>(p);
        return begin_.load(std::memory_order_relaxed) <= at &&
               at < end_.load(std::memory_order_relaxed);
    }

    /// Returns whether `p` is in that range, or is owned by the wrapped allocator.
    [[nodiscard]] bool owns(const void* p) const noexcept
        requires requires(const Inner& inner) { inner.owns(p); }
    {
        return is_guarded(p) || this->upstream().owns(p);
    }

    /// Finds the guarded block, in use or freed, that contains or contained the address, and calls
    /// the `fault_handler`. Returns false when there is no such block. O(blocks). Meant for a
    /// handler of SIGSEGV. Locks nothing, because the thread that faulted may hold the lock.
    ///
    ///     void on_segv(int, siginfo_t* info, void*) { orders.explain(info->si_addr); ... }
    bool explain(const void* address) const noexcept
    {
        bool const near = is_guarded(address) ||
                          is_guarded(static_cast<const std::byte*>(address) - page_bytes) ||
                          is_guarded(static_cast<const std::byte*>(address) + page_bytes);
        return near && inspector_.explain_touch(address);
    }

    /// Returns the number of bytes between the guarded end of a block and the inaccessible page.
    static constexpr std::size_t slack(layout l) noexcept
    {
        std::size_t const bytes = std::max(l.bytes, std::size_t{1});
        return Options.side == guard_at::end ? (align_up(bytes, page_bytes) - bytes) & (l.align - 1)
                                             : 0;
    }

    /// Returns the number of guarded blocks in use.
    [[nodiscard]] std::size_t blocks() const noexcept { return blocks_; }
    /// Returns the number of blocks that could not be guarded.
    [[nodiscard]] std::size_t unguarded() const noexcept { return unguarded_; }

    /// Returns the reason why the last unguarded block was not guarded, as an `errno`.
    /// `last_failure` returns the reason as one line of text, which is never freed.
    int last_error() const noexcept { return error_; }
    const char* last_failure() const noexcept { return failure_; } ///< see `last_error`

private:
    static constexpr pages_options in_one_range{.guard = true,
                                                .reserve_bytes = Options.reserve_bytes};

    // Decides whether to guard the next block. With several threads, each thread has one countdown
    // for all objects of this type. If each object had one countdown, its threads would contend for
    // a cache line.
    bool is_sampled() noexcept
    {
        if constexpr (Options.one_in == 1) {
            return true;
        } else if constexpr (Options.shared) {
            constinit static thread_local sample_countdown of_this_thread;
            return of_this_thread.is_due(Options.one_in);
        } else {
            return countdown_.is_due(Options.one_in);
        }
    }

    template <bool Throws>
    chunk take_one(layout l) noexcept(!Throws)
    {
        if (is_sampled()) [[unlikely]] {
            chunk const c = guard(l);
            if (c.data != nullptr)
                return c;
        }
        return this->template take_below<Throws>(l);
    }

    void give_one(chunk c) noexcept
    {
        if (is_guarded(c.data)) [[unlikely]]
            unguard(c);
        else
            this->give_below(c);
    }

    /// Allocates a guarded block, and empties the quarantine if necessary. Returns null when the
    /// system has no page or mapping left, or `Heap` has no memory for a record.
    [[gnu::noinline]] chunk guard(layout l) noexcept
    {
        std::lock_guard const alone(lock_);
        if (blocks_ == Options.blocks_max)
            return fail(0, "blocks_max blocks are guarded already: raise .blocks_max");
        layout const room(std::max(l.bytes, std::size_t{1}), l.align);
        chunk taken = pages_.try_take(room);
        if (taken.data == nullptr && quarantined_ != 0) {
            shrink_quarantine(0);
            taken = pages_.try_take(room);
        }
        if (taken.data == nullptr)
            return fail(pages_.last_error(), pages_.last_failure());

        std::byte* data = static_cast<std::byte*>(taken.data);
        if constexpr (Options.side == guard_at::end)
            data += (taken.bytes - room.bytes) & ~(l.align - 1);
        if (inspector_.register_block(taken, data, l.bytes, l.align) == nullptr) {
            pages_.give(taken);
            return fail(0, "the heap has no memory for the records of guarded blocks");
        }
        include(taken);
        blocks_ += 1;
        return {data, l.bytes, l.align};
    }

    chunk fail(int error, const char* why) noexcept
    {
        unguarded_ += 1;
        error_ = error;
        failure_ = why;
        return {};
    }

    [[gnu::noinline]] void unguard(chunk c) noexcept
    {
        std::lock_guard const alone(lock_);
        if (record* const r = inspector_.validate_free(c.data, {c.bytes, c.align}))
            quarantine(*r);
    }

    /// Puts a freed block in quarantine. Its memory returns to the system, and its addresses stay
    /// inaccessible, so the block need not be filled with a pattern.
    void quarantine(record& r) noexcept
    {
        blocks_ -= 1;
        bool const kept = pages_.quarantine(r.taken);
        inspector_.records().move_to_quarantine(r);
        quarantined_ += r.taken.bytes;
        if (kept)
            shrink_quarantine(Options.quarantine);
        else
            end_quarantine(r); // the system supplied no mapping for the quarantine
    }

    void shrink_quarantine(std::size_t bytes) noexcept
    {
        while (quarantined_ > bytes)
            end_quarantine(*inspector_.records().quarantine().oldest());
    }

    void end_quarantine(record& r) noexcept
    {
        quarantined_ -= r.taken.bytes;
        pages_.give(inspector_.remove(r));
    }

    /// Frees the guarded blocks one by one. `reset` and `release` call this before the wrapped
    /// allocator frees all other blocks.
    void forget_all() noexcept
    {
        std::lock_guard const alone(lock_);
        inspector_.records().live().for_each([this](record& r) {
            inspector_.inspect_redzones(r);
            quarantine(r);
        });
    }

    /// Extends the address range of guarded blocks to contain `taken`. Only guarded blocks lie in
    /// this range. The stores can be relaxed. They precede the return of the block to the program,
    /// so a thread that frees the block sees the new range.
    void include(chunk taken) noexcept
    {
        auto const begin = reinterpret_cast<std::uintptr_t>(taken.data);
        if (begin < begin_.load(std::memory_order_relaxed))
            begin_.store(begin, std::memory_order_relaxed);
        if (begin + taken.bytes > end_.load(std::memory_order_relaxed))
            end_.store(begin + taken.bytes, std::memory_order_relaxed);
    }

    std::atomic<std::uintptr_t> begin_ = std::numeric_limits<std::uintptr_t>::max();
    std::atomic<std::uintptr_t> end_ = 0;
    sample_countdown countdown_; // unused if each thread has a countdown
    [[no_unique_address]] mutex_if<Options.shared> lock_;
    pages<in_one_range> pages_;
    inspector_type inspector_;
    std::size_t blocks_ = 0;
    std::size_t unguarded_ = 0;
    std::size_t quarantined_ = 0;
    int error_ = 0;
    const char* failure_ = "";
};

} // namespace mallard
