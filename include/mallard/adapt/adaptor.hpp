// The base classes of adaptors. An adaptor wraps one allocator or source and adds one feature to
// it, or chooses between two allocators or sources.
#pragma once

#include <mallard/detail/base/undo.hpp>
#include <mallard/options.hpp>
#include <mallard/source.hpp>

#include <type_traits>

namespace mallard {

// clang-format off
/// An allocator that has the function `counts`, such as a `counted` allocator or an adaptor around
/// a `counted` allocator.
template <class A>
concept counting = requires(const A& a) { { a.counts() } noexcept; };

/// An allocator that has the function `stats`, such as an arena, a pool, a multipool, or an adaptor
/// around one of these.
template <class A>
concept measured = requires(const A& a) { { a.stats() } noexcept; };
/// An allocator whose blocks all have one size, such as a pool, so that `allocate` needs no layout.
template <class A>
concept of_one_size = block_allocator<A> && requires(A& a, void* block) {
    { a.block_bytes() } noexcept -> std::same_as<std::size_t>;
    { a.block_align() } noexcept -> std::same_as<std::size_t>;
    { a.allocate() } -> std::same_as<void*>;
    { a.deallocate(block) } noexcept;
};
// clang-format on

/// Calls the private functions that each adaptor defines: `take_one`, `give_one`, `forget_all`.
/// An adaptor makes this class its friend.
struct adaptor_access {
    /// Allocates a block or a chunk through the adaptor `self`. On failure, throws if `Throws` is
    /// true, and returns null otherwise.
    template <bool Throws, class Self>
    [[gnu::always_inline]] static chunk take_one(Self& self, layout l) noexcept(!Throws)
    {
        return self.template take_one<Throws>(l);
    }
    /// Returns a block or chunk through the adaptor `self`.
    template <class Self>
    [[gnu::always_inline]] static void give_one(Self& self, chunk c) noexcept
    {
        self.give_one(c);
    }
    /// Notifies the adaptor `self` that all blocks are about to be freed together.
    template <class Self>
    static void forget_all(Self& self) noexcept
    {
        self.forget_all();
    }
};

/// Defines the functions of an allocator (if `Blocks` is true) and those of a chunk source (if
/// `Chunks` is true). They call `take_one` and `give_one` of the derived class `Self`. All
/// functions are `always_inline`, because a chunk has three machine words, and a call that is not
/// inlined would pass them through memory.
template <class Self, bool Blocks, bool Chunks>
class adaptor_calls {
public:
    /// Allocates a block, or throws what the wrapped object throws.
    [[nodiscard, gnu::always_inline]] void* allocate(layout l)
        requires Blocks
    {
        return adaptor_access::take_one<true>(self(), l).data;
    }
    /// Allocates a block, or returns null.
    [[nodiscard, gnu::always_inline]] void* try_allocate(layout l) noexcept
        requires Blocks
    {
        return adaptor_access::take_one<false>(self(), l).data;
    }
    /// Frees a block. `l` is the layout with which the block was allocated.
    [[gnu::always_inline]] void deallocate(void* block, layout l) noexcept
        requires Blocks
    {
        adaptor_access::give_one(self(), {block, l.bytes, l.align});
    }

    /// Allocates a chunk from the wrapped source, or throws what the source throws.
    [[nodiscard, gnu::always_inline]] chunk take(layout l)
        requires Chunks
    {
        return adaptor_access::take_one<true>(self(), l);
    }
    /// Allocates a chunk from the wrapped source, or returns null.
    [[nodiscard, gnu::always_inline]] chunk try_take(layout l) noexcept
        requires Chunks
    {
        return adaptor_access::take_one<false>(self(), l);
    }
    /// Returns a chunk to the wrapped source.
    [[gnu::always_inline]] void give(chunk c) noexcept
        requires Chunks
    {
        adaptor_access::give_one(self(), c);
    }

protected:
    ~adaptor_calls() = default;
    constexpr adaptor_calls() noexcept = default;
    constexpr adaptor_calls(adaptor_calls&&) noexcept = default;
    constexpr adaptor_calls& operator=(adaptor_calls&&) noexcept = default;

private:
    Self& self() noexcept { return static_cast<Self&>(*this); }
};

/// The base class of an adaptor `Self`, which adds one feature to an allocator or source. `Self`
/// defines these functions:
///
///     template <bool Throws> chunk take_one(layout l) noexcept(!Throws);
///     void give_one(chunk c) noexcept;
///     void forget_all() noexcept; // called before all blocks are freed: reset, release
///
/// `give_one` gets the chunk that `take_one` returned. In an adaptor around an allocator, this
/// chunk contains the address, size and alignment of the block.
///
/// An adaptor around an allocator is an allocator, and an adaptor around a source is a source. So
/// adaptors can wrap adaptors, and can be used wherever the wrapped object can. The adaptor owns
/// the wrapped object, and constructs it from the arguments after `std::in_place`. To use an object
/// without owning it, wrap a `ref`. `owns`, `stats` and `counts` forward to the wrapped object.
///
///     mallard::counted<mallard::arena<>> memory(std::in_place, buffer); // an arena(buffer)
///
/// Not copyable. Movable if the wrapped object is movable, unless `Self` forbids moves.
template <class Self, source Inner>
class adaptor : public adaptor_calls<Self, block_allocator<Inner>, chunk_source<Inner>> {
    using calls = adaptor_calls<Self, block_allocator<Inner>, chunk_source<Inner>>;

public:
    using upstream_type = Inner; ///< the type of the wrapped object

    constexpr adaptor() noexcept
        requires std::default_initializable<Inner>
    = default;
    /// Constructs the wrapped object from `args`.
    template <class... Args>
        requires std::constructible_from<Inner, Args...>
    constexpr explicit adaptor(std::in_place_t, Args&&... args) noexcept(
        std::is_nothrow_constructible_v<Inner, Args...>)
        : inner_(std::forward<Args>(args)...)
    {
    }
    constexpr adaptor(adaptor&&) noexcept(std::is_nothrow_move_constructible_v<Inner>) = default;
    constexpr adaptor&
    operator=(adaptor&&) noexcept(std::is_nothrow_move_assignable_v<Inner>) = default;

    using calls::allocate;
    using calls::deallocate;
    using calls::try_allocate;

    // The adaptor has the functions of a pool too, so that a program that uses a pool compiles with
    // and without the adaptor.

    /// Allocates a block of a wrapped pool, or throws what the pool throws.
    [[nodiscard]] void* allocate()
        requires of_one_size<Inner>
    {
        return allocate(block_layout());
    }
    /// Allocates a block of a wrapped pool, or returns null.
    [[nodiscard]] void* try_allocate() noexcept
        requires of_one_size<Inner>
    {
        return try_allocate(block_layout());
    }
    /// Frees a block that `allocate()` or `try_allocate()` returned.
    void deallocate(void* block) noexcept
        requires of_one_size<Inner>
    {
        deallocate(block, block_layout());
    }
    /// Fills `out` with blocks of a wrapped pool. If this function throws, no block was allocated.
    void allocate_batch(std::span<void*> out)
        requires of_one_size<Inner>
    {
        allocate_all<true>(out);
    }
    /// Like `allocate_batch`, but returns false instead of throwing.
    [[nodiscard]] bool try_allocate_batch(std::span<void*> out) noexcept
        requires of_one_size<Inner>
    {
        return allocate_all<false>(out);
    }
    /// Frees all of `blocks`, which are blocks of a wrapped pool.
    void deallocate_batch(std::span<void* const> blocks) noexcept
        requires of_one_size<Inner>
    {
        for (void* const block : blocks)
            deallocate(block);
    }
    /// Returns the size of each block of a wrapped pool.
    constexpr std::size_t block_bytes() const noexcept
        requires of_one_size<Inner>
    {
        return inner_.block_bytes();
    }
    /// Returns the alignment of each block of a wrapped pool.
    constexpr std::size_t block_align() const noexcept
        requires of_one_size<Inner>
    {
        return inner_.block_align();
    }

    /// Frees all blocks and keeps the memory of the wrapped allocator.
    void reset() noexcept
        requires resettable<Inner>
    {
        adaptor_access::forget_all(static_cast<Self&>(*this));
        inner_.reset();
    }
    /// Frees all blocks and returns the memory of the wrapped allocator to its source.
    void release() noexcept
        requires resettable<Inner>
    {
        adaptor_access::forget_all(static_cast<Self&>(*this));
        inner_.release();
    }
    /// Returns idle memory of the wrapped allocator to its source, except for `keep` bytes.
    void trim(std::size_t keep = 0) noexcept
        requires resettable<Inner>
    {
        inner_.trim(keep);
    }

    /// Returns whether the wrapped object owns the address.
    bool owns(const void* p) const noexcept
        requires owning<Inner>
    {
        return inner_.owns(p);
    }
    /// Returns the size of the largest chunk that the wrapped source can supply.
    std::size_t most_to_take() const noexcept
        requires bounded<Inner>
    {
        return inner_.most_to_take();
    }
    /// Returns the counts of the wrapped object.
    auto counts() const noexcept
        requires counting<Inner>
    {
        return inner_.counts();
    }
    /// Returns the statistics of the wrapped allocator.
    auto stats() const noexcept
        requires measured<Inner>
    {
        return inner_.stats();
    }

    /// Returns the wrapped allocator or source.
    Inner& upstream() noexcept { return inner_; }
    const Inner& upstream() const noexcept { return inner_; }

private:
    layout block_layout() const noexcept { return {block_bytes(), block_align()}; }

    template <bool Throws>
    bool allocate_all(std::span<void*> out) noexcept(!Throws)
    {
        std::size_t count = 0;
        undo all([&] { deallocate_batch(out.first(count)); });
        for (; count < out.size(); ++count) {
            out[count] = Throws ? allocate() : try_allocate();
            if (out[count] == nullptr)
                return false;
        }
        all.keep();
        return true;
    }

protected:
    ~adaptor() = default;

    /// Allocates a block or chunk from the wrapped object. If the object is exhausted, throws if
    /// `Throws` is true, and returns null otherwise.
    template <bool Throws>
    [[gnu::always_inline]] chunk take_below(layout l) noexcept(!Throws)
    {
        return take_or_null<Throws>(inner_, l);
    }
    /// Returns a block or chunk to the wrapped object.
    [[gnu::always_inline]] void give_below(chunk c) noexcept { mallard::give(inner_, c); }

    /// Like `take_below`, but calls `failed()` before it returns null or passes an exception on. In
    /// the throwing version, `failed()` is called by a destructor, so a call that succeeds runs no
    /// extra code.
    template <bool Throws, class F>
    [[gnu::always_inline]] chunk take_below_or(layout l, F failed) noexcept(!Throws)
    {
        struct on_failure {
            F failed;
            bool succeeded = false;
            // Inlined, because a call that is not inlined would store this object in memory.
            [[gnu::always_inline]] ~on_failure()
            {
                if (!succeeded)
                    failed();
            }
        } guard{failed};
        chunk const taken = take_below<Throws>(l);
        guard.succeeded = Throws || taken.data != nullptr;
        return taken;
    }

private:
    [[no_unique_address]] Inner inner_{};
};

/// `Adaptor` if `On` is true, otherwise the type that `Adaptor` wraps. So if a program switches an
/// adaptor off by the constant `On`, the adaptor costs no branch and no memory.
///
///     using memory = mallard::adapt_if<is_test, mallard::counted<mallard::multipool<>>>;
///
/// `adapted<memory>(arguments of the multipool)` constructs either of the two types.
template <bool On, class Adaptor>
using adapt_if =
    typename std::conditional_t<On, std::type_identity<Adaptor>,
                                std::type_identity<typename Adaptor::upstream_type>>::type;

/// Constructs an `A` from constructor arguments of the wrapped object. `A` may be an adaptor, or
/// the type that an adaptor would wrap.
template <class A, class... Args>
A adapted(Args&&... args)
{
    if constexpr (std::constructible_from<A, std::in_place_t, Args...>)
        return A(std::in_place, std::forward<Args>(args)...);
    else
        return A(std::forward<Args>(args)...);
}

/// Fails like an exhausted source. Throws `std::bad_alloc` if `Throws` is true, and returns null
/// otherwise.
template <bool Throws>
chunk fail_allocation() noexcept(!Throws)
{
    if constexpr (Throws)
        throw_bad_alloc();
    return {};
}

/// The base class of an adaptor `Self` that chooses between two allocators or sources. `Self` makes
/// the choice in these functions:
///
///     template <bool Throws> chunk take_one(layout l) noexcept(!Throws);
///     void give_one(chunk c) noexcept; // returns the chunk to where it came from
///
/// The adaptor owns both objects. The adaptor is an allocator if both objects are allocators,
/// otherwise a source. To use an object without owning it, wrap a `ref`.
template <class Self, source First, source Second>
class adaptor_of_two : public adaptor_calls<Self, block_allocator<First> && block_allocator<Second>,
                                            chunk_source<First> || chunk_source<Second>> {
    static constexpr bool is_nothrow_movable =
        std::is_nothrow_move_constructible_v<First> && std::is_nothrow_move_assignable_v<First> &&
        std::is_nothrow_move_constructible_v<Second> && std::is_nothrow_move_assignable_v<Second>;

public:
    constexpr adaptor_of_two() noexcept
        requires std::default_initializable<First> && std::default_initializable<Second>
    = default;
    /// Makes an adaptor that owns `first` and `second`.
    constexpr adaptor_of_two(First first, Second second) noexcept
        : first_(std::move(first)), second_(std::move(second))
    {
    }
    constexpr adaptor_of_two(adaptor_of_two&&) noexcept(is_nothrow_movable) = default;
    constexpr adaptor_of_two& operator=(adaptor_of_two&&) noexcept(is_nothrow_movable) = default;

    /// Frees all blocks of both allocators and keeps the memory.
    void reset() noexcept
        requires resettable<First> && resettable<Second>
    {
        first_.reset();
        second_.reset();
    }
    /// Frees all blocks of both allocators and returns the memory to their sources.
    void release() noexcept
        requires resettable<First> && resettable<Second>
    {
        first_.release();
        second_.release();
    }
    /// Returns idle memory to the sources, except for `keep` bytes in each of the two allocators.
    void trim(std::size_t keep = 0) noexcept
        requires resettable<First> && resettable<Second>
    {
        first_.trim(keep);
        second_.trim(keep);
    }

    /// Returns whether one of the two wrapped objects owns the address.
    bool owns(const void* p) const noexcept
        requires owning<First> && owning<Second>
    {
        return first_.owns(p) || second_.owns(p);
    }
    /// Returns the sum of the statistics of both allocators.
    auto stats() const noexcept
        requires measured<First> && measured<Second>
    {
        auto sum = first_.stats();
        return sum += second_.stats();
    }

    First& first() noexcept { return first_; } ///< the first object
    const First& first() const noexcept { return first_; }
    Second& second() noexcept { return second_; } ///< the second object
    const Second& second() const noexcept { return second_; }

protected:
    ~adaptor_of_two() = default;

private:
    [[no_unique_address]] First first_{};
    [[no_unique_address]] Second second_{};
};

} // namespace mallard
