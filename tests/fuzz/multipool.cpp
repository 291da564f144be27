// Fuzzes a multipool over the heap or an arena. The first byte chooses its kind; the other bytes
// are the program.
#include "../support/program.hpp"

#include <mallard/arena.hpp>

namespace {

using namespace mallard::testing;
using namespace mallard;

template <class Source, multipool_options O>
void run(recorded& choose)
{
    using multipool = mallard::multipool<Source, O>;
    failing_source source;
    subject_of<multipool> of([&] { return multipool(Source(ref(source))); });
    program<recorded>(source, choose, of).run(5000);
}

constexpr multipool_options options(std::size_t largest, reuse order, check checks)
{
    return {.largest = largest,
            .chunk = 4096,
            .grow = {.first = 512, .max = 8192},
            .order = order,
            .checks = checks};
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    using heap = ref<failing_source>;
    recorded choose({data, bytes});
    switch (choose(4)) {
    case 0:
        run<heap, options(4096, reuse::lifo, check::on)>(choose);
        break;
    case 1:
        run<heap, options(1000, reuse::ordered, check::off)>(choose);
        break;
    case 2:
        run<heap, options(40, reuse::ordered, check::on)>(choose);
        break;
    default:
        run<arena<heap>, options(4096, reuse::lifo, check::off)>(choose);
        break;
    }
    return 0;
}
