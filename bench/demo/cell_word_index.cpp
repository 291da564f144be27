#include <bench/demo/measure.hpp>
#include <bench/demo/word_index.hpp>

namespace mallard::demo {

workload_entry word_index_entry()
{
    return {word_index::words, measure<word_index>};
}

} // namespace mallard::demo
