// lives: nothing
// checked dies: mallard: write to ADDRESS, past the end of a block of "malloc"
#include "act.hpp"

int main()
{
    return write_around(20, 20, 8);
}
