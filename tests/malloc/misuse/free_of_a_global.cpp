// dies: mallard: free of ADDRESS, which is not a block of malloc
// checked dies: mallard: free of ADDRESS, which is not a block of "malloc"
#include "act.hpp"

static long numbers[8];

int main()
{
    set_free(numbers + 2);
    return look_for_twins(64);
}
