// lives: a neighbour is damaged
#include "act.hpp"

int main()
{
    return write_around(bytes_large, -8, 8);
}
