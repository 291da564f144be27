// dies: mallard: ADDRESS is freed with another size than its own
// checked dies: mallard: free of ADDRESS with a wrong layout in "operator new"
#include "act.hpp"

int main()
{
    ::operator delete(hidden(::operator new(64)), bytes_large);
    return look_for_twins(64);
}
