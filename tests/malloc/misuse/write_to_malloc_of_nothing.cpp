// lives: nothing
#include "act.hpp"

int main()
{
    return write_around(0, 0, 1);
}
