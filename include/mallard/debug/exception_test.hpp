// Tests exception safety. Runs a function once for each of its allocations, and makes that
// allocation fail.
#pragma once

#include <mallard/adapt/counted.hpp>
#include <mallard/adapt/failing.hpp>
#include <mallard/detail/base/fatal_objects.hpp>
#include <mallard/pmr.hpp>

namespace mallard {

/// The memory of a function under test. It is an allocator for `allocator<T, A>`, and a
/// `std::pmr::memory_resource`.
template <block_allocator A>
using test_memory = pmr_resource<failing<counted<A>>>;

/// Calls `f(memory)` repeatedly. Allocation 0 fails in the first call, allocation 1 in the second
/// call, and so on, until no allocation fails in a call. Returns the number of failures.
///
///     std::size_t const points = mallard::for_each_failure([](auto& memory) {
///         std::pmr::vector<std::pmr::string> names(&memory);
///         names.emplace_back("longer than what fits into a string itself");
///     });
///
/// `f` may throw `std::bad_alloc` or handle it; other exceptions pass through. Each call of `f`
/// must free all blocks that it allocated, with the requested sizes, even after a failure.
/// Otherwise the process stops, with a message that contains the number of the failed allocation.
/// To debug that allocation, compare the number with `memory.calls()`, the number of the next
/// allocation.
///
/// Each call of `f` uses the allocator that `make()` returns, which is a new multipool by default.
/// The idea comes from the exception test macros of `bslma::TestAllocator` in BDE, Bloomberg's
/// library.
template <class Make, class F>
    requires block_allocator<std::invoke_result_t<Make&>>
std::size_t for_each_failure(Make make, F f)
{
    using memory = test_memory<std::invoke_result_t<Make&>>;
    for (std::size_t number = 0;; ++number) {
        memory under_test(failures{.first = number}, std::in_place, std::in_place, make());
        bool const out_of_memory = ends_in_bad_alloc([&] { f(under_test); });
        bool const failed = under_test.failed() != 0;
        if (call_counts const c = under_test.counts(); !c.is_balanced())
            fatal_unbalanced(number, failed, c.blocks_live(), c.bytes_live());
        if (!failed && out_of_memory)
            throw_bad_alloc(); // the allocator that `make` returned is exhausted itself
        if (!failed)
            return number;
    }
}

/// Like the function above, with a new multipool for each call of `f`.
template <class F>
std::size_t for_each_failure(F f)
{
    return for_each_failure([] { return multipool<>(); }, f);
}

/// Like the functions above, with one allocator of the caller for all calls of `f`.
template <block_allocator A, class F>
std::size_t for_each_failure(A& in, F f)
{
    return for_each_failure([&in] { return ref<A>(in); }, f);
}

} // namespace mallard
