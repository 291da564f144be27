// The concepts of sources and allocators, the functions that take chunks from a source, and the two
// simplest sources: the heap and the empty source `null`. All other sources are in source.hpp and
// pages.hpp.
#pragma once

#include <mallard/detail/base/annotate.hpp>
#include <mallard/growth.hpp>

#include <concepts>
#include <span>
#include <utility>

namespace mallard {

/// A piece of memory from a source. `give` must get exactly the chunk that `try_take` returned.
struct chunk {
    void* data = nullptr;  ///< a multiple of `align`; null: the source is exhausted
    std::size_t bytes = 0; ///< the size: what was requested, or more
    std::size_t align = 1; ///< the alignment that was requested
};

// clang-format off
/// A source of chunks: has `try_take(layout)` and `give(chunk)`, which must not throw.
///
///     struct my_source {
///         mallard::chunk try_take(mallard::layout l) noexcept;
///         void give(mallard::chunk c) noexcept;
///     };
///     static_assert(mallard::chunk_source<my_source>);
///
/// A chunk has at least `l.bytes` bytes, and its address is a multiple of `l.align`, which may be 64
/// KiB or more. Nothing else uses the chunk until `give`. If the source is exhausted, `try_take`
/// returns a null chunk. A source may also have `chunk take(layout)`, which throws instead: see
/// `pmr_source`. An allocator stops the process at a chunk that breaks these rules.
template <class S>
concept chunk_source = requires(S& s, layout l, chunk c) {
    { s.try_take(l) } noexcept -> std::same_as<chunk>;
    { s.give(c) } noexcept;
};

/// An allocator of blocks. A block has `l.bytes` bytes at a multiple of `l.align`. If memory is exhausted, `allocate` throws and `try_allocate` returns
/// null. `deallocate` needs the layout of the block.
template <class A>
concept block_allocator = requires(A& a, layout l, void* p) {
    { a.allocate(l) } -> std::same_as<void*>;
    { a.try_allocate(l) } noexcept -> std::same_as<void*>;
    { a.deallocate(p, l) } noexcept;
};

/// Anything that an allocator can take its memory from. Any allocator is a source too, as in
/// `multipool<arena<>>`.
template <class S>
concept source = chunk_source<S> || block_allocator<S>;

/// An allocator that can free all blocks together.
template <class A>
concept resettable = block_allocator<A> && requires(A& a, std::size_t keep) {
    a.reset();
    a.release();
    a.trim(keep);
};

/// A source that knows the largest chunk that it can supply. An allocator that grows asks for at
/// most that size.
template <class S>
concept bounded = requires(const S& s) {
    { s.most_to_take() } noexcept -> std::same_as<std::size_t>;
};

/// A source that any thread may call at any time. Such a source has a member `any_thread` that is
/// true. If a source is not shareable, an allocator for several threads calls the source under a
/// lock of the allocator. That lock does not protect a source that several allocators borrow by
/// `ref`.
template <class S>
concept shareable = requires { requires S::any_thread; };

// clang-format on

/// The size of a source whose type says its size, such as `buffer<4096>`. The largest number for
/// any other source.
template <class S>
inline constexpr std::size_t source_bytes = std::numeric_limits<std::size_t>::max();

/// Compiles only if a source of `Has` bytes can hold one element, for which it needs `Needs` bytes
/// wherever it lies. The error of the compiler contains both numbers.
template <std::size_t Has, std::size_t Needs>
struct source_of_bytes {
    static_assert(Has >= Needs,
                  "this buffer is too small for a single element: it needs as many "
                  "bytes as the second number in source_of_bytes<has, needs>, which "
                  "the compiler prints. A fixed_pool, a pool with growth::none, and a "
                  "slot_map in fixed<N> need fewer");
    static constexpr bool holds_one = true; ///< otherwise the assertion above has failed
};

/// Bytes of a source, wherever it lies, that are enough for a chunk. A source such as `buffer` is
/// aligned like the largest fundamental type.
constexpr std::size_t bytes_at_any_address(layout l) noexcept
{
    return saturating_add(l.bytes, l.align - std::min(l.align, alignof(std::max_align_t)));
}

// The next four functions are always inlined. A real call would return the three words of a chunk
// in memory, and would hide a constant size from the function, so the hot path of an adaptor would
// be longer.

/// Takes a chunk from a source or an allocator. Returns a null chunk when the source is exhausted.
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

/// Takes a chunk from a source or an allocator, or throws `std::bad_alloc` or what the source
/// throws.
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

/// Calls `take` if `Throws`, otherwise `try_take`. Lets one slow path serve both.
template <bool Throws, source S>
[[gnu::always_inline]] inline chunk take_or_null(S& from, layout l) noexcept(!Throws)
{
    if constexpr (Throws)
        return take(from, l);
    else
        return try_take(from, l);
}

/// Returns `taken` if it fulfils the request `asked`, and otherwise stops the process. A null chunk
/// fulfils a request only if the source need not throw.
template <bool Throws>
inline chunk verified(chunk taken, layout asked) noexcept
{
    bool const bad = taken.data == nullptr
                         ? Throws
                         : taken.bytes < asked.bytes ||
                               (reinterpret_cast<std::uintptr_t>(taken.data) & (asked.align - 1));
    if (bad) [[unlikely]]
        fatal_bad_chunk(taken.data, taken.bytes, asked.bytes, asked.align);
    return taken;
}

/// `take_or_null` for memory that the allocator itself uses. Stops the process if the source breaks
/// its contract. Only slow paths call this.
template <bool Throws, source S>
chunk take_verified(S& from, layout l) noexcept(!Throws)
{
    return verified<Throws>(take_or_null<Throws>(from, l), l);
}

/// Returns a chunk to the source or allocator that it came from.
template <source S>
[[gnu::always_inline]] inline void give(S& to, chunk c) noexcept
{
    if constexpr (chunk_source<S>)
        to.give(c);
    else
        to.deallocate(c.data, {c.bytes, c.align});
}

/// Takes the next chunk for an allocator that grows. The growth rule in `state` chooses the size:
/// at least `wish` bytes if the limit allows that. The size is then reduced to what the source can
/// supply, and to `useful(bytes)`, the part that the allocator can use. If the source refuses, the
/// function asks for half as much, and so on down to `least`. Returns null or throws if even
/// `least` exceeds the limit, or if the source refuses it.
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
            taken = take_verified<false>(from, {bytes, least.align});
        if (bytes <= least.bytes || taken.data != nullptr)
            break;
    }
    if (taken.data == nullptr && admitted)
        taken = take_verified<Throws>(from, least);
    if (taken.data != nullptr)
        state.took(taken.bytes, std::max(step, taken.bytes));
    else if constexpr (Throws)
        throw_bad_alloc();
    return taken;
}

/// Fails a request that is so large that adding a header to its size would overflow. Calls the
/// source with the request, so that the source throws its own exception.
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

/// The heap of the program: `operator new`, including a replacement by the program. Any thread may
/// call. Fails only after the new-handler gave up.
///
///     mallard::pool<mallard::default_heap> nodes(64); // what pool<> means
class default_heap {
public:
    static constexpr bool any_thread = true; ///< see the concept `shareable`

    /// Takes a chunk from `operator new`, or returns a chunk without data.
    chunk try_take(layout l) noexcept
    {
        if (l.bytes > bytes_max)
            return {};
        void* const data = is_over_aligned(l.align)
                               ? ::operator new(l.bytes, std::align_val_t{l.align}, std::nothrow)
                               : ::operator new(l.bytes, std::nothrow);
        return data == nullptr ? chunk{} : chunk{data, l.bytes, l.align};
    }

    /// Returns a chunk to `operator delete`.
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

/// A source that is always exhausted. An allocator on it uses only its initial buffer.
///
///     mallard::arena<mallard::null> scratch(buffer); // takes memory from the buffer only
class null {
public:
    static constexpr bool any_thread = true; ///< see the concept `shareable`

    chunk try_take(layout) noexcept { return {}; } ///< returns a chunk without data
    void give(chunk) noexcept {}                   ///< does nothing
};

} // namespace mallard
