// expected advice: leave or switch or pool AS7 or convert AS7 or AS8 or AS11 or AS12
//
// Counts the phrases in a window that slides over the text of bench/demo. Hashing, comparing and
// searching take most of the time. A multipool or another malloc saves 4 to 10 %, which is near the
// noise of most machines.
#include "demo.hpp"

#include <bench/demo/phrase_window.hpp>

int main(int count, char** arguments)
{
    using workload = mallard::demo::phrase_window;
    return known::main_of<workload, mallard::demo::strategy<1>>(count, arguments, 8);
}
