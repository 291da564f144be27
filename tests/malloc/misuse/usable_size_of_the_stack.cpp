// dies: mallard: malloc_usable_size of ADDRESS, which is not a block of malloc
// checked dies: mallard: malloc_usable_size of ADDRESS, which is not a block of malloc
#include "act.hpp"

int main()
{
    long numbers[8] = {};
    hidden(::malloc_usable_size(hidden(numbers + 2)));
    return say("nothing");
}
