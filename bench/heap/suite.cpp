// The heap suite measures the cost of three steps together: constructing an allocator, filling it,
// and freeing all blocks together.
#include <bench/contenders/heaps_of_malloc.hpp>
#include <bench/contenders/mallard.hpp>
#include <bench/contenders/std_pmr.hpp>
#include <bench/entrants.hpp>
#include <bench/measure.hpp>
#include <bench/patterns.hpp>
#include <bench/suites.hpp>
#include <bench/table.hpp>

#include <mallard/heap.hpp>

#include <memory>
#include <memory_resource>

namespace mallard::bench {
namespace {

constexpr std::size_t block_count = 1000;

/// A contender whose destructor frees all its blocks.
template <class A>
class one_life {
public:
    void* allocate(std::size_t bytes) { return memory_.allocate({bytes, 16}); }

private:
    A memory_;
};

struct confined : one_life<mallard::heap> {
    static std::string name() { return "mallard/heap"; }
};
struct shared : one_life<shared_heap> {
    static std::string name() { return "mallard/shared_heap"; }
};
struct pools : one_life<multipool<>> {
    static std::string name() { return "mallard/multipool"; }
};
struct pools_of_arena : one_life<multipool<arena<>>> {
    static std::string name() { return "mallard/multipool/arena"; }
};
struct moving_pointer : one_life<arena<>> {
    static std::string name() { return "mallard/arena"; }
};

struct pmr_pools : behind_base<std::pmr::unsynchronized_pool_resource> {
    static std::string name() { return std_pmr_name("unsync-pool"); }
};

using contenders =
    contender_list<pmr_pools, heap_of_malloc<debian_mimalloc>, heap_of_malloc<crate_mimalloc>,
                   moving_pointer, pools, pools_of_arena, shared, confined>;

template <class C>
struct life {
    life(effort how, std::size_t count, std::size_t largest)
        : sizes(mixed_sizes(count, std::max<std::size_t>(largest, 16))), timed(how)
    {
        if (largest == 0)
            std::fill(sizes.begin(), sizes.end(), 32u);
    }

    double ns()
    {
        return timed.ns_of_one([&](std::size_t times) {
            for (std::size_t t = 0; t < times; ++t) {
                C memory;
                for (std::uint32_t const bytes : sizes)
                    touch(memory.allocate(bytes), t);
            }
        });
    }

    table<std::uint32_t> sizes;
    batch timed;
};

/// Measures the construction, use and destruction of an allocator with `count` blocks. The blocks
/// have mixed sizes up to `largest`, or 32 bytes if `largest` is 0.
experiment lives(effort how, std::size_t count, std::size_t largest, const char* name,
                 const char* what)
{
    return {.asks = std::string("An allocator is made, gives ") + what +
                    ", which are written to, and ends with all of them. ns a life",
            .figures = {{name, "ns_per_life"}},
            .entrants = entrants_of(contenders{}, {}, [=]<class C>() -> round_function {
                C(); // throws if the contender cannot run
                return [s = std::make_shared<life<C>>(how, count, largest)](std::span<double> out) {
                    out[0] = s->ns();
                };
            })};
}

} // namespace

std::vector<experiment> heap_suite(effort how)
{
    std::size_t const count = how.count(block_count);
    return {lives(how, 1, 0, "life/1x32B", "one block of 32 bytes"),
            lives(how, count, 0, "life/1000x32B", "1,000 blocks of 32 bytes"),
            lives(how, count, 256, "life/1000-to-256B", "1,000 blocks of 8 to 256 bytes"),
            lives(how, count, 1024, "life/1000-to-1KiB", "1,000 blocks of 8 to 1,024 bytes")};
}

} // namespace mallard::bench
