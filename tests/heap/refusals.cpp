// Tests heaps when the system provides no memory. The test runs in a separate process, because the
// engine keeps the address space that earlier tests have used, so a limit would act later.
#include "../support/alone.hpp"
#include "../support/asan.hpp"
#include "../support/child.hpp"
#include "../support/require.hpp"
#include "../support/tsan.hpp"

#include <mallard/heap.hpp>

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include <sys/resource.h>

namespace {

using mallard::heap;

/// Runs `f` in a child process whose address space is limited to `bytes`.
template <class F>
std::string in_a_small_child(std::size_t bytes, F f)
{
    return mallard::testing::in_a_child([=] {
        rlimit const limit{bytes, RLIM_INFINITY};
        mallard::testing::require(::setrlimit(RLIMIT_AS, &limit) == 0, "a limit is set");
        f();
    });
}

TEST(failed_system_calls, cause_no_leak_of_blocks_or_memory)
{
    if (mallard::testing::has_asan() || mallard::testing::has_tsan())
        GTEST_SKIP() << "a sanitizer needs the address space";
    if (!mallard::testing::is_alone()) {
        EXPECT_EQ(mallard::testing::alone_in_a_new_process(), "fine");
        return;
    }
    EXPECT_EQ(in_a_small_child(
                  std::size_t{256} << 20,
                  [] {
                      using mallard::testing::require;
                      heap h;
                      std::vector<void*> blocks;
                      blocks.reserve(1 << 22);
                      for (std::size_t const bytes : {100, 5000, 300000, 4000000}) {
                          while (void* const block = h.try_allocate(bytes)) {
                              std::memset(block, 1, bytes);
                              blocks.push_back(block);
                          }
                          require(!blocks.empty(), "some memory was available");
                          require(h.stats().blocks_live == blocks.size(), "all blocks are counted");
                          for (void* const block : blocks)
                              h.deallocate(block);
                          require(h.stats().blocks_live == 0, "all blocks are free");
                          std::size_t const count = blocks.size();
                          blocks.clear();
                          h.release();
                          while (h.try_allocate(bytes) != nullptr)
                              blocks.push_back(nullptr);
                          require(blocks.size() * 10 >= count * 9, "as many fit a second time");
                          blocks.clear();
                          h.release();
                      }
                  }),
              "fine");
}

} // namespace
