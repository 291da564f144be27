// advises: leave
//
// Parses the text of the suite demo into a tree in each round, walks the tree and destroys it.
#include "demo.hpp"

#include <bench/demo/parse_tree.hpp>

int main(int count, char** arguments)
{
    using workload = mallard::demo::parse_tree;
    return known::main_of<workload, mallard::demo::strategy<1>>(count, arguments, 32);
}
