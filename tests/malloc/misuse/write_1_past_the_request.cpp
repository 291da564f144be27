// lives: nothing
#include "act.hpp"

int main()
{
    return write_around(20, 20, 1);
}
