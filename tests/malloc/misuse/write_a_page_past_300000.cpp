// lives: a neighbour is damaged
#include "act.hpp"

int main()
{
    return write_past_the_usable_size(bytes_large, 4096);
}
