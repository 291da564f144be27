// An adaptor that finds double frees, overruns, leaks and other bugs of its callers.
#pragma once

#include <mallard/adapt/adaptor.hpp>
#include <mallard/detail/debug/block_records.hpp>
#include <mallard/detail/threads/locks.hpp>

#include <optional>

namespace mallard {

/// Options of `checked`.
///
///     constexpr mallard::checked_options with_calls{.redzone = 64, .frames = 8};
///     mallard::checked<mallard::multipool<>, with_calls> orders("orders");
struct checked_options {
    /// Number of filled bytes before and after a block. The number before a block is rounded up to
    /// a multiple of 8 and the block's alignment.
    std::size_t redzone = 16;
    /// Maximum bytes of freed blocks in quarantine, where uses after the free are found.
    std::size_t quarantine = std::size_t{1} << 16;
    /// How many frames of the call stack are recorded at each allocation and at each free. A number
    /// above 0 needs the compiled library.
    std::size_t frames = 0;
    bool leaks = true;   ///< the destructor reports blocks in use; turn off over an arena
    bool shared = false; ///< any thread may call; each call holds a lock
};

/// Finds bugs in the calls to any allocator or source:
///
///     mallard::checked<mallard::multipool<>> orders("orders");
///     void* block = orders.allocate({40});
///     orders.deallocate(block, {40});
///     orders.deallocate(block, {40}); // mallard: double free of ... in "orders"
///
/// Finds double frees, frees of an address that is not a block, frees with another layout than the
/// allocation, writes before or after a block, writes into a freed block, and leaks. Bad frees are
/// found at the free. Bad writes are found later, when the block is freed or leaves the quarantine,
/// at `verify()`, at `reset`, or in the destructor. AddressSanitizer and Valgrind would stop at the
/// write itself. A `fault_handler` is called with each fault; the default handler stops the
/// process. If the handler returns, the program continues. Then a block freed with another layout
/// is freed with the layout of its allocation, any other bad free is ignored, and overwritten
/// redzones are filled again.
///
/// A freed block is filled with a pattern and put in quarantine. When more than
/// `Options.quarantine` bytes are in quarantine, the oldest block leaves the quarantine. When the
/// wrapped allocator is exhausted, the quarantine is emptied. A second free of a block that has
/// left the quarantine is reported as a free of a foreign address.
///
/// Each request is enlarged by redzones (`room_for`), so a wrapped pool needs larger blocks. The
/// record of a block is outside the block, and uses about 100 bytes of `Heap`. When `Heap` is
/// exhausted, the allocation fails. An allocation and its free cost about 90 ns together. Each of
/// them fills the block with a pattern.
///
/// A `checked` is for one thread at a time. With `Options.shared`, any thread may call it, and each
/// call holds a lock. It is neither copied nor moved.
template <source Inner = default_heap, checked_options Options = checked_options{},
          source Heap = default_heap>
class checked : public adaptor<checked<Inner, Options, Heap>, Inner> {
    using base = adaptor<checked, Inner>;
    friend adaptor_access;

    using inspector_type = block_inspector<Options.frames, Heap>;
    using record = typename inspector_type::record;

public:
    /// Whether any thread may call this object (see `shareable`).
    static constexpr bool any_thread = Options.shared;

    /// Makes an allocator. `reporter` contains the name of the allocator for messages, and
    /// optionally a fault handler.
    explicit checked(fault_reporter reporter = {}) noexcept
        requires std::default_initializable<Inner>
        : inspector_(reporter)
    {
    }
    /// Makes an allocator, and constructs the wrapped allocator from `args`.
    template <class... Args>
        requires std::constructible_from<Inner, Args...>
    checked(fault_reporter reporter, std::in_place_t, Args&&... args)
        : base(std::in_place, std::forward<Args>(args)...), inspector_(reporter)
    {
    }
    ~checked()
    {
        verify();
        if (Options.leaks)
            inspector_.report_leaks();
        empty_quarantine();
        inspector_.remove_all(); // does not free leaked blocks; the program may use them
    }

    /// Looks for overwritten bytes around all blocks in use, in the blocks in quarantine, and
    /// around those.
    ///
    ///     orders.verify(); // the overrun happened before this line
    void verify() noexcept
    {
        std::lock_guard const alone(lock_);
        inspect_all();
    }

    /// Returns the layout with which a live block was requested, or nothing if `block` is not live.
    /// With this function, a caller can free a block whose size it does not know.
    std::optional<layout> requested_layout(const void* block) noexcept
    {
        std::lock_guard const alone(lock_);
        const record* const r = inspector_.records().find(block);
        if (r == nullptr || r->is_free)
            return std::nullopt;
        return layout{r->bytes, r->align};
    }

    /// Returns the layout that is requested from the wrapped allocator for a block of layout `l`
    /// and its redzones.
    static constexpr layout room_for(layout l) noexcept
    {
        return {align_up(front_bytes(l.align) + l.bytes + Options.redzone, asan_unit),
                std::max(l.align, asan_unit)};
    }

private:
    // AddressSanitizer has one shadow byte for 8 bytes, so no two blocks may share 8 bytes.
    static constexpr std::size_t asan_unit = 8;

    static constexpr std::size_t front_bytes(std::size_t align) noexcept
    {
        return align_up(Options.redzone, std::max(align, asan_unit));
    }

    // `take_one` and `give_one` are not inlined, so that a recorded call stack starts at the
    // function that calls them.
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
        // A source may supply more than requested.
        std::size_t const bytes = l.bytes + (taken.bytes - room.bytes);
        if (record* const r = inspector_.register_block(taken, data, bytes, l.align)) [[likely]] {
            inspector_.fill_fresh(*r);
            return {data, bytes, l.align};
        }
        this->give_below(taken);
        if constexpr (Throws)
            throw_bad_alloc();
        return {};
    }

    /// Allocates memory for a block. If the wrapped allocator is exhausted, empties the quarantine
    /// and tries once more.
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
        record* const r = inspector_.validate_free(c.data, {c.bytes, c.align});
        if (r == nullptr)
            return;
        inspector_.fill_freed(*r);
        inspector_.records().move_to_quarantine(*r);
        quarantined_ += r->taken.bytes;
        while (quarantined_ > Options.quarantine)
            end_quarantine(*inspector_.records().quarantine().oldest());
    }

    /// Checks a block and its redzones for the last time, and removes the block from the
    /// quarantine.
    void end_quarantine(record& r) noexcept
    {
        inspector_.inspect_redzones(r);
        inspector_.inspect_freed(r);
        quarantined_ -= r.taken.bytes;
        this->give_below(inspector_.remove(r));
    }

    void empty_quarantine() noexcept
    {
        inspector_.records().quarantine().for_each([this](record& r) { end_quarantine(r); });
    }

    /// Removes all records. `reset` and `release` call this before the wrapped allocator frees all
    /// blocks.
    void forget_all() noexcept
    {
        std::lock_guard const alone(lock_);
        inspect_all();
        inspector_.remove_all();
        quarantined_ = 0;
    }

    void inspect_all() noexcept
    {
        inspector_.records().live().for_each([this](record& r) { inspector_.inspect_redzones(r); });
        inspector_.records().quarantine().for_each([this](record& r) {
            inspector_.inspect_redzones(r);
            inspector_.inspect_freed(r);
        });
    }

    [[no_unique_address]] mutex_if<Options.shared> lock_;
    inspector_type inspector_;
    std::size_t quarantined_ = 0; // bytes, redzones included
};

} // namespace mallard
