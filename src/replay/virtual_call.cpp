#include "virtual_call.hpp"

#include "measure.hpp"
#include "memory.hpp"
#include "random.hpp"

#include <algorithm>
#include <array>
#include <memory_resource>
#include <tuple>
#include <utility>

namespace mallard::replay {
namespace {

/// Returns `pointer`, but prevents the compiler from finding out to which object it points.
template <class T>
T* hidden(T* pointer) noexcept
{
    asm volatile("" : "+r"(pointer));
    return pointer;
}

/// A resource whose allocation adds to a cursor, as in an arena. Each `Number` makes a type with
/// separate code and a separate virtual table.
template <int Number>
class resource final : public std::pmr::memory_resource {
public:
    /// Allocates in a direct call. The function is not inlined, so that a direct call and a virtual
    /// call do the same work.
    [[gnu::noinline]] void* direct(std::size_t bytes, std::size_t align) noexcept
    {
        cursor_ += bytes + align + Number;
        return this;
    }

private:
    void* do_allocate(std::size_t bytes, std::size_t align) override
    {
        cursor_ += bytes + align + Number;
        return this;
    }
    void do_deallocate(void*, std::size_t, std::size_t) override {}
    bool do_is_equal(memory_resource const& other) const noexcept override
    {
        return this == &other;
    }

    std::size_t cursor_ = 0;
};

constexpr std::size_t calls = 4096;
constexpr std::size_t repetitions = 101;

/// Contains one object of each of `sizeof...(Number)` types.
template <class Numbers>
class resources;
template <int... Number>
class resources<std::integer_sequence<int, Number...>> {
public:
    static constexpr std::size_t count = sizeof...(Number);

    /// Calls each object directly.
    [[gnu::always_inline]] void call_each() noexcept
    {
        (hidden(hidden(&std::get<Number>(all_))->direct(8, 8)), ...);
    }
    /// Returns pointers to the objects as their abstract base class.
    std::array<std::pmr::memory_resource*, count> pointers() noexcept
    {
        return {&std::get<Number>(all_)...};
    }

private:
    std::tuple<resource<Number>...> all_;
};

/// Memory of 8 MiB, whose traversal evicts everything else from the L1 and L2 caches.
class other_memory {
public:
    void walk() noexcept
    {
        for (std::size_t i = 0; i < bytes_.count(); i += 64)
            hidden(&bytes_[i])[0] += 1;
    }

private:
    table<unsigned char> bytes_{std::size_t{8} << 20, "the measurement"};
};

double median(std::array<double, repetitions>& of) noexcept
{
    std::ranges::nth_element(of, of.begin() + repetitions / 2);
    return of[repetitions / 2];
}

/// Returns the median time in nanoseconds of one call, where `f` makes `count` calls. `before` is
/// called before each `f`, and is not measured.
template <class Before, class F>
double time_of(std::size_t count, Before before, F f) noexcept
{
    std::array<double, repetitions> times{};
    for (double& t : times) {
        before();
        std::uint64_t const start = now(CLOCK_MONOTONIC);
        f();
        t = static_cast<double>(now(CLOCK_MONOTONIC) - start) / static_cast<double>(count);
    }
    return median(times);
}

call_cost one_target() noexcept
{
    resource<0> r;
    auto const nothing = [] {};
    call_cost cost;
    cost.direct_ns = time_of(calls, nothing, [&] {
        for (std::size_t i = 0; i < calls; ++i)
            hidden(hidden(&r)->direct(8, 8));
    });
    cost.virtual_ns = time_of(calls, nothing, [&] {
        for (std::size_t i = 0; i < calls; ++i)
            hidden(hidden<std::pmr::memory_resource>(&r)->allocate(8, 8));
    });
    return cost;
}

/// Measures calls of four objects of four types. The virtual calls are in random order, as in a
/// program where the same line calls several allocators.
call_cost alternating() noexcept
{
    resources<std::make_integer_sequence<int, 4>> all;
    auto const pointers = all.pointers();
    std::array<unsigned char, calls> order{};
    random_numbers random;
    for (unsigned char& next : order)
        next = static_cast<unsigned char>(random.below(4));
    auto const nothing = [] {};
    call_cost cost;
    cost.direct_ns = time_of(calls, nothing, [&] {
        for (std::size_t i = 0; i < calls; i += 4)
            all.call_each();
    });
    cost.virtual_ns = time_of(calls, nothing, [&] {
        for (unsigned char const next : order)
            hidden(hidden(pointers[next])->allocate(8, 8));
    });
    return cost;
}

/// Measures one call of each of 32 objects whose data and code are no longer in the L1 and L2
/// caches.
call_cost cold() noexcept
{
    using many = resources<std::make_integer_sequence<int, 32>>;
    many all;
    auto const pointers = all.pointers();
    other_memory others;
    auto const forget = [&] { others.walk(); };
    call_cost cost;
    cost.direct_ns = time_of(many::count, forget, [&] { all.call_each(); });
    cost.virtual_ns = time_of(many::count, forget, [&] {
        for (std::pmr::memory_resource* const each : pointers)
            hidden(hidden(each)->allocate(8, 8));
    });
    return cost;
}

} // namespace

virtual_call_cost measure_virtual_calls() noexcept
{
    one_target(); // warm-up, until the processor reaches its full clock rate
    return {one_target(), alternating(), cold()};
}

} // namespace mallard::replay
