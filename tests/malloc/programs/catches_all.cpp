// Catches what operator new throws without a word of std::bad_alloc: a linker puts no more of a
// static C++ runtime into it than that.
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
