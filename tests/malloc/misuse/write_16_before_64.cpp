// lives: a neighbour is damaged
// checked dies: mallard: write to ADDRESS, before a block of "malloc"
#include "act.hpp"

int main()
{
    return write_around(64, -16, 16);
}
