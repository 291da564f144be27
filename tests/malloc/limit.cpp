// Tests a limit on address space (RLIMIT_AS) that the program itself sets after it has started.
#include "../support/child.hpp"
#include "support.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include <dlfcn.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

namespace {

using namespace mallard::testing;

constexpr std::size_t mib = std::size_t{1} << 20;

/// Allocates and frees blocks of all kinds, small and large.
void allocate_and_free()
{
    for (std::size_t bytes = 1; bytes < 80 * mib; bytes = bytes * 3 + 1) {
        void* const block = std::malloc(bytes);
        require(block != nullptr, "there is memory");
        fill(block, bytes, 3);
        std::free(block);
    }
}

void set_limit(int of, std::size_t bytes)
{
    rlimit const limit{bytes, bytes};
    require(::setrlimit(static_cast<__rlimit_resource>(of), &limit) == 0, "a limit is set");
}

void* thread_that_allocates(void*)
{
    for (std::size_t bytes = 1; bytes < mib; bytes = bytes * 3 + 1) {
        void* const block = std::malloc(bytes);
        require(block != nullptr, "a thread has memory");
        std::free(block);
    }
    return nullptr;
}

void run_a_thread()
{
    pthread_t thread;
    int const error = ::pthread_create(&thread, nullptr, thread_that_allocates, nullptr);
    require(error == 0, "a thread begins");
    ::pthread_join(thread, nullptr);
}

/// Allocates blocks of 1 MiB until malloc fails, frees the blocks, and returns their number.
std::size_t take_all_mebibytes()
{
    void* newest = nullptr;
    std::size_t count = 0;
    while (void* const block = std::malloc(mib)) {
        *static_cast<void**>(block) = std::exchange(newest, block);
        count += 1;
    }
    require(errno == ENOMEM, "errno says why");
    while (newest != nullptr)
        std::free(std::exchange(newest, *static_cast<void**>(newest)));
    return count;
}

TEST(limit, on_address_space_set_at_run_time_leaves_room_for_threads_mappings_and_plugins)
{
    for (std::size_t limit : {512U, 2048U, 16384U})
        EXPECT_EQ(in_a_child([=] {
                      allocate_and_free();
                      set_limit(RLIMIT_AS, limit * mib);
                      run_a_thread();
                      void* const pages = ::mmap(nullptr, 64 * mib, PROT_READ | PROT_WRITE,
                                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
                      require(pages != MAP_FAILED, "pages can be mapped");
                      require(::dlopen("libutil.so.1", RTLD_NOW) != nullptr &&
                                  ::dlopen("libm.so.6", RTLD_NOW) != nullptr,
                              "libraries can be loaded");
                      allocate_and_free();
                  }),
                  "fine")
            << limit;
}

TEST(limit, on_address_space_set_at_run_time_limits_the_memory_of_blocks)
{
    EXPECT_EQ(in_a_child([] {
                  allocate_and_free();
                  set_limit(RLIMIT_AS, 768 * mib);
                  for (int round = 0; round < 3; ++round) {
                      std::size_t const most = take_all_mebibytes();
                      require(most < 768, "there is no more than the limit");
                      require(most > 300, "most of it is for blocks");
                  }
              }),
              "fine");
}

TEST(limit, on_address_space_lets_large_blocks_reuse_the_memory_of_small_ones)
{
    EXPECT_EQ(in_a_child([] {
                  set_limit(RLIMIT_AS, 768 * mib);
                  std::size_t const bytes = take_all_mebibytes() / 2 * mib;
                  for (int round = 0; round < 3; ++round) {
                      errno = 0;
                      void* const block = std::malloc(bytes);
                      require(block != nullptr && errno == 0, "half of it is there in one piece");
                      fill(block, bytes, 5);
                      std::free(block);
                  }
              }),
              "fine");
}

} // namespace
