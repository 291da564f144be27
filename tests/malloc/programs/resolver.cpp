// Allocates in the resolver of an indirect function. The loader runs resolvers before thread-local
// variables have their initial values. Later, two threads resize and free the resolver's blocks.
#include "../family.hpp"
#include "check.hpp"

#include <iterator>

#include <pthread.h>

namespace {

using namespace mallard::testing;

constexpr std::size_t sizes[] = {1, 100, 5'000, 100'000, 3 << 20};
void* kept[std::size(family)][std::size(sizes)];
void* resized;

/// Calls `use(block, bytes)` for each block of the resolver.
template <class F>
void each_block(F use)
{
    for (auto& blocks : kept)
        for (std::size_t i = 0; i < std::size(sizes); ++i)
            use(blocks[i], sizes[i]);
}

std::size_t bytes_in_use()
{
    struct mallinfo2 const info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
}

void* free_every_second(void*)
{
    bool is_second = false;
    each_block([&](void*& block, std::size_t) {
        if ((is_second = !is_second)) {
            std::free(block);
            block = nullptr;
        }
    });
    return nullptr;
}

} // namespace

extern "C" {

int two()
{
    return 2;
}

auto resolve() -> int (*)()
{
    for (std::size_t m = 0; m < std::size(family); ++m)
        for (std::size_t i = 0; i < std::size(sizes); ++i) {
            std::free(family[m].allocate(sizes[i]));
            kept[m][i] = family[m].allocate(sizes[i]);
            fill(kept[m][i], sizes[i], 1);
        }
    resized = std::malloc(100);
    fill(resized, 100, 2);
    resized = std::realloc(std::realloc(resized, 50'000), 5'000'000);
    delete hidden(new int);
    return two;
}

[[gnu::ifunc("resolve")]] int indirect();

} // extern "C"

int main()
{
    check(indirect() == 2, "the resolver chooses the function");
    check(holds(resized, 100, 2), "a resized block keeps its contents");
    std::size_t all = 5'000'000;
    each_block([&](void* block, std::size_t bytes) {
        check(holds(block, bytes, 1), "a block lives after the resolver");
        check(::malloc_usable_size(block) >= bytes, "a block is as large as the caller asked for");
        all += bytes;
    });
    std::size_t const before = bytes_in_use();
    check(before >= all, "the statistics count the blocks of the resolver");

    pthread_t thread;
    ::pthread_create(&thread, nullptr, free_every_second, nullptr);
    ::pthread_join(thread, nullptr);
    each_block([](void* block, std::size_t bytes) {
        if (block == nullptr)
            return;
        block = std::realloc(block, 2 * bytes);
        check(holds(block, bytes, 1), "a block of the resolver can be resized");
        std::free(block);
    });
    std::free(resized);
    // The checked malloc keeps up to 16 MiB of freed blocks in quarantine.
    check(bytes_in_use() <= before - all / 2, "the statistics do not count freed blocks");
}
