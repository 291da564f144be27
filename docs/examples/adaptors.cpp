// Adaptors, each of which adds one feature to any allocator or source.
#include <mallard/adapt/by_size.hpp>
#include <mallard/adapt/counted.hpp>
#include <mallard/adapt/failing.hpp>
#include <mallard/adapt/fallback.hpp>
#include <mallard/adapt/limited.hpp>
#include <mallard/adapt/synchronized.hpp>
#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <mallard/pmr.hpp>

#include <cassert>
#include <memory_resource>
#include <string>
#include <thread>
#include <vector>

namespace {

void count()
{
    mallard::counted<mallard::multipool<>> memory;
    std::vector<int, mallard::allocator<int, decltype(memory)>> numbers(memory);
    numbers.reserve(100);
    assert(memory.counts().allocations == 1 && memory.counts().bytes_live() == 400);

    mallard::counting_scope parsing(memory); // counts separately, from here to the brace
    numbers.reserve(200);                    // copies the numbers, then frees the smaller block
    assert(parsing.counts().bytes_live() == 400 && parsing.counts().bytes_peak == 800);
}

void limit()
{
    mallard::limited<mallard::multipool<>> memory({.bytes = 1 << 20});
    void* const most = memory.allocate({1'000'000});
    assert(memory.try_allocate({100'000}) == nullptr); // allocate would throw
    assert(memory.bytes_left() == 48'576);
    // memory.last_failure(): "the budget has too few bytes left: free blocks, or raise it"
    memory.deallocate(most, {1'000'000});
}

void stack_and_stand_anywhere()
{
    // Limits the bytes that a multipool takes from the heap to 16 MiB, and counts them. Also counts
    // the bytes that callers allocate from the multipool.
    using heap = mallard::limited<mallard::counted<mallard::default_heap>>;
    heap source({.bytes = 16 << 20});
    mallard::pmr_resource<mallard::counted<mallard::multipool<mallard::ref<heap>>>> memory(
        std::in_place, mallard::ref(source));
    {
        std::pmr::vector<std::pmr::string> lines(&memory);
        lines.emplace_back("a string that is longer than what fits into itself");
        assert(memory.counts().blocks_live() == 2);
        assert(source.counts().bytes_live() >= memory.counts().bytes_live());
    }
    assert(memory.counts().is_balanced()); // every block was freed
}

void fall_back()
{
    using stack_first = mallard::fallback<mallard::buffer<4096>, mallard::default_heap>;
    mallard::multipool<stack_first> memory; // uses the heap when 4 KiB are used up
    void* const block = memory.allocate({40});
    assert(memory.upstream().first().owns(block));
    memory.deallocate(block, {40});

    using small = mallard::arena<>; // blocks are never freed one by one
    mallard::by_size<64, small, mallard::multipool<>> mixed;
    mixed.deallocate(mixed.allocate({65}), {65}); // uses the multipool
}

void share()
{
    mallard::synchronized<mallard::counted<mallard::arena<>>> request;
    std::thread other([&] { static_cast<void>(request.allocate({100})); });
    static_cast<void>(request.allocate({100}));
    other.join();
    request.with([](auto& arena) { // holds the lock
        assert(arena.counts().allocations == 2);
        arena.reset();
    });
}

constexpr bool is_measured = false;

void switch_off()
{
    using memory = mallard::adapt_if<is_measured, mallard::counted<mallard::pool<>>>;
    auto nodes = mallard::adapted<memory>(48u); // the arguments of the pool
    nodes.deallocate(nodes.allocate());         // the calls of the pool
    static_assert(std::is_same_v<memory, mallard::pool<>>);
    if (auto const calls = mallard::snapshot_of(nodes).calls) // null when counting is off
        assert(calls->is_balanced());
}

} // namespace

int main()
{
    count();
    limit();
    stack_and_stand_anywhere();
    fall_back();
    share();
    switch_off();
}
