// dies: mallard: rewind to a mark that is no longer valid in an arena
#include <mallard/arena.hpp>

// Like stale_mark.cpp, but the arena has grown past the stale mark again.
int main()
{
    using namespace mallard;
    arena<default_heap, arena_options{.checks = check::on}> scratch;
    auto const outer = scratch.mark();
    static_cast<void>(scratch.allocate(100));
    auto const inner = scratch.mark();
    scratch.rewind(outer);
    static_cast<void>(scratch.allocate(500));
    static_cast<void>(scratch.mark());
    scratch.rewind(inner);
}
