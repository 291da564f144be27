#include <bench/demo/measure.hpp>
#include <bench/demo/parse_tree.hpp>

namespace mallard::demo {

workload_entry parse_tree_entry()
{
    return {parse_tree::words, measure<parse_tree>};
}

} // namespace mallard::demo
