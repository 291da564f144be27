// advises: leave
//
// Counts the phrases in a window that slides over the text of the suite demo. Most of the time is
// that of comparing keys in a map.
#include "demo.hpp"

#include <bench/demo/phrase_window.hpp>

int main(int count, char** arguments)
{
    using workload = mallard::demo::phrase_window;
    return known::main_of<workload, mallard::demo::strategy<1>>(count, arguments, 16);
}
