// Chunks straight from the operating system.
#include <mallard/arena.hpp>
#include <mallard/pages.hpp>

#include <cassert>
#include <cstdio>

int main()
{
    // Reserves 1 GiB of address space, and takes memory from the system only as it is used.
    constexpr mallard::pages_options one_range{.reserve_bytes = std::size_t{1} << 30};
    mallard::arena<mallard::pages<one_range>> tables;
    auto const table = tables.make_array<int>(1'000'000);

    // Puts an inaccessible page before and after each chunk: an overrun of the chunk's last block
    // stops the program.
    mallard::arena<mallard::pages<mallard::pages_options{.guard = true}>> fenced;
    fenced.make<int>(1);

    // Takes memory of the NUMA node 0, or of another node if that node has none.
    mallard::arena<mallard::pages<mallard::pages_options{.numa = mallard::numa::prefer(0)}>> near;
    near.make_array<int>(1000);

    // Takes memory that is resident immediately and is never swapped.
    mallard::pages<mallard::pages_options{.populate = true, .locked = true}> secrets;
    mallard::chunk const keys = secrets.try_take({4096});
    if (keys.data == nullptr)
        std::puts(secrets.last_failure()); // this process cannot lock memory: see `ulimit -l`

    assert(table.size() == 1'000'000 && table[999'999] == 0);
    assert(tables.upstream().last_error() == 0);
    if (keys.data != nullptr)
        secrets.give(keys);
}
