// An arena: blocks by moving a pointer, all given back at once.
#pragma once

#include <mallard/annotate.hpp>
#include <mallard/options.hpp>
#include <mallard/source.hpp>

#include <cstring>
#include <memory>
#include <string_view>
#include <type_traits>

namespace mallard {

/// Gives blocks by moving a cursor through a chunk; frees them all together.
///
///     mallard::arena<> scratch;
///     auto& node = scratch.make<tree_node>(7);   // its destructor never runs
///     auto& file = scratch.own<std::ofstream>(path); // its destructor will
///     scratch.reset();                           // all gone, memory kept
///
/// Takes nothing before the first block, then 4 KiB, doubling to 1 MiB. A
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
class arena {
    static_assert(is_power_of_two(Options.min_align) && Options.min_align <= 16);
    static constexpr bool watched = Options.checks == check::on;

    // Behind the blocks, so that the first of them is aligned as the chunk is.
    struct chunk_footer {
        chunk_footer* next;
        chunk taken;

        std::byte* begin() const noexcept { return static_cast<std::byte*>(taken.data); }
        std::byte* end() noexcept { return reinterpret_cast<std::byte*>(this); }
    };
    static constexpr std::size_t chunk_align = 16;
    static_assert(sizeof(chunk_footer) % chunk_align == 0);

    struct finalizer {
        finalizer* next;
        void (*run)(void*) noexcept;
        void* object;
    };

    struct position {
        chunk_footer* used = nullptr; // newest chunk in use, then older ones
        std::byte* cursor = nullptr;
        std::byte* end = nullptr;
        finalizer* finalizers = nullptr; // newest first
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
        : source_(std::move(from)), initial_(initial)
    {
        begin_again();
    }
    constexpr explicit arena(growth_function custom, Source from = Source())
        : source_(std::move(from)), growth_(custom)
    {
    }

    /// The moved-from arena is empty and usable.
    arena(arena&& other) noexcept
        requires std::move_constructible<Source>
        : source_(std::move(other.source_)), at_(std::exchange(other.at_, {})),
          oldest_used_(std::exchange(other.oldest_used_, nullptr)),
          idle_(std::exchange(other.idle_, nullptr)),
          initial_(std::exchange(other.initial_, {})),
          growth_(std::exchange(other.growth_, {}))
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
    ~arena() { release(); }

    [[nodiscard]] void* allocate(layout l) { return bump<true>(l); }
    [[nodiscard]] void* try_allocate(layout l) noexcept { return bump<false>(l); }

    void deallocate(void* block, layout l) noexcept
    {
        auto* const p = static_cast<std::byte*>(block);
        poison<watched>(p, l.bytes);
        if (p + rounded(l.bytes) == at_.cursor)
            at_.cursor = p;
    }

    /// Grows or shrinks a block where it is. Growing works for the last block,
    /// while its chunk has room. False: nothing has changed.
    [[nodiscard]] bool try_expand(void* block, layout from, layout to) noexcept
    {
        auto* const p = static_cast<std::byte*>(block);
        if (to.align > from.align)
            return false;
        if (p + rounded(from.bytes) == at_.cursor) {
            if (to.bytes > static_cast<std::size_t>(at_.end - p))
                return false;
            at_.cursor = p + rounded(to.bytes);
            poison<watched>(p, from.bytes);
            unpoison<watched>(p, to.bytes);
            return true;
        }
        return to.bytes <= from.bytes;
    }

    /// Makes an object whose destructor will not run.
    template <class T, class... Args>
    T& make(Args&&... args)
    {
        return *construct<T>(allocate(layout_of<T>()), std::forward<Args>(args)...);
    }

    /// Null when the source is dry.
    template <class T, class... Args>
    T* try_make(Args&&... args)
    {
        void* const block = try_allocate(layout_of<T>());
        return block == nullptr ? nullptr : construct<T>(block, std::forward<Args>(args)...);
    }

    /// Makes an object whose destructor runs at the next `reset`, `release` or
    /// `rewind` beyond it, or at the arena's end, newest first. Costs 24 bytes.
    template <class T, class... Args>
    T& own(Args&&... args)
    {
        if constexpr (std::is_trivially_destructible_v<T>) {
            return make<T>(std::forward<Args>(args)...);
        } else {
            auto* const entry = static_cast<finalizer*>(allocate(layout_of<finalizer>()));
            T& object = make<T>(std::forward<Args>(args)...);
            finalize(entry, &object, [](void* p) noexcept { static_cast<T*>(p)->~T(); });
            return object;
        }
    }

    /// Runs `f()` when an object owned here and now would be destroyed.
    template <std::invocable F>
    void defer(F f)
    {
        auto* const entry = static_cast<finalizer*>(allocate(layout_of<finalizer>()));
        F& kept = make<F>(std::move(f));
        finalize(entry, &kept, [](void* p) noexcept {
            (*static_cast<F*>(p))();
            static_cast<F*>(p)->~F();
        });
    }

    /// `count` value-initialised objects, whose destructors will not run.
    template <class T>
    std::span<T> make_array(std::size_t count)
    {
        auto* const first = static_cast<T*>(allocate(layout_of<T>(count)));
        std::uninitialized_value_construct_n(first, count);
        return {first, count};
    }

    /// The same characters, here.
    std::string_view copy(std::string_view text)
    {
        auto* const first = static_cast<char*>(allocate({text.size(), 1}));
        if (!text.empty())
            std::memcpy(first, text.data(), text.size());
        return {first, text.size()};
    }

    [[nodiscard]] mark_type mark() const noexcept { return at_; }

    /// Frees all that came after `to`, keeping the memory; O(chunks since).
    /// `check::on` stops at a mark that an older rewind has passed.
    void rewind(mark_type to) noexcept
    {
        if constexpr (Options.checks == check::on)
            verify(to);
        finalize_until(to.finalizers);
        while (at_.used != to.used) {
            chunk_footer* const newest = std::exchange(at_.used, at_.used->next);
            newest->next = std::exchange(idle_, newest);
            poison<watched>(newest->begin(), room(newest->begin(), newest->end()));
        }
        at_ = to;
        poison<watched>(to.cursor, room(to.cursor, to.end));
    }

    /// Frees everything and keeps all memory; O(1) but for owned objects.
    /// Begins again in the initial buffer, or else in the newest, largest chunk.
    void reset() noexcept
    {
        finalize_until(nullptr);
        for (chunk_footer* c = at_.used; c != nullptr; c = c->next)
            poison<watched>(c->begin(), room(c->begin(), c->end()));
        if (at_.used != nullptr)
            oldest_used_->next = std::exchange(idle_, at_.used);
        begin_again();
    }

    /// Frees everything and gives all memory back to the source.
    void release() noexcept
    {
        reset();
        if (at_.used != nullptr)
            at_.used->next = std::exchange(idle_, at_.used);
        give_all(std::exchange(idle_, nullptr));
        growth_.restart();
        begin_again();
    }

    /// Gives idle chunks back, oldest first, until at most `keep` bytes of them
    /// are left. What is in use is not touched.
    void trim(std::size_t keep = 0) noexcept
    {
        chunk_footer** last = &idle_;
        for (; *last != nullptr && (*last)->taken.bytes <= keep; last = &(*last)->next)
            keep -= (*last)->taken.bytes;
        give_all(std::exchange(*last, nullptr));
    }

    /// Walks the chunks. Bytes left behind at the end of a full chunk count as live.
    [[nodiscard]] statistics stats() const noexcept
    {
        statistics s{.bytes_taken = growth_.taken(), .growths = growth_.steps()};
        s.bytes_idle = room(at_.cursor, at_.end);
        for (chunk_footer* c = idle_; c != nullptr; c = c->next, ++s.chunks)
            s.bytes_idle += room(c->begin(), c->end());
        for (chunk_footer* c = at_.used; c != nullptr; c = c->next, ++s.chunks)
            s.bytes_live += room(c->begin(), c->end());
        bool const in_initial = at_.end == initial_.data() + initial_.size();
        s.bytes_live += in_initial ? room(initial_.data(), at_.end) : initial_.size();
        s.bytes_live -= room(at_.cursor, at_.end);
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

    // No test for "no chunk yet": then cursor and end are both null. Rounding
    // to min_align may wrap only for sizes that the comparison has refused.
    template <bool Throws>
    [[gnu::always_inline]] void* bump(layout l) noexcept(!Throws)
    {
        std::byte* const p = aligned_cursor(l.align);
        std::size_t const bytes = l.bytes + (l.bytes == 0);
        if (fits(p, bytes)) [[likely]] {
            at_.cursor = p + align_up(bytes, Options.min_align);
            unpoison<watched>(p, bytes);
            return p;
        }
        return grow<Throws>(l);
    }

    // The cursor stands at a multiple of min_align.
    [[gnu::always_inline]] std::byte* aligned_cursor(std::size_t align) const noexcept
    {
        if (__builtin_constant_p(align <= Options.min_align) && align <= Options.min_align)
            return at_.cursor;
        return reinterpret_cast<std::byte*>(
            align_up(reinterpret_cast<std::uintptr_t>(at_.cursor), align));
    }

    [[gnu::always_inline]] bool fits(std::byte* p, std::size_t bytes) const noexcept
    {
        // Adding a small constant cannot wrap, as no chunk reaches into the last
        // page of the address space; it saves an instruction over subtracting.
        if (__builtin_constant_p(bytes <= page_bytes) && bytes <= page_bytes)
            return p + bytes <= at_.end;
        return p <= at_.end && bytes <= room(p, at_.end);
    }

    /// Finds room in an idle chunk or takes a new one, and gives the block from there.
    template <bool Throws>
    MALLARD_COLD void* grow(layout l) noexcept(!Throws)
    {
        if (void* const block = reuse_idle(l))
            return block;
        chunk const taken = take_chunk<Throws>(l);
        if (taken.data == nullptr)
            return nullptr; // nothing has changed
        std::byte* const end = static_cast<std::byte*>(taken.data) +
                               (taken.bytes & ~(chunk_align - 1)) - sizeof(chunk_footer);
        auto* const footer = ::new (end) chunk_footer{nullptr, taken};
        poison<watched>(footer->begin(), room(footer->begin(), footer->end()));
        return enter(footer, l);
    }

    template <bool Throws>
    chunk take_chunk(layout l) noexcept(!Throws)
    {
        std::size_t const align = std::max(l.align, chunk_align);
        if (l.bytes > bytes_max - page_bytes)
            return refuse_absurd<Throws>(source_, {l.bytes, align});
        std::size_t const bytes = align_up(l.bytes + (l.bytes == 0), chunk_align);
        return take_step<Throws>(source_, growth_, {bytes + sizeof(chunk_footer), align});
    }

    void* reuse_idle(layout l) noexcept
    {
        for (chunk_footer** link = &idle_; *link != nullptr; link = &(*link)->next) {
            chunk_footer* const c = *link;
            std::byte* const p = align_up(c->begin(), l.align);
            if (p < c->end() && l.bytes + (l.bytes == 0) <= room(p, c->end())) {
                *link = c->next;
                return enter(c, l);
            }
        }
        return nullptr;
    }

    /// Gives the block from the front of an unused chunk. Of this chunk and the
    /// one before, the cursor stays in that with more room.
    void* enter(chunk_footer* c, layout l) noexcept
    {
        if (at_.used == nullptr)
            oldest_used_ = c;
        c->next = std::exchange(at_.used, c);
        std::byte* const p = align_up(c->begin(), l.align);
        std::byte* const rest = p + rounded(l.bytes);
        if (rest <= c->end() && room(rest, c->end()) >= room(at_.cursor, at_.end)) {
            at_.cursor = rest;
            at_.end = c->end();
        }
        unpoison<watched>(p, l.bytes);
        return p;
    }

    constexpr void begin_again() noexcept
    {
        at_ = {};
        if (!initial_.empty()) {
            at_.end = initial_.data() + initial_.size();
            at_.cursor = std::min(align_up(initial_.data(), Options.min_align), at_.end);
            poison<watched>(initial_.data(), initial_.size());
        } else if (idle_ != nullptr) {
            chunk_footer* const newest = std::exchange(idle_, idle_->next);
            newest->next = nullptr;
            at_ = {.used = newest, .cursor = newest->begin(), .end = newest->end()};
            oldest_used_ = newest;
        }
    }

    void give_all(chunk_footer* first) noexcept
    {
        while (first != nullptr) {
            chunk const taken = std::exchange(first, first->next)->taken;
            unpoison<watched>(taken.data, taken.bytes);
            growth_.gave(taken.bytes);
            give(source_, taken);
        }
    }

    template <class T, class... Args>
    T* construct(void* block, Args&&... args)
    {
        struct undo {
            arena& self;
            void* block;
            ~undo()
            {
                if (block != nullptr)
                    self.deallocate(block, layout_of<T>());
            }
        } guard{*this, block};
        T* const object = ::new (block) T(std::forward<Args>(args)...);
        guard.block = nullptr;
        return object;
    }

    void finalize(finalizer* entry, void* object, void (*run)(void*) noexcept) noexcept
    {
        at_.finalizers = ::new (entry) finalizer{at_.finalizers, run, object};
    }

    void finalize_until(finalizer* last) noexcept
    {
        while (at_.finalizers != last) {
            finalizer const entry = *std::exchange(at_.finalizers, at_.finalizers->next);
            entry.run(entry.object);
        }
    }

    void verify(mark_type const& to) const noexcept
    {
        chunk_footer* c = at_.used;
        while (c != to.used && c != nullptr)
            c = c->next;
        bool const same_chunk = to.end == at_.end;
        if (c != to.used || (same_chunk && to.cursor > at_.cursor))
            fatal_stale_mark();
    }

    // Between any two calls:
    //   cursor..end is free, in the initial buffer or in a chunk of `used`
    //   every chunk is in `used` or `idle`; the last of `used` is oldest_used_
    // An arena without memory is an arena that is full: cursor == end == null.
    [[no_unique_address]] Source source_{};
    position at_;
    chunk_footer* oldest_used_ = nullptr;
    chunk_footer* idle_ = nullptr; // newest first
    std::span<std::byte> initial_;
    growth_state<Options.grow> growth_;
};

/// Rewinds an arena to where it was, when it goes out of scope.
///
///     { mallard::scope frame(scratch); parse(scratch, line); }
template <class Arena>
class [[nodiscard]] scope {
public:
    explicit scope(Arena& arena) noexcept : arena_(arena), mark_(arena.mark()) {}
    ~scope() { arena_.rewind(mark_); }
    scope(const scope&) = delete;
    scope& operator=(const scope&) = delete;

private:
    Arena& arena_;
    typename Arena::mark_type mark_;
};

/// Can be put back to an earlier point.
template <class A>
concept rewindable = resettable<A> && requires(A& a, typename A::mark_type m) {
    { a.mark() } noexcept -> std::same_as<typename A::mark_type>;
    a.rewind(m);
};

/// Can grow a block in place.
template <class A>
concept expanding = block_allocator<A> && requires(A& a, void* p, layout from, layout to) {
    { a.try_expand(p, from, to) } noexcept -> std::same_as<bool>;
};

} // namespace mallard
