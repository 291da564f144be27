// mallard-bench-mix THREADS STEPS is a program with several threads for the suite `trace`. Together
// the threads do STEPS steps. A step allocates a block of 16 to 512 bytes and frees the block that
// was in a random place before. Half of the places belong to one thread, and half to all threads,
// so that a quarter to a half of the blocks are freed by another thread.
//
// The number of allocations does not depend on the order in which the threads run. Allocations are
// in functions that call themselves up to eight times, so that call stacks differ.
#include <bench/barrier.hpp>
#include <bench/patterns.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using namespace mallard::bench;

constexpr std::size_t places = 4096;
std::array<std::atomic<void*>, places> shared;

[[gnu::noinline]] void* take(std::size_t bytes, std::size_t depth)
{
    if (depth != 0)
        return keep(take(bytes, depth - 1));
    void* const block = std::malloc(bytes);
    touch(block, bytes);
    return block;
}

[[gnu::noinline]] void give(void* block, std::size_t depth)
{
    if (depth != 0) {
        give(block, depth - 1);
        keep(block);
        return;
    }
    std::free(block);
}

void work(std::size_t seed, std::size_t steps)
{
    random_numbers random(seed);
    std::array<void*, places> own{};
    for (std::size_t i = 0; i < steps; ++i) {
        void* const block = take(16 + random.below(497), random.below(8));
        std::size_t const place = random.below(places);
        void* const old =
            random.below(2) == 0 ? std::exchange(own[place], block) : shared[place].exchange(block);
        give(old, random.below(8));
    }
    for (void* const block : own)
        std::free(block);
}

} // namespace

int main(int argc, char** argv)
{
    std::size_t const threads = argc == 3 ? std::strtoul(argv[1], nullptr, 10) : 0;
    std::size_t const steps = threads == 0 ? 0 : std::strtoul(argv[2], nullptr, 10) / threads;
    if (steps == 0) {
        std::fputs("mallard-bench-mix: two numbers are needed, of threads and of steps\n"
                   "  nothing was done\n"
                   "  help: `mallard-bench-mix 2 1000000`\n",
                   stderr);
        return 2;
    }
    std::vector<std::thread> all;
    for (std::size_t i = 0; i < threads; ++i)
        all.emplace_back(work, i + 1, steps);
    for (std::thread& t : all)
        t.join();
    for (std::atomic<void*>& place : shared)
        std::free(place);
    std::printf("%zu steps\n", threads * steps);
}
