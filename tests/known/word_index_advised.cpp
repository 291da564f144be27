// follows the advice: convert AS7 in answer_of
//
// The program word_index.cpp with a multipool for each round.
#include "demo.hpp"

#include <bench/demo/word_index.hpp>

int main(int count, char** arguments)
{
    using workload = mallard::demo::word_index;
    return known::main_of<workload, mallard::demo::strategy<7>>(count, arguments, 3);
}
