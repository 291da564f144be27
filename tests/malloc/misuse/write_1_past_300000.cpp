// lives: a neighbour is damaged
// checked dies: mallard: write to ADDRESS, past the end of a block of "malloc"
#include "act.hpp"

int main()
{
    return write_past_the_usable_size(bytes_large, 1);
}
