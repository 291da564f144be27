// lives: a neighbour is damaged
// checked dies: mallard: write to ADDRESS, behind a block of "malloc"
#include "act.hpp"

int main()
{
    return write_past_the_usable_size(64, 64);
}
