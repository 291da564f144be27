// Where chunks come from: the heap, a caller's bytes, bytes of one's own, any
// std::pmr::memory_resource, another allocator, nothing. Pages of the operating
// system are in pages.hpp.
#pragma once

#include <mallard/detail/base/annotate.hpp>
#include <mallard/growth.hpp>

#include <concepts>
#include <memory_resource>
#include <span>
#include <utility>

namespace mallard {

/// What a source gives. `give` gets exactly what `try_take` gave.
struct chunk {
    void* data = nullptr; ///< null: nothing left
    std::size_t bytes = 0;
    std::size_t align = 1;
};

// clang-format off
template <class S>
concept chunk_source = requires(S& s, layout l, chunk c) {
    { s.try_take(l) } noexcept -> std::same_as<chunk>;
    { s.give(c) } noexcept;
};

template <class A>
concept block_allocator = requires(A& a, layout l, void* p) {
    { a.allocate(l) } -> std::same_as<void*>;
    { a.try_allocate(l) } noexcept -> std::same_as<void*>;
    { a.deallocate(p, l) } noexcept;
};

/// Any allocator is a source too: `multipool<arena<>>`.
template <class S>
concept source = chunk_source<S> || block_allocator<S>;

/// All can be given back at once.
template <class A>
concept resettable = block_allocator<A> && requires(A& a, std::size_t keep) {
    a.reset();
    a.release();
    a.trim(keep);
};

/// Can be put back to an earlier point.
template <class A>
concept rewindable = resettable<A> && requires(A& a, typename A::mark_type m) {
    { a.mark() } noexcept -> std::same_as<typename A::mark_type>;
    a.rewind(m);
};

/// Knows its own blocks, or chunks, by their address.
template <class S>
concept owning = requires(const S& s, const void* p) {
    { s.owns(p) } noexcept -> std::same_as<bool>;
};

/// Surely refuses a chunk of more bytes than these: steps of growth are cut to them.
template <class S>
concept bounded = requires(const S& s) {
    { s.most_to_take() } noexcept -> std::same_as<std::size_t>;
};

/// Says that any thread may call it at any time. To an allocator for several
/// threads another source is called by one at a time; not so through a `ref`,
/// which cannot know who else borrows it.
template <class S>
concept shareable = requires { requires S::any_thread; };

/// Can grow a block in place.
template <class A>
concept expanding = block_allocator<A> && requires(A& a, void* p, layout from, layout to) {
    { a.try_expand(p, from, to) } noexcept -> std::same_as<bool>;
};
// clang-format on

// Inlined always, these four: out of line a chunk, three words, is given in memory, and a
// size that is a constant is none any more, which an adaptor's hot path would pay for.

template <source S>
[[gnu::always_inline]] inline chunk try_take(S& from, layout l) noexcept
{
    if constexpr (chunk_source<S>)
        return from.try_take(l);
    else if (void* const data = from.try_allocate(l))
        return {data, l.bytes, l.align};
    else
        return {};
}

/// Throws `std::bad_alloc`, or what the source throws; never gives null.
template <source S>
[[gnu::always_inline]] inline chunk take(S& from, layout l)
{
    if constexpr (requires { from.take(l); }) {
        return from.take(l);
    } else if constexpr (!chunk_source<S>) {
        return {from.allocate(l), l.bytes, l.align};
    } else {
        chunk const taken = try_take(from, l);
        if (taken.data == nullptr) [[unlikely]]
            throw_bad_alloc();
        return taken;
    }
}

/// One body, two edges: slow paths are written once and say which they want.
template <bool Throws, source S>
[[gnu::always_inline]] inline chunk take_or_null(S& from, layout l) noexcept(!Throws)
{
    if constexpr (Throws)
        return take(from, l);
    else
        return try_take(from, l);
}

template <source S>
[[gnu::always_inline]] inline void give(S& to, chunk c) noexcept
{
    if constexpr (chunk_source<S>)
        to.give(c);
    else
        to.deallocate(c.data, {c.bytes, c.align});
}

/// Takes the next step of an allocator's growth: at least `wish` bytes if the limit admits
/// them, cut to `useful(bytes)`. A step above the largest that the source can give is cut to
/// that; a step that the source refuses is halved, down to `least`. Returns null, or throws,
/// when the limit or the source refuses `least` too.
template <bool Throws, source S, growth G, class Useful>
chunk take_step(S& from, growth_state<G>& state, layout least, std::size_t wish,
                Useful useful) noexcept(!Throws)
{
    chunk taken;
    std::size_t step = state.step(wish);
    bool const admitted = step != 0;
    if constexpr (bounded<S>)
        step = std::min(step, std::max(from.most_to_take(), least.bytes));
    for (; step > least.bytes; step = std::max(least.bytes, step / 2)) {
        std::size_t const bytes = useful(step);
        if (bytes > least.bytes)
            taken = try_take(from, {bytes, least.align});
        if (bytes <= least.bytes || taken.data != nullptr)
            break;
    }
    if (taken.data == nullptr && admitted)
        taken = take_or_null<Throws>(from, least);
    if (taken.data != nullptr)
        state.took(taken.bytes, std::max(step, taken.bytes));
    else if constexpr (Throws)
        throw_bad_alloc();
    return taken;
}

/// For sizes that no bookkeeping can be added to: the source is asked all the
/// same, so that a refusal comes in its own words.
template <bool Throws, source S>
chunk refuse_absurd(S& from, layout l) noexcept(!Throws)
{
    chunk const taken = take_or_null<Throws>(from, l);
    if (taken.data != nullptr)
        give(from, taken);
    if constexpr (Throws)
        throw_bad_alloc();
    return {};
}

/// The program's own `operator new`, so a replaced one serves here too. Any
/// thread. Refusal comes after the new-handler has had its say.
class default_heap {
public:
    static constexpr bool any_thread = true;

    chunk try_take(layout l) noexcept
    {
        if (l.bytes > bytes_max)
            return {};
        void* const data = is_over_aligned(l.align)
                               ? ::operator new(l.bytes, std::align_val_t{l.align}, std::nothrow)
                               : ::operator new(l.bytes, std::nothrow);
        return data == nullptr ? chunk{} : chunk{data, l.bytes, l.align};
    }

    void give(chunk c) noexcept
    {
        if (is_over_aligned(c.align))
            ::operator delete(c.data, std::align_val_t{c.align});
        else
            ::operator delete(c.data);
    }

private:
    static constexpr bool is_over_aligned(std::size_t align) noexcept
    {
        return align > __STDCPP_DEFAULT_NEW_ALIGNMENT__;
    }
};

/// Gives nothing: what is built on it lives on its initial buffer alone.
class null {
public:
    static constexpr bool any_thread = true;

    chunk try_take(layout) noexcept { return {}; }
    void give(chunk) noexcept {}
};

inline bool is_inside(std::span<const std::byte> bytes, const void* p) noexcept
{
    return bytes.data() <= p && p < bytes.data() + bytes.size();
}

/// How much of some bytes is taken, from the front. What is given back returns
/// when it was the last taken, and everything once all of it is back: so it does
/// not matter in which order an allocator gives at its end.
class taken_front {
public:
    chunk try_take(std::span<std::byte> bytes, layout l) noexcept
    {
        std::span const left = bytes.subspan(used_);
        std::size_t const padding = -reinterpret_cast<std::uintptr_t>(left.data()) & (l.align - 1);
        // Not even nothing comes from behind the end: that address is another's.
        if (left.size() <= padding || left.size() - padding < l.bytes)
            return {};
        used_ += padding + l.bytes;
        chunks_ += 1;
        return {left.data() + padding, l.bytes, l.align};
    }

    void give(std::span<std::byte> bytes, chunk c) noexcept
    {
        auto const offset =
            static_cast<std::size_t>(static_cast<std::byte*>(c.data) - bytes.data());
        chunks_ -= 1;
        if (chunks_ == 0)
            used_ = 0;
        else if (offset + c.bytes == used_)
            used_ = offset;
    }

private:
    std::size_t used_ = 0;
    std::size_t chunks_ = 0;
};

/// Bytes of the caller's, who keeps them alive.
class borrowed {
public:
    constexpr borrowed() noexcept = default;
    constexpr explicit borrowed(std::span<std::byte> bytes) noexcept : bytes_(bytes) {}
    constexpr borrowed(borrowed&& other) noexcept
        : bytes_(std::exchange(other.bytes_, {})), taken_(std::exchange(other.taken_, {}))
    {
    }
    constexpr borrowed& operator=(borrowed&& other) noexcept
    {
        bytes_ = std::exchange(other.bytes_, {});
        taken_ = std::exchange(other.taken_, {});
        return *this;
    }

    chunk try_take(layout l) noexcept { return taken_.try_take(bytes_, l); }
    void give(chunk c) noexcept { taken_.give(bytes_, c); }
    bool owns(const void* p) const noexcept { return is_inside(bytes_, p); }

private:
    std::span<std::byte> bytes_;
    taken_front taken_;
};

/// `Bytes` inside the object itself: no heap at all. Neither copied nor moved,
/// since blocks point into it. Think twice above 16 KiB on a stack.
template <std::size_t Bytes>
class buffer {
public:
    constexpr buffer() noexcept : untouched_{} {}
    buffer(const buffer&) = delete;
    buffer& operator=(const buffer&) = delete;

    chunk try_take(layout l) noexcept { return taken_.try_take(bytes_, l); }
    void give(chunk c) noexcept { taken_.give(bytes_, c); }
    bool owns(const void* p) const noexcept { return is_inside(bytes_, p); }

private:
    taken_front taken_;
    union { // so that nobody clears the bytes, and a static buffer is constinit
        char untouched_;
        alignas(std::max_align_t) std::byte bytes_[Bytes];
    };
};

/// Any `std::pmr::memory_resource`, by default the default one at construction.
/// Its exceptions pass through `allocate` unchanged.
class pmr_source {
public:
    pmr_source(std::pmr::memory_resource* upstream = std::pmr::get_default_resource()) noexcept
        : upstream_(upstream)
    {
    }

    chunk take(layout l) { return {upstream_->allocate(l.bytes, l.align), l.bytes, l.align}; }

    chunk try_take(layout l) noexcept
    {
        return value_or_nothing([&] { return take(l); });
    }

    void give(chunk c) noexcept { upstream_->deallocate(c.data, c.bytes, c.align); }

    std::pmr::memory_resource* resource() const noexcept { return upstream_; }

private:
    std::pmr::memory_resource* upstream_;
};

/// Borrows a source, or an allocator, that others use too: it is a source, and an
/// allocator if that is one. One pointer; what it points to stays where it is and
/// outlives this. To reset or release it is up to its owner.
template <source S>
class ref {
public:
    static constexpr bool any_thread = shareable<S>;

    constexpr ref(S& borrowed_source) noexcept : source_(&borrowed_source) {}

    chunk try_take(layout l) noexcept { return mallard::try_take(*source_, l); }
    chunk take(layout l) { return mallard::take(*source_, l); }
    void give(chunk c) noexcept { mallard::give(*source_, c); }

    [[nodiscard]] void* allocate(layout l)
        requires block_allocator<S>
    {
        return source_->allocate(l);
    }
    [[nodiscard]] void* try_allocate(layout l) noexcept
        requires block_allocator<S>
    {
        return source_->try_allocate(l);
    }
    void deallocate(void* block, layout l) noexcept
        requires block_allocator<S>
    {
        source_->deallocate(block, l);
    }

    bool owns(const void* p) const noexcept
        requires owning<S>
    {
        return source_->owns(p);
    }
    std::size_t most_to_take() const noexcept
        requires bounded<S>
    {
        return source_->most_to_take();
    }

    S& upstream() const noexcept { return *source_; }

private:
    S* source_;
};

} // namespace mallard
