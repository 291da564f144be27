// lives: a neighbour is damaged
#include "act.hpp"

int main()
{
    return write_past_the_usable_size(4096, 8);
}
