// dies: mallard: rewind to a mark that is no longer valid in an arena
#include <mallard/arena.hpp>

int main()
{
    using namespace mallard;
    arena<default_heap, arena_options{.checks = check::on}> scratch;
    static_cast<void>(scratch.allocate(100));
    auto const before = scratch.mark();
    scratch.reset();
    static_cast<void>(scratch.allocate(1000));
    scratch.rewind(before);
}
