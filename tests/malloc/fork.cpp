// A child of a fork goes on with the heap, whatever the parent was doing with it.
#include "../support/child.hpp"
#include "../support/threads.hpp"
#include "support.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <vector>

#include <pthread.h>
#include <sys/time.h>

namespace {

using namespace mallard::testing;

/// Threads that do it again and again, from before a test's first fork to after its last.
template <class Work>
class at_work {
public:
    explicit at_work(std::size_t count, Work work)
    {
        for (std::size_t number = 0; number < count; ++number)
            threads_.emplace_back([this, work, number] {
                for (std::size_t round = number; !stop_; ++round)
                    work(round);
            });
    }
    ~at_work() { stop_ = true; }

private:
    std::atomic<bool> stop_ = false;
    std::vector<std::jthread> threads_;
};

void allocate_some(std::size_t round)
{
    void* blocks[40];
    for (std::size_t i = 0; i < std::size(blocks); ++i) {
        std::size_t const bytes = (round * 61 + i * i * 977) % (i % 10 == 9 ? 400'000 : 3000);
        blocks[i] = std::malloc(bytes);
        fill(blocks[i], bytes, static_cast<unsigned>(i));
        require(holds(blocks[i], bytes, static_cast<unsigned>(i)), "blocks are apart");
    }
    for (void* const block : blocks)
        std::free(block);
}

TEST(fork, leaves_the_child_a_heap_that_works_while_threads_of_the_parent_allocate)
{
    std::vector<void*> of_parent;
    for (std::size_t bytes = 1; bytes < 500'000; bytes = bytes * 2 + 1)
        fill(of_parent.emplace_back(std::malloc(bytes)), bytes, 7);
    at_work const others(3, allocate_some);
    for (int round = 0; round < 100; ++round)
        ASSERT_EQ(in_a_child([&] {
                      std::size_t bytes = 1;
                      for (void* const block : of_parent) {
                          require(holds(block, bytes, 7), "blocks of the parent stay");
                          std::free(block);
                          bytes = bytes * 2 + 1;
                      }
                      for (std::size_t i = 0; i < 3; ++i)
                          allocate_some(i);
                      in_threads(3, [](std::size_t number) { allocate_some(number); });
                  }),
                  "fine")
            << round;
    for (void* const block : of_parent)
        std::free(block);
}

TEST(fork, can_be_done_again_in_a_child_of_a_fork)
{
    at_work const others(2, allocate_some);
    for (int round = 0; round < 10; ++round)
        ASSERT_EQ(in_a_child([] {
                      at_work const more(2, allocate_some);
                      require(in_a_child([] {
                                  allocate_some(1);
                                  require(in_a_child([] { allocate_some(2); }) == "fine",
                                          "so can it");
                              }) == "fine",
                              "a grandchild allocates");
                  }),
                  "fine");
}

TEST(fork, works_while_others_write_with_stdio)
{
    std::FILE* const file = std::fopen("/dev/null", "w");
    {
        at_work const others(3, [file](std::size_t round) {
            std::fprintf(file, "%zu\n", round);
            std::fclose(std::fopen("/dev/null", "w"));
            allocate_some(round);
        });
        for (int round = 0; round < 50; ++round)
            ASSERT_EQ(in_a_child([file] {
                          std::fprintf(file, "child\n");
                          allocate_some(3);
                          std::fflush(nullptr);
                      }),
                      "fine");
    }
    std::fclose(file);
}

TEST(fork, lets_its_handlers_allocate)
{
    constexpr auto allocate = [] { allocate_some(5); };
    at_work const others(3, allocate_some);
    ASSERT_EQ(::pthread_atfork(allocate, allocate, allocate), 0);
    for (int round = 0; round < 50; ++round)
        ASSERT_EQ(in_a_child(allocate), "fine");
}

/// In a process of one thread, where fork is safe in a handler; what runs then may be
/// malloc itself.
TEST(fork, works_in_a_signal_handler_in_the_midst_of_malloc)
{
    EXPECT_EQ(in_a_child([] {
                  static volatile std::sig_atomic_t forks = 0;
                  struct sigaction action = {};
                  action.sa_handler = [](int) {
                      pid_t const child = ::fork();
                      if (child == 0)
                          ::_exit(0);
                      int status = 0;
                      require(::waitpid(child, &status, 0) == child && status == 0, "it ends");
                      forks = forks + 1;
                  };
                  ::sigaction(SIGALRM, &action, nullptr);
                  itimerval const often{{0, 500}, {0, 500}};
                  ::setitimer(ITIMER_REAL, &often, nullptr);
                  for (std::size_t round = 0; forks < 200; ++round)
                      allocate_some(round);
                  itimerval const never{};
                  ::setitimer(ITIMER_REAL, &never, nullptr);
              }),
              "fine");
}

TEST(fork, of_many_children_leaves_the_parent_as_it_was)
{
    allocate_some(1);
    std::size_t early = 0;
    for (int round = 0; round < 300; ++round) {
        ASSERT_EQ(in_a_child([] { allocate_some(1); }), "fine");
        if (round == 30)
            early = resident_bytes();
    }
    EXPECT_LE(resident_bytes(), early + (std::size_t{1} << 20));
}

} // namespace
