#include <bench/demo/measure.hpp>
#include <bench/demo/phrase_window.hpp>

namespace mallard::demo {

workload_entry phrase_window_entry()
{
    return {phrase_window::words, measure<phrase_window>};
}

} // namespace mallard::demo
