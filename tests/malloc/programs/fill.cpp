// Allocates all memory under a limit of the address space, frees it, and allocates it again in
// other sizes. The blocks are linked through their first words, because no memory is left for a
// list of them.
#include "../family.hpp"
#include "check.hpp"

#include <initializer_list>
#include <new>

#include <pthread.h>

namespace {

using namespace mallard::testing;

constexpr std::size_t mebibyte = 1 << 20;

class hoard {
public:
    /// Allocates blocks until malloc fails, and returns their usable bytes.
    std::size_t take_all(std::size_t bytes)
    {
        std::size_t taken = 0;
        while (void* const block = std::malloc(bytes)) {
            *static_cast<void**>(block) = first_;
            first_ = block;
            taken += ::malloc_usable_size(block);
        }
        check(errno == ENOMEM, "null is for want of memory");
        return taken;
    }
    void free_all()
    {
        while (first_ != nullptr) {
            void* const next = *static_cast<void**>(first_);
            std::free(first_);
            first_ = next;
        }
    }

private:
    void* first_ = nullptr;
};

void fill_again_in_other_sizes()
{
    hoard all;
    std::size_t const first = all.take_all(1000);
    all.free_all();
    for (std::size_t const bytes : {100'000, 64, 16'384, 1'000'000, 3000, 40'000}) {
        std::size_t const again = all.take_all(bytes);
        all.free_all();
        std::printf("%zu MiB in blocks of 1000, then %zu MiB of %zu\n", first / mebibyte,
                    again / mebibyte, bytes);
        // With glibc, the headers of small blocks use a part of the memory.
        check(again >= first / 10 * (bytes == 64 ? 7 : 9), "nine tenths come back");
    }
}

void* take_all_there_is(void*)
{
    hoard mine;
    for (int round = 0; round < 3; ++round)
        for (std::size_t const bytes : {500, 50'000, 500'000}) {
            mine.take_all(bytes);
            mine.free_all();
        }
    return nullptr;
}

void run_out_in_four_threads()
{
    pthread_t threads[4];
    for (pthread_t& thread : threads)
        check(::pthread_create(&thread, nullptr, take_all_there_is, nullptr) == 0, "there is room");
    for (pthread_t const thread : threads)
        ::pthread_join(thread, nullptr);
    hoard all;
    std::size_t const after = all.take_all(1000);
    all.free_all();
    std::printf("%zu MiB after four threads\n", after / mebibyte);
    check(after > 64 * mebibyte, "threads that ran out of memory leave it to others");
    for (std::size_t bytes = 1; bytes <= 64 * mebibyte; bytes *= 2)
        std::free(hidden(std::malloc(bytes)));
}

void* ballast;

void drop_ballast()
{
    std::free(ballast);
    ballast = nullptr;
    std::set_new_handler(nullptr);
}

/// Tests that operator new succeeds after its new_handler has freed memory.
void get_by_the_handler_what_was_refused()
{
    hoard all;
    ballast = std::malloc(20 * mebibyte);
    all.take_all(mebibyte);
    std::set_new_handler(drop_ballast);
    ::operator delete(hidden(::operator new(10 * mebibyte)));
    check(ballast == nullptr, "the new-handler was asked");
    all.free_all();
}

} // namespace

int main(int count, char** arguments)
{
    switch (count < 2 ? 0 : arguments[1][0]) {
    case 's':
        return fill_again_in_other_sizes(), 0;
    case 'h':
        return get_by_the_handler_what_was_refused(), 0;
    case 't':
        return run_out_in_four_threads(), 0;
    }
    std::fprintf(stderr, "fill sizes|handler|threads\n");
    return 2;
}
