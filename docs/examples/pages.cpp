// Chunks straight from the operating system.
#include <mallard/arena.hpp>
#include <mallard/pages.hpp>

#include <cassert>

int main()
{
    // One range of a GiB of address space, memory as it is used.
    constexpr mallard::pages_options one_range{.reserve_bytes = std::size_t{1} << 30};
    mallard::arena<mallard::pages<one_range>> tables;
    auto const table = tables.make_array<int>(1'000'000);

    // A page that nobody may touch before and after each chunk: an overrun of
    // the last block in it stops the program.
    mallard::arena<mallard::pages<mallard::pages_options{.guard = true}>> fenced;
    fenced.make<int>(1);

    assert(table.size() == 1'000'000 && table[999'999] == 0);
    assert(tables.upstream().last_error() == 0);
}
