// dies: mallard: realloc of ADDRESS, which is not a block of malloc
// checked dies: mallard: free of ADDRESS, which is not a block of "malloc"
#include "act.hpp"

int main()
{
    long numbers[8] = {};
    hidden(std::realloc(hidden(numbers + 2), 512));
    return look_for_twins(64);
}
