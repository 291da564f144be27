// mallard-bench-larson THREADS STEPS is a program like the benchmark of Larson and Krishnan,
// "Memory Allocation for Long-Running Server Applications" (1998). Together the threads do STEPS
// steps. A step replaces a block of 8 to 1000 bytes in a random place of the thread's array. After
// 100,000 steps a thread passes its array to a new thread and exits, so that the new thread frees
// blocks of the old one.
//
// The number of allocations does not depend on the order in which the threads run.
#include <bench/barrier.hpp>
#include <bench/patterns.hpp>

#include <cstdio>
#include <cstdlib>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

namespace {

using namespace mallard::bench;

constexpr std::size_t places = 5000;
constexpr std::size_t steps_of_a_thread = 20 * places;
constexpr std::size_t bytes_min = 8;
constexpr std::size_t bytes_max = 1000;

/// What an exiting thread passes to the next thread.
struct work {
    random_numbers random;
    std::size_t steps_left;
    std::latch& done;
    std::vector<void*> blocks = std::vector<void*>(places);
};

void replace_blocks(work& mine, std::size_t steps)
{
    for (std::size_t i = 0; i < steps; ++i) {
        void*& place = mine.blocks[mine.random.below(places)];
        std::free(place);
        std::size_t const bytes = bytes_min + mine.random.below(bytes_max - bytes_min + 1);
        place = std::malloc(bytes);
        touch(place, bytes);
    }
    mine.steps_left -= steps;
}

void run(std::unique_ptr<work> mine)
{
    replace_blocks(*mine, std::min(mine->steps_left, steps_of_a_thread));
    if (mine->steps_left > 0) {
        std::thread(run, std::move(mine)).detach();
        return;
    }
    for (void* const block : mine->blocks)
        std::free(block);
    std::latch& done = mine->done;
    mine.reset();
    done.count_down();
}

} // namespace

int main(int argc, char** argv)
{
    std::size_t const threads = argc == 3 ? std::strtoul(argv[1], nullptr, 10) : 0;
    std::size_t const steps = threads == 0 ? 0 : std::strtoul(argv[2], nullptr, 10) / threads;
    if (steps == 0) {
        std::fputs("mallard-bench-larson: two numbers are needed, of threads and of steps\n"
                   "  nothing was done\n"
                   "  help: `mallard-bench-larson 2 1000000`\n",
                   stderr);
        return 2;
    }
    std::latch done(static_cast<std::ptrdiff_t>(threads));
    for (std::size_t i = 0; i < threads; ++i) {
        auto first = std::unique_ptr<work>(new work{random_numbers(i + 1), steps, done});
        std::thread(run, std::move(first)).detach();
    }
    done.wait();
    std::printf("%zu steps\n", threads * steps);
}
