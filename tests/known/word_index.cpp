// expected advice: leave or switch or pool AS7 or convert AS7 or AS8 or AS11 or AS12
//
// Makes an index of the words in the text of bench/demo, and looks phrases up. Hashing, comparing
// and searching take most of the time. A multipool or another malloc saves 4 to 10 %, which is near
// the noise of most machines.
#include "demo.hpp"

#include <bench/demo/word_index.hpp>

int main(int count, char** arguments)
{
    using workload = mallard::demo::word_index;
    return known::main_of<workload, mallard::demo::strategy<1>>(count, arguments, 3);
}
