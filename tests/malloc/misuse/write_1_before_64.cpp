// lives: a neighbour is damaged
#include "act.hpp"

int main()
{
    return write_around(64, -1, 1);
}
