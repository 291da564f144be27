// dies: mallard: free of ADDRESS, which is not a block of malloc
// checked dies: mallard: free of ADDRESS, which is not a block of "malloc"
#include "act.hpp"

int main()
{
    long numbers[8] = {};
    set_free(numbers + 2);
    return look_for_twins(64);
}
