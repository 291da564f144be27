// dies: mallard: double free of ADDRESS
// checked dies: mallard: double free of ADDRESS in "operator new"
#include "act.hpp"

int main()
{
    int* const number = new int(5);
    delete hidden(number);
    delete hidden(number);
    return look_for_twins(4);
}
