// Catches the exception of operator new without naming std::bad_alloc, so that the linker needs
// less of a static C++ runtime.
#include "../family.hpp"

int main()
{
    try {
        mallard::testing::hidden(
            ::operator new(mallard::testing::hidden(std::size_t{PTRDIFF_MAX})));
    } catch (...) {
        return 0;
    }
    return 1;
}
