// An allocator whose blocks stop the program that leaves them.
#pragma once

#include <mallard/adapt/adaptor.hpp>
#include <mallard/detail/base/sampler.hpp>
#include <mallard/detail/debug/block_watch.hpp>
#include <mallard/detail/threads/locks.hpp>
#include <mallard/pages.hpp>

#include <atomic>

namespace mallard {

/// Where a block touches the page that nobody may touch.
enum class guard_at { end, begin };

struct guarded_options {
    guard_at side = guard_at::end;
    std::size_t one_in = 1; ///< guards one allocation in so many, at random; the rest passes by
    std::size_t quarantine = std::size_t{1} << 28; ///< most bytes of addresses of freed blocks
    std::size_t blocks_max = 16384;                ///< in use at the same time; two mappings each
    std::size_t reserve_bytes = std::size_t{1} << 34; ///< address space for all; costs no memory
    std::size_t frames = 0; ///< calls recorded at each guarded allocation and free
    bool shared = false;    ///< any thread may call, if it may call what is wrapped
};

/// Any allocator or source, and blocks on pages of their own, with an inaccessible
/// one behind them, or in front:
///
///     mallard::guarded<mallard::multipool<>> orders("orders");
///     auto* block = static_cast<char*>(orders.allocate({48}));
///     block[48] = 1; // stops here, with a segmentation fault
///
/// The first byte beyond faults at the culprit, read or written, and so does a freed
/// block, while its addresses are in quarantine: its memory goes back at once.
/// Where an alignment leaves a gap at that end (`slack`), and on the other side up to the
/// page's end, bytes are filled and verified at the free. Bad frees are found as by
/// `checked`, leaks are not. `explain` tells a handler of SIGSEGV whose block it was.
///
/// A block costs a page at least, two mappings, and some 40 us for a pair of calls,
/// nearly all of it the kernel's. `one_in = 1000` leaves all but a few to what is
/// wrapped, for 8 instructions a pair: so it can run where users are (as GWP-ASan
/// does: Serebryany and others, "GWP-ASan: Sampling-Based Detection of Memory-Safety
/// Bugs in Production", 2024).
///
/// Nothing is refused for want of a guard: a block that the system has no pages or
/// no mapping for, or that is one too many, is what is wrapped gives; `unguarded` counts
/// those and `last_refusal` says why. Books are on `Heap`. Guarded blocks end with this.
/// Neither copied nor moved. Needs the library.
template <source Inner = default_heap, guarded_options Options = guarded_options{},
          source Heap = default_heap>
class guarded : public adaptor<guarded<Inner, Options, Heap>, Inner> {
    static_assert(Options.one_in > 0, "mallard: guarded: one_in counts from 1");

    using base = adaptor<guarded, Inner>;
    friend base;

    using watch_type = block_watch<Options.frames, Heap>;
    using record = typename watch_type::record;

public:
    static constexpr bool any_thread = Options.shared && shareable<Inner>;

    explicit guarded(fault_reporter reporter = {}) noexcept
        requires std::default_initializable<Inner>
        : watch_(reporter)
    {
    }
    template <class... Args>
        requires std::constructible_from<Inner, Args...>
    guarded(fault_reporter reporter, std::in_place_t, Args&&... args)
        : base(std::in_place, std::forward<Args>(args)...), watch_(reporter)
    {
    }
    ~guarded()
    {
        verify();
        watch_.close_all(); // else AddressSanitizer remembers the fences of pages that are gone
    }

    /// Looks for overwritten bytes around all guarded blocks in use.
    void verify() noexcept
    {
        std::lock_guard const alone(lock_);
        watch_.books().live().for_each([this](record& r) { watch_.inspect_fences(r); });
    }

    /// Whether `p` is among the pages of guarded blocks, or in the gaps between them.
    [[nodiscard]] bool is_guarded(const void* p) const noexcept
    {
        auto const at = reinterpret_cast<std::uintptr_t>(p);
        return begin_.load(std::memory_order_relaxed) <= at &&
               at < end_.load(std::memory_order_relaxed);
    }

    [[nodiscard]] bool owns(const void* p) const noexcept
        requires requires(const Inner& inner) { inner.owns(p); }
    {
        return is_guarded(p) || this->upstream().owns(p);
    }

    /// For a handler of SIGSEGV: tells the `fault_handler` whose block the address belongs
    /// to, or used to. False: nobody's. O(blocks), and takes no lock, since whoever
    /// has it may be the one that stopped.
    bool explain(const void* address) const noexcept
    {
        bool const near = is_guarded(address) ||
                          is_guarded(static_cast<const std::byte*>(address) - page_bytes) ||
                          is_guarded(static_cast<const std::byte*>(address) + page_bytes);
        return near && watch_.explain_touch(address);
    }

    /// Bytes between a block and its inaccessible page.
    static constexpr std::size_t slack(layout l) noexcept
    {
        std::size_t const bytes = std::max(l.bytes, std::size_t{1});
        return Options.side == guard_at::end ? (align_up(bytes, page_bytes) - bytes) & (l.align - 1)
                                             : 0;
    }

    /// Guarded blocks in use, and those that were to be guarded and could not be.
    [[nodiscard]] std::size_t blocks() const noexcept { return blocks_; }
    [[nodiscard]] std::size_t unguarded() const noexcept { return unguarded_; }

    /// Why a block was not guarded, the latest: `errno`, and a line that lives for ever.
    int last_error() const noexcept { return error_; }
    const char* last_refusal() const noexcept { return refusal_; }

private:
    static constexpr pages_options in_one_range{.guard = true,
                                                .reserve_bytes = Options.reserve_bytes};

    // Each thread counts for itself where there are several, for all objects of this
    // type: a count that they share would be a cache line that they fight for.
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

    /// Null when there is no page, no mapping, or no room in the books. Those that are
    /// kept go before that: they are there for luck, the block is wanted.
    [[gnu::noinline]] chunk guard(layout l) noexcept
    {
        std::lock_guard const alone(lock_);
        if (blocks_ == Options.blocks_max)
            return refuse(0, "as many blocks are guarded as there may be: raise .blocks_max");
        layout const room(std::max(l.bytes, std::size_t{1}), l.align);
        chunk taken = pages_.try_take(room);
        if (taken.data == nullptr && quarantined_ != 0) {
            shrink_quarantine(0);
            taken = pages_.try_take(room);
        }
        if (taken.data == nullptr)
            return refuse(pages_.last_error(), pages_.last_refusal());

        std::byte* data = static_cast<std::byte*>(taken.data);
        if constexpr (Options.side == guard_at::end)
            data += (taken.bytes - room.bytes) & ~(l.align - 1);
        if (watch_.admit(taken, data, l.bytes, l.align) == nullptr) {
            pages_.give(taken);
            return refuse(0, "the heap has no memory for the books of guarded blocks");
        }
        include(taken);
        blocks_ += 1;
        return {data, l.bytes, l.align};
    }

    chunk refuse(int error, const char* why) noexcept
    {
        unguarded_ += 1;
        error_ = error;
        refusal_ = why;
        return {};
    }

    [[gnu::noinline]] void unguard(chunk c) noexcept
    {
        std::lock_guard const alone(lock_);
        if (record* const r = watch_.dismiss(c.data, {c.bytes, c.align}))
            retire(*r);
    }

    /// Into quarantine first: its memory goes back, its addresses stay. Nothing is filled, since
    /// nobody can write there.
    void retire(record& r) noexcept
    {
        blocks_ -= 1;
        bool const kept = pages_.quarantine(r.taken);
        watch_.books().retire(r);
        quarantined_ += r.taken.bytes;
        if (kept)
            shrink_quarantine(Options.quarantine);
        else
            let_go(r); // too many mappings; then at least this one goes
    }

    void shrink_quarantine(std::size_t bytes) noexcept
    {
        while (quarantined_ > bytes)
            let_go(*watch_.books().kept().oldest());
    }

    void let_go(record& r) noexcept
    {
        quarantined_ -= r.taken.bytes;
        pages_.give(watch_.close(r));
    }

    /// Guarded blocks are freed one by one where all others go at once.
    void forget_all() noexcept
    {
        std::lock_guard const alone(lock_);
        watch_.books().live().for_each([this](record& r) {
            watch_.inspect_fences(r);
            retire(r);
        });
    }

    /// All places are in one range, and nobody else's are: so it is enough to know
    /// the lowest and the highest. Whoever frees a block was given it after this.
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
    sample_countdown countdown_; // of this object, if not of each thread
    [[no_unique_address]] mutex_if<Options.shared> lock_;
    pages<in_one_range> pages_;
    watch_type watch_;
    std::size_t blocks_ = 0;
    std::size_t unguarded_ = 0;
    std::size_t quarantined_ = 0;
    int error_ = 0;
    const char* refusal_ = "";
};

} // namespace mallard
