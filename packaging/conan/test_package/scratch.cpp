// Uses headers and the library of a Conan package.
#include <mallard/mallard.hpp>

int main()
{
    mallard::arena<mallard::pages<>> scratch;
    return scratch.make<int>(7) == 7 ? 0 : 1;
}
