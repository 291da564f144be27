// Uses only the component core.
#include <mallard/arena.hpp>
#include <mallard/pages.hpp>

int main()
{
    mallard::arena<mallard::pages<>> scratch;
    scratch.make<int>(7);
    return scratch.stats().chunks == 1 ? 0 : 1;
}
