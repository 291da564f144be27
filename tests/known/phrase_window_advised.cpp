// follows the advice: convert AS7 in answer_of
//
// The program phrase_window.cpp with a multipool for each round.
#include "demo.hpp"

#include <bench/demo/phrase_window.hpp>

int main(int count, char** arguments)
{
    using workload = mallard::demo::phrase_window;
    return known::main_of<workload, mallard::demo::strategy<7>>(count, arguments, 8);
}
