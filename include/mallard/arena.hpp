// An arena, which allocates blocks by moving a pointer, and frees all of them together.
#pragma once

#include <mallard/detail/arena/arena_objects.hpp>
#include <mallard/detail/base/annotate.hpp>
#include <mallard/detail/base/event_count.hpp>
#include <mallard/detail/base/fatal_objects.hpp>
#include <mallard/options.hpp>
#include <mallard/source.hpp>

namespace mallard {

/// Options of `arena` and `shared_arena`.
///
///     mallard::arena<mallard::default_heap, mallard::arena_options{.checks = mallard::check::on}>
///     a;
struct arena_options {
    /// The sizes of chunks. Each chunk is four times as large as the one before. If sizes only
    /// doubled, the destructor of an arena would free more than M_TRIM_THRESHOLD bytes of adjacent
    /// chunks in glibc's heap. Then glibc would return the pages to the system, and the next arena
    /// would have to fault them in again (docs/decisions/0023).
    growth grow{.first = 1024, .max = std::size_t{1} << 24, .num = 4};
    std::size_t min_align = 1; ///< the minimum alignment of blocks; an allocation with at most this
                               ///< alignment needs fewer instructions
    check checks = check::off; ///< verify the order of rewinds, and mark free memory for Valgrind
};

/// The header of an arena chunk. The header lies at the end of the chunk, so the first block has
/// the alignment of the chunk.
struct arena_chunk {
    static constexpr std::size_t align = 16; ///< the alignment of the header

    arena_chunk* next; ///< the next chunk of the same list
    chunk taken;       ///< the chunk as the source returned it

    /// Returns the first byte of the chunk.
    std::byte* begin() const noexcept { return static_cast<std::byte*>(taken.data); }
    /// Returns the end of the memory for blocks, which is the address of the header.
    std::byte* end() noexcept { return reinterpret_cast<std::byte*>(this); }
    /// Returns the size of the memory for blocks.
    std::size_t bytes() noexcept { return static_cast<std::size_t>(end() - begin()); }

    /// Returns the address that a block of layout `l` would have if the chunk were empty, or null
    /// when the block does not fit.
    std::byte* place(layout l) noexcept
    {
        std::byte* const p = align_up(begin(), l.align);
        return p < end() && l.bytes <= static_cast<std::size_t>(end() - p) ? p : nullptr;
    }

    /// Returns the size of a chunk that has room for one block of `block` bytes.
    static constexpr std::size_t bytes_for(std::size_t block) noexcept
    {
        return saturating_add(block, align - 1 + sizeof(arena_chunk)) & ~(align - 1);
    }

    /// Constructs the header at the end of a chunk from the source, and returns the header.
    static arena_chunk* make(chunk taken) noexcept
    {
        std::size_t const offset = (taken.bytes & ~(align - 1)) - sizeof(arena_chunk);
        return ::new (static_cast<std::byte*>(taken.data) + offset) arena_chunk{nullptr, taken};
    }
};
static_assert(sizeof(arena_chunk) % arena_chunk::align == 0);

/// The chunks of an arena, in a list of used chunks and a list of idle chunks, both newest first.
class arena_chunks {
public:
    constexpr arena_chunks() noexcept = default;
    constexpr arena_chunks(arena_chunks&& other) noexcept
        : used_(std::exchange(other.used_, nullptr)),
          oldest_used_(std::exchange(other.oldest_used_, nullptr)),
          idle_(std::exchange(other.idle_, nullptr)), uses_(std::move(other.uses_))
    {
    }

    /// Returns the newest used chunk, which links to the older ones.
    arena_chunk* used() const noexcept { return used_; }
    /// Returns the newest idle chunk, which links to the older ones.
    arena_chunk* idle() const noexcept { return idle_; }

    /// Returns how many times a chunk was added to the used list.
    std::size_t uses() const noexcept { return uses_; }

    /// Adds a chunk to the used list.
    void use(arena_chunk* c) noexcept
    {
        if (used_ == nullptr)
            oldest_used_ = c;
        ++uses_;
        c->next = std::exchange(used_, c);
    }

    /// Removes and returns the newest idle chunk in which a block of layout `l` fits. Returns null
    /// if no idle chunk has room.
    arena_chunk* take_idle(layout l) noexcept
    {
        for (arena_chunk** link = &idle_; *link != nullptr; link = &(*link)->next)
            if ((*link)->place(l) != nullptr)
                return std::exchange(*link, (*link)->next);
        return nullptr;
    }

    /// Moves all used chunks that are newer than `last` to the idle list.
    void retire_until(arena_chunk* last) noexcept
    {
        if (used_ == last)
            return;
        arena_chunk* oldest = used_;
        while (oldest->next != last)
            oldest = oldest->next;
        oldest->next = std::exchange(idle_, std::exchange(used_, last));
    }

    /// Moves all used chunks to the idle list, in constant time.
    void retire_all() noexcept
    {
        if (used_ != nullptr)
            oldest_used_->next = std::exchange(idle_, std::exchange(used_, nullptr));
    }

    /// Removes the oldest idle chunks, until at most `keep` idle bytes are left. Returns the list
    /// of the removed chunks.
    arena_chunk* detach_idle(std::size_t keep) noexcept
    {
        arena_chunk** last = &idle_;
        for (; *last != nullptr && (*last)->taken.bytes <= keep; last = &(*last)->next)
            keep -= (*last)->taken.bytes;
        return std::exchange(*last, nullptr);
    }

    /// Removes all used chunks, and returns them as a list.
    arena_chunk* detach_used() noexcept { return std::exchange(used_, nullptr); }

    /// Returns whether `p` points into a used or an idle chunk. O(chunks).
    bool owns(const void* p) const noexcept
    {
        for (const arena_chunk* const list : {used_, idle_})
            for (const arena_chunk* c = list; c != nullptr; c = c->next)
                if (c->taken.data <= p && p < c)
                    return true;
        return false;
    }

    /// Returns whether `wanted` is in the used list. O(chunks).
    bool is_used(const arena_chunk* wanted) const noexcept
    {
        const arena_chunk* c = used_;
        while (c != wanted && c != nullptr)
            c = c->next;
        return c == wanted;
    }

private:
    arena_chunk* used_ = nullptr;
    arena_chunk* oldest_used_ = nullptr; // the last of `used_`; unspecified while `used_` is empty
    arena_chunk* idle_ = nullptr;
    event_count uses_;
};

/// Gives numbers to the marks of an arena, to detect a rewind to a mark that is no longer valid.
template <bool Checked>
class mark_numbers {
public:
    std::size_t next() noexcept { return ++last_; } ///< the number of a new mark

    /// Records a rewind to the mark with this number, which makes all later marks stale.
    constexpr void rewound_to(std::size_t number) noexcept
    {
        if (number == last_)
            return; // no mark became stale
        valid_ = number;
        stale_max_ = last_;
    }
    /// Returns whether the mark with this number is stale, because of a rewind to an older mark.
    bool is_stale(std::size_t number) const noexcept
    {
        return valid_ < number && number <= stale_max_;
    }

private:
    // The last rewind made the marks with numbers in (valid_, stale_max_] stale.
    std::size_t last_ = 0;
    std::size_t valid_ = 0;
    std::size_t stale_max_ = 0;
};

/// Replaces `mark_numbers` when checks are off. Marks then have no numbers.
template <>
class mark_numbers<false> {
public:
    static constexpr std::size_t next() noexcept { return 0; }             ///< always 0
    static constexpr void rewound_to(std::size_t) noexcept {}              ///< does nothing
    static constexpr bool is_stale(std::size_t) noexcept { return false; } ///< always false
};

/// Allocates blocks by moving a pointer through chunks, and frees all blocks together.
///
///     mallard::arena<> scratch;
///     auto& node = scratch.make<tree_node>(7);       // its destructor never runs
///     auto& file = scratch.own<std::ofstream>(path); // its destructor runs at the reset
///     scratch.reset();                               // frees all blocks, keeps the memory
///
/// The first chunk has 1 KiB. Each later chunk is four times as large as the one before, up to 16
/// MiB. A request that is larger than the next chunk gets a chunk just large enough for the
/// request, and does not enlarge later chunks. Afterwards, the arena continues in the new chunk or
/// in the previous one, whichever has more free bytes. So a large block does not waste the rest of
/// the previous chunk. When the source cannot supply a chunk, the arena requests half the size,
/// then a quarter, and so on down to the size of the request.
///
/// `deallocate` frees only the block that was allocated last, and not even that if it is a large
/// block with a separate chunk. For any other block, it does nothing. Objects made by `make` are
/// never destroyed; to skip the destructors of whole containers, see `winked`. `allocate` throws
/// `std::bad_alloc`, or what the source throws; `try_allocate` returns null. A failed call changes
/// nothing. One thread at a time may use an arena.
///
/// An arena is not a `std::pmr::memory_resource`, so `std::pmr::vector<int> v(&scratch)` finds no
/// matching constructor. For containers of `std::pmr`, write `mallard::pmr::arena scratch`, or
/// `mallard::pmr_resource<mallard::arena<>> scratch` (<mallard/pmr.hpp>).
///
/// The oldest description of a bump allocator with chunks and marks that we know is Hanson, "Fast
/// allocation and deallocation of memory based on object lifetimes", 1990.
template <source Source = default_heap, arena_options Options = arena_options{}>
class arena : public arena_objects<arena<Source, Options>> {
    friend class arena_objects<arena>;
    static_assert(is_power_of_two(Options.min_align) && Options.min_align <= 16);
    static constexpr bool checks_on = Options.checks == check::on;

    struct position {
        arena_chunk* used;
        std::byte* cursor;
        std::byte* end;
        finalizers::position newest_owned;
        std::size_t number; // 0 with check::off
    };

public:
    /// A position in the arena, for `rewind`. A rewind to a mark makes all later marks stale.
    using mark_type = position;

    constexpr arena() noexcept
        requires std::default_initializable<Source>
    = default;
    /// Makes an empty arena over a source. Allocates nothing.
    constexpr explicit arena(Source from) noexcept : source_(std::move(from)) {}

    /// Makes an arena that allocates first from a buffer of the caller, and again after every
    /// `reset`. The buffer must outlive the arena, and is never returned to the source.
    ///
    ///     std::array<std::byte, 4096> buffer;
    ///     mallard::arena<> scratch(buffer);
    constexpr explicit arena(std::span<std::byte> initial, Source from = Source())
        : source_(std::move(from)), initial_(whole_units(initial))
    {
        begin_again();
    }
    /// Makes an arena that uses a buffer of the caller first, with a growth rule.
    constexpr explicit arena(std::span<std::byte> initial, growth_argument<Options.grow> rule,
                             Source from = Source())
        : source_(std::move(from)), initial_(whole_units(initial)), growth_(rule)
    {
        begin_again();
    }
    /// Makes an empty arena with a growth rule (see `growth_argument`).
    constexpr explicit arena(growth_argument<Options.grow> rule, Source from = Source())
        : source_(std::move(from)), growth_(rule)
    {
    }

    /// Moves all blocks to this arena. The moved-from arena is empty and usable.
    arena(arena&& other) noexcept
        requires std::move_constructible<Source>
        : source_(std::move(other.source_)), cursor_(std::exchange(other.cursor_, nullptr)),
          end_(std::exchange(other.end_, nullptr)), chunks_(std::move(other.chunks_)),
          owned_(std::exchange(other.owned_, {})), marks_(std::exchange(other.marks_, {})),
          initial_(std::exchange(other.initial_, {})),
          growth_(std::exchange(other.growth_, other.growth_.anew()))
    {
    }
    arena& operator=(arena&& other) noexcept
        requires std::movable<Source>
    {
        return replace_by_move(*this, std::move(other));
    }
    ~arena()
    {
        release();
        unpoison<checks_on>(initial_.data(), initial_.size());
    }

    /// Allocates a block, or throws `std::bad_alloc` or what the source throws.
    [[nodiscard]] void* allocate(layout l) { return bump<true>(l); }
    /// Allocates a block, or returns null.
    [[nodiscard]] void* try_allocate(layout l) noexcept { return bump<false>(l); }

    /// Frees the block if no later block follows it in the chunk from which the arena allocates.
    /// This is the block that was allocated last, unless that block is large and has a separate
    /// chunk. Does nothing for any other block.
    void deallocate(void* block, layout l) noexcept
    {
        auto* const p = static_cast<std::byte*>(block);
        poison<checks_on>(p, l.bytes);
        if (p + rounded(l.bytes) == cursor_)
            cursor_ = p;
    }

    /// Grows or shrinks a block in place. Only the block that `deallocate` would free can grow, and
    /// only within its chunk. Returns false, and changes nothing, when the block cannot grow or
    /// shrink in place.
    ///
    ///     if (!scratch.try_expand(text, {16, 1}, {32, 1})) ... // allocate anew, and copy
    [[nodiscard]] bool try_expand(void* block, layout from, layout to) noexcept
    {
        auto* const p = static_cast<std::byte*>(block);
        if (to.align > from.align)
            return false;
        if (p + rounded(from.bytes) == cursor_) {
            if (to.bytes > static_cast<std::size_t>(end_ - p))
                return false;
            cursor_ = p + rounded(to.bytes);
            if (to.bytes < from.bytes)
                poison<checks_on>(p + to.bytes, from.bytes - to.bytes);
            else
                unpoison<checks_on>(p + from.bytes, to.bytes - from.bytes);
            return true;
        }
        return to.bytes <= from.bytes;
    }

    /// Returns the current position, to be passed to `rewind`. A `scope` calls `rewind` in its
    /// destructor.
    ///
    ///     auto const before = scratch.mark();
    ///     parse(scratch, line);
    ///     scratch.rewind(before);
    [[nodiscard]] mark_type mark() const noexcept
    {
        return {chunks_.used(), cursor_, end_, owned_.newest(), marks_.next()};
    }

    /// Frees all blocks that were allocated after the mark, and keeps the memory. O(chunks since
    /// the mark). If an older block has grown by `try_expand` since the mark, the added bytes are
    /// freed too.
    ///
    /// A rewind makes all later marks stale. With `check::on`, a rewind to a mark that the last
    /// rewind made stale stops the process. A mark that an earlier rewind made stale may go
    /// unnoticed.
    void rewind(mark_type to) noexcept
    {
        if (marks_.is_stale(to.number) || (checks_on && !chunks_.is_used(to.used)))
            fatal_stale_mark();
        owned_.run_until(to.newest_owned);
        for (arena_chunk* c = chunks_.used(); c != to.used; c = c->next)
            poison_all(c); // without a sanitizer, compilers remove the loop
        chunks_.retire_until(to.used);
        cursor_ = to.cursor;
        end_ = to.end;
        poison<checks_on>(cursor_, room(cursor_, end_));
        marks_.rewound_to(to.number);
    }

    /// Frees all blocks and keeps all memory. Takes O(1) time plus the time for destructors of
    /// owned objects. The arena starts again in its initial buffer. Without an initial buffer, the
    /// arena starts again in the chunk that was last put into use, which is usually the largest.
    void reset() noexcept
    {
        owned_.run_until(nullptr);
        for (arena_chunk* c = chunks_.used(); c != nullptr; c = c->next)
            poison_all(c);
        chunks_.retire_all();
        begin_again();
        if (initial_.empty())
            if (arena_chunk* const newest = chunks_.take_idle({1, 1}))
                enter(newest, newest->begin());
    }

    /// Frees all blocks and returns all memory to the source.
    void release() noexcept
    {
        owned_.run_until(nullptr);
        give_all(chunks_.detach_used());
        give_all(chunks_.detach_idle(0));
        growth_.restart();
        begin_again();
    }

    /// Returns idle chunks to the source, oldest first, until at most `keep` idle bytes are left.
    /// Used chunks stay.
    void trim(std::size_t keep = 0) noexcept { give_all(chunks_.detach_idle(keep)); }

    /// Returns whether `p` points into memory of this arena, used or idle. O(chunks).
    [[nodiscard]] bool owns(const void* p) const noexcept
    {
        return is_inside(initial_, p) || chunks_.owns(p);
    }

    /// Returns the statistics. O(chunks). Unused bytes at the end of a used chunk count as live
    /// bytes, except in the current chunk.
    [[nodiscard]] statistics stats() const noexcept
    {
        statistics s{.bytes_idle = room(cursor_, end_),
                     .bytes_taken = growth_.taken(),
                     .growths = growth_.steps(),
                     .refills = chunks_.uses()};
        for (arena_chunk* c = chunks_.idle(); c != nullptr; c = c->next, ++s.chunks)
            s.bytes_idle += c->bytes();
        for (arena_chunk* c = chunks_.used(); c != nullptr; c = c->next, ++s.chunks)
            s.bytes_live += c->bytes();
        s.bytes_live += initial_.size();
        s.bytes_live -= room(cursor_, end_);
        return s;
    }

    /// Returns the source of the chunks.
    Source& upstream() noexcept { return source_; }
    const Source& upstream() const noexcept { return source_; }

private:
    static std::size_t room(const std::byte* from, const std::byte* to) noexcept
    {
        return static_cast<std::size_t>(to - from);
    }

    // Rounds a block size up. A block of 0 bytes occupies 1 byte, so that no other block has the
    // same address.
    static constexpr std::size_t rounded(std::size_t bytes) noexcept
    {
        return align_up(bytes + (bytes == 0), Options.min_align);
    }

    // Returns the part of an initial buffer that starts and ends at multiples of min_align. The
    // cursor is always such a multiple.
    static constexpr std::span<std::byte> whole_units(std::span<std::byte> bytes) noexcept
    {
        if constexpr (Options.min_align == 1)
            return bytes;
        std::byte* const first = align_up(bytes.data(), Options.min_align);
        std::size_t const skipped = std::min(room(bytes.data(), first), bytes.size());
        return bytes.subspan(skipped, (bytes.size() - skipped) & ~(Options.min_align - 1));
    }

    // Allocates at the cursor, or calls `grow`. No test is needed for an arena without a chunk,
    // because cursor and end are both null, so nothing fits. No test is needed for an overflow of
    // `align_up`, because a block that causes one fits in no chunk.
    template <bool Throws>
    [[gnu::always_inline]] void* bump(layout l) noexcept(!Throws)
    {
        std::byte* const p = aligned_cursor(l.align);
        std::size_t const bytes = l.bytes + (l.bytes == 0);
        if (fits(p, bytes)) [[likely]] {
            cursor_ = p + align_up(bytes, Options.min_align);
            unpoison<checks_on>(p, bytes);
            return p;
        }
        return grow<Throws>(l.bytes, l.align);
    }

    // Rounds the cursor up to a multiple of `align`. The cursor is always a multiple of min_align.
    [[gnu::always_inline]] std::byte* aligned_cursor(std::size_t align) const noexcept
    {
        if (__builtin_constant_p(align <= Options.min_align) && align <= Options.min_align)
            return cursor_;
        return reinterpret_cast<std::byte*>(
            align_up(reinterpret_cast<std::uintptr_t>(cursor_), align));
    }

    [[gnu::always_inline]] bool fits(std::byte* p, std::size_t bytes) const noexcept
    {
        // For a small constant size, an addition is one instruction shorter than the subtraction
        // below. The sum cannot wrap, because no chunk reaches into the last page of the address
        // space.
        if (__builtin_constant_p(bytes <= page_bytes) && bytes <= page_bytes)
            return reinterpret_cast<std::uintptr_t>(p) + bytes <=
                   reinterpret_cast<std::uintptr_t>(end_); // p may be null
        return p <= end_ && bytes <= room(p, end_);
    }

    /// Runs the slow path. Allocates from an idle chunk with enough free bytes, or from a new
    /// chunk. Has two integer parameters, because passing a `layout` made the call 0.6 ns slower.
    template <bool Throws>
    MALLARD_COLD void* grow(std::size_t bytes, std::size_t align) noexcept(!Throws)
    {
        layout const l(bytes, align);
        if (arena_chunk* const idle = chunks_.take_idle(l))
            return allocate_in(idle, l);
        chunk const taken = take_chunk<Throws>(l);
        if (taken.data == nullptr)
            return nullptr; // nothing has changed
        arena_chunk* const c = arena_chunk::make(taken);
        poison_all(c);
        return allocate_in(c, l);
    }

    template <bool Throws>
    chunk take_chunk(layout l) noexcept(!Throws)
    {
        std::size_t const align = std::max(l.align, arena_chunk::align);
        if (l.bytes > bytes_max - page_bytes)
            return refuse_absurd<Throws>(source_, {l.bytes, align});
        std::size_t const bytes = align_up(l.bytes + (l.bytes == 0), arena_chunk::align);
        layout const least(bytes + sizeof(arena_chunk), align);
        // Under a growth limit, the chunk request is reduced to a whole number of blocks of this
        // size.
        std::size_t const each = align_up(rounded(l.bytes), l.align);
        return take_step<Throws>(source_, growth_, least, least.bytes, [&](std::size_t step) {
            return growth_.is_limited() ? step - (step - least.bytes) % each : step;
        });
    }

    void* allocate_in(arena_chunk* c, layout l) noexcept
    {
        std::byte* const p = c->place(l);
        enter(c, p + rounded(l.bytes));
        unpoison<checks_on>(p, l.bytes);
        return p;
    }

    /// Puts `c` into use. The arena continues at `rest` in `c`, unless the current chunk has more
    /// free bytes.
    void enter(arena_chunk* c, std::byte* rest) noexcept
    {
        chunks_.use(c);
        if (rest <= c->end() && room(rest, c->end()) >= room(cursor_, end_)) {
            cursor_ = rest;
            end_ = c->end();
        }
    }

    // Returns a list of chunks to the source. Does not write to the chunks, because they may be in
    // sealed (read-only) pages.
    void give_all(arena_chunk* c) noexcept
    {
        while (c != nullptr) {
            chunk const taken = std::exchange(c, c->next)->taken;
            unpoison<checks_on>(taken.data, taken.bytes);
            growth_.gave(taken.bytes);
            give(source_, taken);
        }
    }

    template <class F>
    void with_finalizers(F f) noexcept
    {
        f(owned_);
    }

    constexpr void begin_again() noexcept
    {
        cursor_ = initial_.data();
        end_ = initial_.data() + initial_.size();
        poison<checks_on>(initial_.data(), initial_.size());
        marks_.rewound_to(0);
    }

    static void poison_all(arena_chunk* c) noexcept { poison<checks_on>(c->begin(), c->bytes()); }

    // Between any two calls, the bytes from cursor_ to end_ are free memory at the end of the
    // initial buffer or of a used chunk. In an arena without memory both pointers are null, as if
    // the chunk were full.
    [[no_unique_address]] Source source_{};
    std::byte* cursor_ = nullptr;
    std::byte* end_ = nullptr;
    arena_chunks chunks_;
    finalizers owned_;
    [[no_unique_address]] mutable mark_numbers<checks_on> marks_;
    std::span<std::byte> initial_;
    growth_state<Options.grow> growth_;
};

/// Marks an arena in its constructor, and rewinds the arena to the mark in its destructor.
///
///     { mallard::scope frame(scratch); parse(scratch, line); }
template <class Arena>
class [[nodiscard]] scope {
public:
    /// Marks the current position of the arena.
    [[nodiscard]] explicit scope(Arena& arena) noexcept : arena_(arena), mark_(arena.mark()) {}
    ~scope() { arena_.rewind(mark_); }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

private:
    Arena& arena_;
    typename Arena::mark_type mark_;
};

} // namespace mallard
