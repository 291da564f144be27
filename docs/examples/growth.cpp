// Options that set how much memory an allocator requests at a time, and how much in total.
#include <mallard/arena.hpp>

#include <cassert>

std::size_t round_to_pages(std::size_t last, std::size_t asked) noexcept
{
    return mallard::align_up(asked + 2 * last, mallard::page_bytes);
}

int main()
{
    using mallard::arena, mallard::arena_options, mallard::default_heap, mallard::growth;

    arena<> by_four; // 1 KiB, 4, 16, ... to 16 MiB
    arena<default_heap, arena_options{.grow = growth::fixed(1 << 16)}> constant;
    arena<default_heap, arena_options{.grow = growth::linear(4096, 4096)}> linear;
    arena<default_heap, arena_options{.grow = {.first = 1 << 16, .num = 3, .den = 2}}> by_half;
    arena<default_heap, arena_options{.grow = growth::none(1 << 20)}> once;
    arena<default_heap, arena_options{.grow = {.limit = 1 << 20}}> bounded; // all chunks together
    arena<> by_rule(round_to_pages); // any function can be the rule

    assert(by_four.try_allocate({1, 1}) && by_four.stats().bytes_taken == 1024);
    assert(constant.try_allocate({1, 1}) && constant.stats().bytes_taken == 1 << 16);
    assert(linear.try_allocate({1, 1}) && by_half.try_allocate({1, 1}));
    assert(once.try_allocate({1, 1}) && !once.try_allocate({1 << 20, 1}));
    assert(!bounded.try_allocate({1 << 20, 1}) && bounded.try_allocate({1 << 19, 1}));
    assert(by_rule.try_allocate({1, 1}) && by_rule.stats().bytes_taken == mallard::page_bytes);
}
