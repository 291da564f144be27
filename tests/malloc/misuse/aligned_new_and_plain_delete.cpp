// lives: nothing
// checked lives: nothing
#include "act.hpp"

#include <new>

int main()
{
    ::operator delete(hidden(::operator new(100, std::align_val_t{64})));
    return look_for_twins(100);
}
