// The concepts of sources and allocators, the functions that allocate chunks from a source, and the
// two simplest sources: the heap and the empty source `null`. All other sources are in source.hpp
// and pages.hpp.
#pragma once

#include <mallard/detail/base/annotate.hpp>
#include <mallard/growth.hpp>

#include <concepts>
#include <span>
#include <utility>

namespace mallard {

/// A piece of memory from a source. The chunk passed to `give` must be exactly the one that
/// `try_take` returned.
struct chunk {
    void* data = nullptr;  ///< a multiple of `align`; null if the source is exhausted
    std::size_t bytes = 0; ///< the requested size or more
    std::size_t align = 1; ///< the alignment that was requested
};

// clang-format off
/// A source of chunks. It has `try_take(layout)` and `give(chunk)`, which must not throw.
///
///     struct my_source {
///         mallard::chunk try_take(mallard::layout l) noexcept;
///         void give(mallard::chunk c) noexcept;
///     };
///     static_assert(mallard::chunk_source<my_source>);
///
/// A chunk has at least `l.bytes` bytes, and its address is a multiple of `l.align`, which may be
/// 64 KiB or more. Nothing else uses the chunk until `give` is called with it. If the source is
/// exhausted, `try_take` returns a null chunk. A source may also have `chunk take(layout)`, which
/// throws instead (see `pmr_source`). An allocator stops the process if a chunk breaks these rules.
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

/// Any object that an allocator can request memory from. Any allocator is a source too, as in
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

/// A source that can report the largest chunk that it can supply. An allocator that grows requests
/// at most that size.
template <class S>
concept bounded = requires(const S& s) {
    { s.most_to_take() } noexcept -> std::same_as<std::size_t>;
};

/// A source that any thread may call at any time. Such a source has a member `any_thread` that is
/// true. If a source is not shareable, an allocator for several threads calls the source under its
/// own lock. That lock does not protect a source that several allocators use by `ref`.
template <class S>
concept shareable = requires { requires S::any_thread; };

// clang-format on

/// The size of a source, if its type contains the size, as `buffer<4096>` does. For any other
/// source, the largest number.
template <class S>
inline constexpr std::size_t source_bytes = std::numeric_limits<std::size_t>::max();

/// Compiles only if a source of `Has` bytes can hold one element, which needs up to `Needs` bytes,
/// depending on the address of the source. The compiler's error message contains both numbers.
template <std::size_t Has, std::size_t Needs>
struct source_of_bytes {
    static_assert(Has >= Needs,
                  "this buffer is too small for a single element: it needs as many "
                  "bytes as the second number in source_of_bytes<has, needs>, which "
                  "the compiler prints. A fixed_pool, a pool with growth::none, and a "
                  "slot_map in fixed<N> need fewer");
    static constexpr bool holds_one = true; ///< otherwise the assertion above has failed
};

/// Returns how many bytes of a source are enough for a chunk, whatever the address of the source
/// is. A source such as `buffer` is aligned like the largest fundamental type.
constexpr std::size_t bytes_at_any_address(layout l) noexcept
{
    return saturating_add(l.bytes, l.align - std::min(l.align, alignof(std::max_align_t)));
}

// The next four functions are always inlined. A call that is not inlined would return the three
// words of a chunk in memory, and would hide a constant size from the function. The hot path of an
// adaptor would then be longer.

/// Allocates a chunk from a source or an allocator. Returns a null chunk if the source is
/// exhausted.
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

/// Allocates a chunk from a source or an allocator, or throws `std::bad_alloc` or what the source
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

/// Calls `take` if `Throws` is true, otherwise `try_take`. So one slow path can serve both cases.
template <bool Throws, source S>
[[gnu::always_inline]] inline chunk take_or_null(S& from, layout l) noexcept(!Throws)
{
    if constexpr (Throws)
        return take(from, l);
    else
        return try_take(from, l);
}

/// Returns `taken` if the chunk fulfils the request `asked`, and otherwise stops the process. A
/// null chunk is accepted only if `Throws` is false.
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

/// Allocates a chunk that the allocator itself uses, like `take_or_null`. Stops the process if the
/// chunk breaks the contract of sources. Only slow paths call this function.
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

/// Allocates the next chunk for an allocator that grows. The growth rule in `state` chooses the
/// size, which is at least `wish` bytes if the limit allows that. The size is then reduced to what
/// the source can supply, and to `useful(bytes)`, the part that the allocator can use. If the
/// source fails, the function requests half as much, then a quarter, and so on down to `least`.
/// Returns null or throws if even `least` exceeds the limit, or if the source cannot supply
/// `least`.
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

/// The heap of the program, which is `operator new` or the program's replacement for it. Any thread
/// may call this source. Fails only if the new-handler gives up.
///
///     mallard::pool<mallard::default_heap> nodes(64); // what pool<> means
class default_heap {
public:
    static constexpr bool any_thread = true; ///< see the concept `shareable`

    /// Allocates a chunk from `operator new`, or returns a chunk without data.
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

/// A source that is always exhausted. An allocator over this source uses only its initial buffer.
///
///     mallard::arena<mallard::null> scratch(buffer); // takes memory from the buffer only
class null {
public:
    static constexpr bool any_thread = true; ///< see the concept `shareable`

    chunk try_take(layout) noexcept { return {}; } ///< returns a chunk without data
    void give(chunk) noexcept {}                   ///< does nothing
};

} // namespace mallard
