// Uses the component trace, with an allocator of the component core.
#include <mallard/adapt/traced.hpp>
#include <mallard/arena.hpp>

int main()
{
    mallard::trace_file file("/dev/null");
    mallard::traced<mallard::arena<>> scratch(file.channel("scratch"));
    static_cast<void>(scratch.allocate({100}));
    return file.close() ? 0 : 1;
}
