// Runs a piece of program once for each allocation that can fail in it.
#pragma once

#include <mallard/adapt/counted.hpp>
#include <mallard/adapt/failing.hpp>
#include <mallard/pmr.hpp>

namespace mallard {

/// What a piece of program under test allocates from: an allocator, for
/// `allocator<T, A>`, and a `std::pmr::memory_resource` too.
template <block_allocator A>
using test_memory = pmr_resource<failing<counted<A>>>;

/// Calls `f(memory)` with allocation 0 failing, then 1, 2, ..., until one call sees no
/// failure. Gives the number of allocations that have failed, each once.
///
///     std::size_t const points = mallard::for_each_failure([](auto& memory) {
///         std::pmr::vector<std::pmr::string> names(&memory);
///         names.emplace_back("longer than what fits into a string itself");
///     });
///
/// `f` may let `std::bad_alloc` out, or handle it; other exceptions pass through. Each
/// call has to free all that it allocated, with the sizes it asked for, whether or not
/// it failed: else the process stops, and says at which allocation. The number is
/// that of `memory.calls()`, so `f` may print or break there.
///
/// The memory of each call is what `make` returns, or by default a new multipool. The
/// idea is the exception test of BDE's `bslma::TestAllocator`, which is a macro.
template <class Make, class F>
    requires block_allocator<std::invoke_result_t<Make&>>
std::size_t for_each_failure(Make make, F f)
{
    using memory = test_memory<std::invoke_result_t<Make&>>;
    for (std::size_t number = 0;; ++number) {
        memory under_test(refusals{.first = number}, std::in_place, std::in_place, make());
        bool const out_of_memory = ends_in_bad_alloc([&] { f(under_test); });
        bool const failed = under_test.refused() != 0;
        if (call_counts const c = under_test.counts(); !c.is_balanced())
            fatal_unbalanced(number, failed, c.blocks_live(), c.bytes_live());
        if (!failed && out_of_memory)
            throw_bad_alloc(); // what lies below has run out by itself
        if (!failed)
            return number;
    }
}

template <class F>
std::size_t for_each_failure(F f)
{
    return for_each_failure([] { return multipool<>(); }, f);
}

/// In an allocator of the caller's, which every call finds as the one before left it.
template <block_allocator A, class F>
std::size_t for_each_failure(A& in, F f)
{
    return for_each_failure([&in] { return ref<A>(in); }, f);
}

} // namespace mallard
