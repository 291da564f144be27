// An arena: blocks by moving a pointer, all given back at once.
#pragma once

#include <mallard/detail/arena/arena_chunks.hpp>
#include <mallard/detail/arena/arena_objects.hpp>
#include <mallard/detail/base/annotate.hpp>
#include <mallard/detail/base/scope.hpp>
#include <mallard/options.hpp>
#include <mallard/source.hpp>

#include <memory>
#include <type_traits>

namespace mallard {

/// Gives blocks by moving a cursor through a chunk; frees them all together.
///
///     mallard::arena<> scratch;
///     auto& node = scratch.make<tree_node>(7);   // its destructor never runs
///     auto& file = scratch.own<std::ofstream>(path); // its destructor will
///     scratch.reset();                           // all gone, memory kept
///
/// Takes nothing before the first block, then 1 KiB, then four times as much each, to 16 MiB. A
/// request too big for the next step gets a chunk of its own size; the chunk
/// with more room left stays current, so one large table neither wastes the
/// rest of a chunk nor inflates later ones. A step that the source refuses is
/// halved, down to the request itself.
///
/// `deallocate` takes back the last block and otherwise does nothing. Forgetting
/// destructors is the point: see `winked` for whole containers. `allocate`
/// throws `std::bad_alloc`, or what the source throws; `try_allocate` gives
/// null. A failed call has changed nothing. One thread at a time.
///
/// The first chunk pointer-bump allocator with marks that we know of is in
/// Hanson, "Fast allocation and deallocation of memory based on object
/// lifetimes", 1990.
template <source Source = default_heap, arena_options Options = arena_options{}>
class arena : public arena_objects<arena<Source, Options>> {
    friend class arena_objects<arena>;
    static_assert(is_power_of_two(Options.min_align) && Options.min_align <= 16);
    static constexpr bool watched = Options.checks == check::on;

    struct position {
        arena_chunk* used;
        std::byte* cursor;
        std::byte* end;
        finalizers::position owned;
        std::size_t number; // under check::on, else 0
    };

public:
    /// A point to come back to. Marks nest: rewind the newest first.
    using mark_type = position;

    constexpr arena() noexcept
        requires std::default_initializable<Source>
    = default;
    constexpr explicit arena(Source from) noexcept : source_(std::move(from)) {}

    /// Uses the caller's bytes first, and again after every `reset`. They are
    /// never given to the source, and outlive the arena.
    constexpr explicit arena(std::span<std::byte> initial, Source from = Source())
        : source_(std::move(from)), initial_(whole_units(initial))
    {
        begin_again();
    }
    constexpr explicit arena(std::span<std::byte> initial, growth_argument<Options.grow> rule,
                             Source from = Source())
        : source_(std::move(from)), initial_(whole_units(initial)), growth_(rule)
    {
        begin_again();
    }
    constexpr explicit arena(growth_argument<Options.grow> rule, Source from = Source())
        : source_(std::move(from)), growth_(rule)
    {
    }

    /// The moved-from arena is empty and usable.
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
        if (this != &other) {
            std::destroy_at(this);
            std::construct_at(this, std::move(other));
        }
        return *this;
    }
    ~arena()
    {
        release();
        unpoison<watched>(initial_.data(), initial_.size());
    }

    [[nodiscard]] void* allocate(layout l) { return bump<true>(l); }
    [[nodiscard]] void* try_allocate(layout l) noexcept { return bump<false>(l); }

    void deallocate(void* block, layout l) noexcept
    {
        auto* const p = static_cast<std::byte*>(block);
        poison<watched>(p, l.bytes);
        if (p + rounded(l.bytes) == cursor_)
            cursor_ = p;
    }

    /// Grows or shrinks a block where it is. Growing works for the last block,
    /// while its chunk has room. False: nothing has changed.
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
                poison<watched>(p + to.bytes, from.bytes - to.bytes);
            else
                unpoison<watched>(p + from.bytes, to.bytes - from.bytes);
            return true;
        }
        return to.bytes <= from.bytes;
    }

    [[nodiscard]] mark_type mark() const noexcept
    {
        return {chunks_.used(), cursor_, end_, owned_.newest(), marks_.next()};
    }

    /// Frees all that came after `to`, keeping the memory; O(chunks since). What
    /// an older block gained in place since then came after, too.
    /// `check::on` stops at a mark that a rewind has passed: the newest of those
    /// that passed any.
    void rewind(mark_type to) noexcept
    {
        if (marks_.is_stale(to.number) || (watched && !chunks_.is_used(to.used)))
            fatal_stale_mark();
        owned_.run_until(to.owned);
        for (arena_chunk* c = chunks_.used(); c != to.used; c = c->next)
            poison_all(c); // no loop is left of it without a sanitizer
        chunks_.retire_until(to.used);
        cursor_ = to.cursor;
        end_ = to.end;
        poison<watched>(cursor_, room(cursor_, end_));
        marks_.rewound_to(to.number);
    }

    /// Frees everything and keeps all memory; O(1) but for owned objects.
    /// Begins again in the initial buffer, or else in the newest, largest chunk.
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

    /// Frees everything and gives all memory back to the source.
    void release() noexcept
    {
        owned_.run_until(nullptr);
        give_all(chunks_.cut_used());
        give_all(chunks_.cut_idle(0));
        growth_.restart();
        begin_again();
    }

    /// Gives idle chunks back, oldest first, until at most `keep` bytes of them
    /// are left. What is in use is not touched.
    void trim(std::size_t keep = 0) noexcept { give_all(chunks_.cut_idle(keep)); }

    /// Whether `p` points into memory of this arena, in use or not; O(chunks).
    [[nodiscard]] bool owns(const void* p) const noexcept
    {
        return is_inside(initial_, p) || chunks_.owns(p);
    }

    /// Walks the chunks. Bytes left behind at the end of a full chunk count as live.
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

    Source& upstream() noexcept { return source_; }
    const Source& upstream() const noexcept { return source_; }

private:
    static std::size_t room(const std::byte* from, const std::byte* to) noexcept
    {
        return static_cast<std::size_t>(to - from);
    }

    // A block of 0 bytes is one of 1, so that it is distinct.
    static constexpr std::size_t rounded(std::size_t bytes) noexcept
    {
        return align_up(bytes + (bytes == 0), Options.min_align);
    }

    // The cursor goes from one multiple of min_align to the next, so the caller's
    // bytes begin and end at one.
    static constexpr std::span<std::byte> whole_units(std::span<std::byte> bytes) noexcept
    {
        if constexpr (Options.min_align == 1)
            return bytes;
        std::byte* const first = align_up(bytes.data(), Options.min_align);
        std::size_t const skipped = std::min(room(bytes.data(), first), bytes.size());
        return bytes.subspan(skipped, (bytes.size() - skipped) & ~(Options.min_align - 1));
    }

    // No test for "no chunk yet": then cursor and end are both null. Rounding
    // to min_align may wrap only for sizes that the comparison has refused.
    template <bool Throws>
    [[gnu::always_inline]] void* bump(layout l) noexcept(!Throws)
    {
        std::byte* const p = aligned_cursor(l.align);
        std::size_t const bytes = l.bytes + (l.bytes == 0);
        if (fits(p, bytes)) [[likely]] {
            cursor_ = p + align_up(bytes, Options.min_align);
            unpoison<watched>(p, bytes);
            return p;
        }
        return grow<Throws>(l.bytes, l.align);
    }

    // The cursor stands at a multiple of min_align.
    [[gnu::always_inline]] std::byte* aligned_cursor(std::size_t align) const noexcept
    {
        if (__builtin_constant_p(align <= Options.min_align) && align <= Options.min_align)
            return cursor_;
        return reinterpret_cast<std::byte*>(
            align_up(reinterpret_cast<std::uintptr_t>(cursor_), align));
    }

    [[gnu::always_inline]] bool fits(std::byte* p, std::size_t bytes) const noexcept
    {
        // Adding a small constant cannot wrap, as no chunk reaches into the last
        // page of the address space; it saves an instruction over subtracting.
        if (__builtin_constant_p(bytes <= page_bytes) && bytes <= page_bytes)
            return reinterpret_cast<std::uintptr_t>(p) + bytes <=
                   reinterpret_cast<std::uintptr_t>(end_); // p may be null
        return p <= end_ && bytes <= room(p, end_);
    }

    /// Finds room in an idle chunk or takes a new one, and gives the block from
    /// there. Takes numbers, as `large_blocks` does: a layout cost 0.6 ns here.
    template <bool Throws>
    MALLARD_COLD void* grow(std::size_t bytes, std::size_t align) noexcept(!Throws)
    {
        layout const l(bytes, align);
        if (arena_chunk* const idle = chunks_.take_idle(l))
            return give_from(idle, l);
        chunk const taken = take_chunk<Throws>(l);
        if (taken.data == nullptr)
            return nullptr; // nothing has changed
        arena_chunk* const c = arena_chunk::make(taken);
        poison_all(c);
        return give_from(c, l);
    }

    template <bool Throws>
    chunk take_chunk(layout l) noexcept(!Throws)
    {
        std::size_t const align = std::max(l.align, arena_chunk::align);
        if (l.bytes > bytes_max - page_bytes)
            return refuse_absurd<Throws>(source_, {l.bytes, align});
        std::size_t const bytes = align_up(l.bytes + (l.bytes == 0), arena_chunk::align);
        layout const least(bytes + sizeof(arena_chunk), align);
        // Under a limit the step has room for whole blocks like this one, and no more.
        std::size_t const each = align_up(rounded(l.bytes), l.align);
        return take_step<Throws>(source_, growth_, least, least.bytes, [&](std::size_t step) {
            return growth_.is_limited() ? step - (step - least.bytes) % each : step;
        });
    }

    void* give_from(arena_chunk* c, layout l) noexcept
    {
        std::byte* const p = c->place(l);
        enter(c, p + rounded(l.bytes));
        unpoison<watched>(p, l.bytes);
        return p;
    }

    /// An unused chunk comes into use. Of it, from `rest` on, and the one before,
    /// the cursor stays in that with more room.
    void enter(arena_chunk* c, std::byte* rest) noexcept
    {
        chunks_.use(c);
        if (rest <= c->end() && room(rest, c->end()) >= room(cursor_, end_)) {
            cursor_ = rest;
            end_ = c->end();
        }
    }

    // Reads them and writes nothing: they may be sealed.
    void give_all(arena_chunk* c) noexcept
    {
        while (c != nullptr) {
            chunk const taken = std::exchange(c, c->next)->taken;
            unpoison<watched>(taken.data, taken.bytes);
            growth_.gave(taken.bytes);
            give(source_, taken);
        }
    }

    template <class F>
    void with_owned(F f) noexcept
    {
        f(owned_);
    }

    constexpr void begin_again() noexcept
    {
        cursor_ = initial_.data();
        end_ = initial_.data() + initial_.size();
        poison<watched>(initial_.data(), initial_.size());
        marks_.rewound_to(0);
    }

    static void poison_all(arena_chunk* c) noexcept { poison<watched>(c->begin(), c->bytes()); }

    // Between any two calls cursor..end is free, at the end of the initial
    // buffer or of a chunk in use. An arena without memory is an arena that is
    // full: both null.
    [[no_unique_address]] Source source_{};
    std::byte* cursor_ = nullptr;
    std::byte* end_ = nullptr;
    arena_chunks chunks_;
    finalizers owned_;
    [[no_unique_address]] mutable mark_numbers<watched> marks_;
    std::span<std::byte> initial_;
    growth_state<Options.grow> growth_;
};

} // namespace mallard
