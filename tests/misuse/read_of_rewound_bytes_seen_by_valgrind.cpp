// valgrind: Invalid read
#include <mallard/arena.hpp>

int main()
{
    using namespace mallard;
    arena<default_heap, arena_options{.checks = check::on}> scratch;
    auto const start = scratch.mark();
    auto* const block = static_cast<volatile char*>(scratch.allocate(64));
    block[8] = 1;
    scratch.rewind(start);
    return block[8];
}
