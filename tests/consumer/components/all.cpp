// Uses the header of the component all.
#include <mallard/mallard.hpp>

int main()
{
    mallard::arena<mallard::pages<>> scratch;
    scratch.make<int>(7);
    return scratch.stats().chunks == 1 ? 0 : 1;
}
