// expected advice: switch
//
// Parses the text of bench/demo into a tree in each round, walks the tree and destroys it. A
// multipool over an arena for each round saves a third of the time in user mode. But the saving is
// lost, because the system has to clear the pages of the next round.
#include "demo.hpp"

#include <bench/demo/parse_tree.hpp>

int main(int count, char** arguments)
{
    using workload = mallard::demo::parse_tree;
    return known::main_of<workload, mallard::demo::strategy<1>>(count, arguments, 12);
}
