// advises: leave
//
// Makes an index of the words in the text of the suite demo, and looks phrases up. Most of the time
// is that of hashing and searching.
#include "demo.hpp"

#include <bench/demo/word_index.hpp>

int main(int count, char** arguments)
{
    using workload = mallard::demo::word_index;
    return known::main_of<workload, mallard::demo::strategy<1>>(count, arguments, 6);
}
