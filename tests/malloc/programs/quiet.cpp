// Prints the resident memory in KiB of a quiet program, two seconds after it has freed 256 MiB.
//
//     quiet requests   frees many sizes, then handles requests of 40 small blocks
//     quiet one_size   frees one size, then allocates and frees blocks of that size
//     quiet frees      the first calls after the large work are frees of small blocks
//     quiet thread     another thread does the large work, and sleeps
//     quiet large      does its large work in blocks of 20 MiB
//     quiet resize     then resizes a block again and again
//
// The program does not wait. It defines a clock, which malloc reads too, and advances this clock
// itself.
#include "../family.hpp"
#include "check.hpp"

#include <cstdio>
#include <cstring>

#include <pthread.h>
#include <time.h>
#include <unistd.h>

namespace {
unsigned long microseconds = 1'000'000'000;
} // namespace

extern "C" int clock_gettime(clockid_t, timespec* now) noexcept
{
    unsigned long const at = __atomic_load_n(&microseconds, __ATOMIC_RELAXED);
    *now = {static_cast<time_t>(at / 1'000'000), static_cast<long>(at % 1'000'000 * 1000)};
    return 0;
}

namespace {

using namespace mallard::testing;

void pass(unsigned long time)
{
    __atomic_fetch_add(&microseconds, time, __ATOMIC_RELAXED);
}

constexpr std::size_t mebibyte = 1 << 20;

void* blocks[300'000];

/// Allocates 256 MiB in blocks of this size, writes to them, and frees them. Advances the clock by
/// 50 us for each MiB.
void work_in_blocks_of(std::size_t bytes)
{
    std::size_t const count = 256 * mebibyte / bytes;
    for (std::size_t i = 0; i < count; ++i) {
        blocks[i] = std::memset(std::malloc(bytes), 1, bytes);
        if (i % (count / 16) == 0)
            pass(800);
    }
    for (std::size_t i = 0; i < count; ++i) {
        std::free(blocks[i]);
        if (i % (count / 16) == 0)
            pass(800);
    }
}

/// Handles a request: allocates 40 small blocks, works, and frees the blocks.
template <class F>
void handle(F work)
{
    static unsigned random = 1;
    void* small[40];
    for (void*& block : small) {
        random = random * 1103515245 + 12345;
        block = hidden(std::malloc(20 + (random >> 8) % 3000));
    }
    work();
    for (void* const block : small)
        std::free(block);
    pass(10'000);
}
void nothing() {}

/// Calls `request` 200 times, in two seconds.
template <class F>
void be_quiet(F request)
{
    for (int i = 0; i < 200; ++i) {
        request();
        pass(10'000);
    }
}

void handle_requests()
{
    be_quiet([] { handle(nothing); });
}

void requests()
{
    work_in_blocks_of(8000);
    work_in_blocks_of(30'000);
    handle_requests();
}

void one_size()
{
    work_in_blocks_of(8000);
    work_in_blocks_of(8000);
    be_quiet([] { std::free(hidden(std::malloc(8000))); });
}

void frees()
{
    auto const all = [] {
        work_in_blocks_of(8000);
        work_in_blocks_of(30'000);
    };
    for (int i = 0; i < 50; ++i)
        handle(nothing);
    handle(all);
    handle_requests();
}

pthread_barrier_t done, may_end;

void thread()
{
    handle(nothing);
    ::pthread_barrier_init(&done, nullptr, 2);
    ::pthread_barrier_init(&may_end, nullptr, 2);
    auto const work = [](void*) -> void* {
        work_in_blocks_of(8000);
        work_in_blocks_of(30'000);
        ::pthread_barrier_wait(&done);
        ::pthread_barrier_wait(&may_end);
        return nullptr;
    };
    pthread_t started;
    check(::pthread_create(&started, nullptr, work, nullptr) == 0, "a thread starts");
    ::pthread_barrier_wait(&done);
    handle_requests();
}

void large()
{
    for (int i = 0; i < 3; ++i) {
        std::free(std::memset(std::malloc(20 * mebibyte), 1, 20 * mebibyte));
        pass(2000);
    }
    handle_requests();
}

void resize()
{
    work_in_blocks_of(8000);
    work_in_blocks_of(30'000);
    void* block = std::malloc(100'000);
    std::size_t bytes = 100'000;
    be_quiet([&] {
        bytes = 300'000 - bytes;
        block = std::realloc(block, bytes);
        std::memset(block, 1, bytes);
    });
}

struct {
    const char* name;
    void (*run)();
} constexpr kinds[] = {{"requests", requests}, {"one_size", one_size}, {"frees", frees},
                       {"thread", thread},     {"large", large},       {"resize", resize}};

long resident_kib()
{
    long total = 0, resident = 0;
    std::FILE* const file = std::fopen("/proc/self/statm", "r");
    check(file != nullptr && std::fscanf(file, "%ld %ld", &total, &resident) == 2,
          "memory is known");
    std::fclose(file);
    return resident * (::sysconf(_SC_PAGESIZE) / 1024);
}

} // namespace

int main(int count, char** arguments)
{
    check(count == 2, "a kind of program is named");
    for (auto const& [name, run] : kinds)
        if (std::strcmp(name, arguments[1]) == 0)
            run();
    std::printf("%ld\n", resident_kib());
    std::fflush(stdout);
    ::_exit(0); // a thread may still sleep
}
