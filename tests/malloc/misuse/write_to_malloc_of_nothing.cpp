// lives: nothing
// checked dies: mallard: write to ADDRESS, past the end of a block of "malloc"
#include "act.hpp"

int main()
{
    return write_around(0, 0, 1);
}
