// An allocator that finds the bugs of its callers.
#pragma once

#include <mallard/adapt/adaptor.hpp>
#include <mallard/detail/debug/block_watch.hpp>
#include <mallard/detail/threads/locks.hpp>

#include <optional>

namespace mallard {

struct checked_options {
    std::size_t fence = 16; ///< bytes on either side of a block, or its alignment if that is more
    std::size_t quarantine = std::size_t{1} << 16; ///< most bytes of freed blocks that are kept
    std::size_t frames = 0; ///< calls recorded at each allocation and free; needs the library
    bool leaks = true;      ///< report what is in use at the end; not for what an arena lets die
    bool shared = false;    ///< any thread may call, one after the other
};

/// Any allocator or source, and what its callers do wrong:
///
///     mallard::checked<mallard::multipool<>> orders("orders");
///     void* block = orders.allocate({40});
///     orders.deallocate(block, {40});
///     orders.deallocate(block, {40}); // mallard: double free of ... in "orders"
///
/// A double free, a free of what is no block, one with another layout than the block
/// was allocated with, a write behind or in front of a block, or into a freed one,
/// and what is never freed. Frees are judged at once; writes when the block is
/// freed, when it leaves the quarantine, at `verify()`, at `reset` and at the end; under
/// AddressSanitizer and Valgrind at the write itself. Who hears of it, `fault_handler`
/// says; by default the process stops. If it goes on, a bad free has changed
/// nothing, a wrong layout is put right, and what was overwritten is mended.
///
/// A freed block stays in quarantine, filled, until `Options.quarantine` bytes are
/// there, or what is wrapped has no memory left; a double free of it is told exactly,
/// a later one as that of a stranger.
///
/// Each block is asked for with its fences (`room_for`), so a pool that is wrapped
/// wants larger blocks. The books are on `Heap`, about 100 bytes a block, apart from
/// the blocks, hence safe from those who overwrite. When the heap refuses, so does
/// this. A pair of calls costs about 90 ns, and the bytes of the block written twice.
///
/// What is wrapped is called by one thread at a time, if `shared` under the lock.
/// Neither copied nor moved.
template <source Inner = default_heap, checked_options Options = checked_options{},
          source Heap = default_heap>
class checked : public adaptor<checked<Inner, Options, Heap>, Inner> {
    using base = adaptor<checked, Inner>;
    friend base;

    using watch_type = block_watch<Options.frames, Heap>;
    using record = typename watch_type::record;

public:
    static constexpr bool any_thread = Options.shared;

    explicit checked(fault_reporter reporter = {}) noexcept
        requires std::default_initializable<Inner>
        : watch_(reporter)
    {
    }
    template <class... Args>
        requires std::constructible_from<Inner, Args...>
    checked(fault_reporter reporter, std::in_place_t, Args&&... args)
        : base(std::in_place, std::forward<Args>(args)...), watch_(reporter)
    {
    }
    ~checked()
    {
        verify();
        if (Options.leaks)
            watch_.report_leaks();
        empty_quarantine();
        watch_.close_all(); // what leaks stays where it is: somebody may still use it
    }

    /// Looks for overwritten bytes around all blocks and in the quarantine.
    void verify() noexcept
    {
        std::lock_guard const alone(lock_);
        inspect_all();
    }

    /// What the block in use that begins there was asked for with. For a caller who frees and
    /// does not know; `deallocate` judges it all the same.
    std::optional<layout> asked_for(const void* block) noexcept
    {
        std::lock_guard const alone(lock_);
        const record* const r = watch_.books().find(block);
        if (r == nullptr || r->is_free)
            return std::nullopt;
        return layout{r->bytes, r->align};
    }

    /// What is asked for a block of `l`: fences, and the block between them, so that
    /// both ends of it are multiples of what they must be.
    static constexpr layout room_for(layout l) noexcept
    {
        return {align_up(front_bytes(l.align) + l.bytes + Options.fence, granule),
                std::max(l.align, granule)};
    }

private:
    // Blocks do not share a granule, for which AddressSanitizer has one byte.
    static constexpr std::size_t granule = 8;

    static constexpr std::size_t front_bytes(std::size_t align) noexcept
    {
        return align_up(Options.fence, std::max(align, granule));
    }

    // Not inlined: the calls that are recorded begin behind it, as behind give_one.
    template <bool Throws>
    [[gnu::noinline]] chunk take_one(layout l) noexcept(!Throws)
    {
        std::lock_guard const alone(lock_);
        if (l.bytes > bytes_max / 2 || l.align > bytes_max / 8) [[unlikely]]
            return refuse_absurd<Throws>(this->upstream(), l);
        layout const room = room_for(l);
        chunk const taken = take_room<Throws>(room);
        if (taken.data == nullptr)
            return {};
        std::byte* const data = static_cast<std::byte*>(taken.data) + front_bytes(l.align);
        std::size_t const bytes = l.bytes + (taken.bytes - room.bytes); // a source may give more
        if (record* const r = watch_.admit(taken, data, bytes, l.align)) [[likely]] {
            watch_.fill_fresh(*r);
            return {data, bytes, l.align};
        }
        this->give_below(taken);
        if constexpr (Throws)
            throw_bad_alloc();
        return {};
    }

    /// Before it is refused, the quarantine goes.
    template <bool Throws>
    chunk take_room(layout room) noexcept(!Throws)
    {
        if (quarantined_ != 0) {
            chunk const taken = this->template take_below<false>(room);
            if (taken.data != nullptr)
                return taken;
            empty_quarantine();
        }
        return this->template take_below<Throws>(room);
    }

    [[gnu::noinline]] void give_one(chunk c) noexcept
    {
        std::lock_guard const alone(lock_);
        record* const r = watch_.dismiss(c.data, {c.bytes, c.align});
        if (r == nullptr)
            return;
        watch_.fill_freed(*r);
        watch_.books().retire(*r);
        quarantined_ += r->taken.bytes;
        while (quarantined_ > Options.quarantine)
            let_go(*watch_.books().kept().oldest());
    }

    /// Out of the quarantine. The last look at the block, and at what is around it.
    void let_go(record& r) noexcept
    {
        watch_.inspect_fences(r);
        watch_.inspect_freed(r);
        quarantined_ -= r.taken.bytes;
        this->give_below(watch_.close(r));
    }

    void empty_quarantine() noexcept
    {
        watch_.books().kept().for_each([this](record& r) { let_go(r); });
    }

    /// What is wrapped frees all blocks itself.
    void forget_all() noexcept
    {
        std::lock_guard const alone(lock_);
        inspect_all();
        watch_.close_all();
        quarantined_ = 0;
    }

    void inspect_all() noexcept
    {
        watch_.books().live().for_each([this](record& r) { watch_.inspect_fences(r); });
        watch_.books().kept().for_each([this](record& r) {
            watch_.inspect_fences(r);
            watch_.inspect_freed(r);
        });
    }

    [[no_unique_address]] mutex_if<Options.shared> lock_;
    watch_type watch_;
    std::size_t quarantined_ = 0; // bytes taken
};

} // namespace mallard
