// mallard-replay repeats the recorded calls of an op stream (spec/replay_format.md).
#include "report.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace mallard::replay {
namespace {

void run(options const& chosen) noexcept
{
    if (chosen.mode == mode::virtual_call)
        return print(measure_virtual_calls());
    stream const ops(chosen.file);
    windows memory(ops.threads().count());
    static check_result known;
    check(ops, memory, known);
    if (chosen.mode == mode::check)
        return print_checked(ops, check_edges(ops, memory));
    if (chosen.mode == mode::account) {
        account counted(ops, memory);
        counted.run();
        return print(ops, counted);
    }
    litter_left const litter = make_litter(ops, known, chosen);
    play played(ops, memory, chosen);
    play_result const result = played.run();
    if (result.has_freed_early())
        fail(status_unreadable, "the replay has no result", "mallard-replay --check FILE",
             "an edge is missing in %.100s: a free came before its allocation %ju times",
             chosen.file, std::uintmax_t{result.empty_frees});
    print(ops, chosen, played, result, litter);
}

} // namespace
} // namespace mallard::replay

int main(int count, char** arguments)
{
    using namespace mallard::replay;
    run(options::parse(count, arguments));
    if (std::fflush(stdout) != 0)
        fail(status_refused, "the file was replayed", "write to a file with free space",
             "cannot write the result: %s", std::strerror(errno));
    return 0;
}
