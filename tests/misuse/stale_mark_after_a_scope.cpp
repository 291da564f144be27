// dies: mallard: rewind to a mark that is no longer valid in an arena
#include <mallard/arena.hpp>

// Like stale_mark.cpp, after the end of an arena scope. The scope itself made no mark stale.
int main()
{
    using namespace mallard;
    arena<default_heap, arena_options{.checks = check::on}> scratch;
    auto const outer = scratch.mark();
    static_cast<void>(scratch.allocate(100));
    auto const inner = scratch.mark();
    scratch.rewind(outer);
    static_cast<void>(scratch.allocate(500));
    {
        scope const frame(scratch);
        static_cast<void>(scratch.allocate(10));
    }
    scratch.rewind(inner);
}
