// Tests that malloc works in the child of a fork, whatever the threads of the parent were doing.
#include "../support/alone.hpp"
#include "../support/child.hpp"
#include "../support/threads.hpp"
#include "support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <pthread.h>
#include <sys/time.h>

namespace {

using namespace mallard::testing;

void allocate_some(std::size_t first, std::size_t round = 0)
{
    round += first;
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

TEST(fork, leaves_a_working_malloc_in_the_child_while_threads_allocate)
{
    std::vector<void*> of_parent;
    for (std::size_t bytes = 1; bytes < 500'000; bytes = bytes * 2 + 1)
        fill(of_parent.emplace_back(std::malloc(bytes)), bytes, 7);
    at_work const others(3, allocate_some);
    for (std::size_t round = 0; round < repeated(100, 20); ++round)
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

TEST(fork, works_again_in_the_child_of_a_fork)
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

TEST(fork, works_while_other_threads_write_with_stdio)
{
    std::FILE* const file = std::fopen("/dev/null", "w");
    {
        at_work const others(3, [file](std::size_t, std::size_t round) {
            std::fprintf(file, "%zu\n", round);
            std::fclose(std::fopen("/dev/null", "w"));
            allocate_some(round);
        });
        for (std::size_t round = 0; round < repeated(50, 10); ++round)
            ASSERT_EQ(in_a_child([file] {
                          std::fprintf(file, "child\n");
                          allocate_some(3);
                          std::fflush(nullptr);
                      }),
                      "fine");
    }
    std::fclose(file);
}

/// A file of long lines (50 kB). Because of their length, `getline` allocates while it holds the
/// lock of its stream.
class long_line {
public:
    long_line() : file_(std::tmpfile())
    {
        std::string const line(50'000, 'x');
        std::fprintf(file_, "%s\n", line.c_str());
        std::fflush(file_);
    }
    void read()
    {
        char* line = nullptr;
        std::size_t bytes = 0;
        std::rewind(file_);
        require(::getline(&line, &bytes, file_) == 50'001, "a line is read");
        std::free(line);
    }

private:
    std::FILE* file_;
};

// fflush(NULL) holds the list of streams while it waits for a stream. fork waits for this list.
TEST(fork, works_while_other_threads_call_getline_and_fflush)
{
    EXPECT_EQ(in_a_child([] {
                  long_line lines[3];
                  at_work const readers(
                      3, [&](std::size_t number, std::size_t) { lines[number].read(); });
                  at_work const flusher(1, [](std::size_t, std::size_t) { std::fflush(nullptr); });
                  for (int round = 0; round < 10; ++round)
                      require(in_a_child([] { allocate_some(3); }) == "fine", "a child allocates");
              }),
              "fine");
}

extern "C" {
void _IO_list_lock();   // glibc's lock of the list of streams, which fork locks after the handlers
void _IO_list_unlock(); // NOLINT(bugprone-reserved-identifier)
}

/// Allocates, frees and reallocates blocks of up to 33 MiB.
void change(std::vector<void*>& blocks)
{
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        std::size_t const bytes = i * i * i * i * 15 + 1;
        std::size_t const looked_at = std::min<std::size_t>(bytes, 100'000);
        auto const seed = static_cast<unsigned>(i);
        if (blocks[i] == nullptr)
            blocks[i] = std::malloc(bytes);
        else
            require(holds(blocks[i], looked_at, seed), "a block keeps its bytes");
        require(::malloc_usable_size(blocks[i]) >= bytes, "a block is known");
        if (i % 3 == 0) // keeps some blocks for later rounds
            std::free(std::exchange(blocks[i], std::malloc(bytes)));
        else if (i % 3 == 1)
            blocks[i] = std::realloc(blocks[i], bytes + (i % 2 == 0 ? bytes / 2 : 0));
        require(blocks[i] != nullptr, "there is memory");
        fill(blocks[i], looked_at, seed);
    }
}

// The threads start and exit, and free blocks of other threads.
TEST(fork, does_not_block_threads_while_it_waits_for_the_c_library)
{
    EXPECT_EQ(in_a_child([] {
                  std::vector<void*> blocks(40), of_child(40);
                  change(blocks);
                  change(of_child);
                  std::string child;
                  std::atomic<pid_t> forks = 0;
                  std::jthread forker;
                  ::_IO_list_lock();
                  forker = std::jthread([&] {
                      forks = ::gettid();
                      child = in_a_child([&] {
                          for (int round = 0; round < 3; ++round)
                              change(of_child);
                          in_threads(3, [](std::size_t number) { allocate_some(number); });
                      });
                  });
                  wait_until([&] { return forks != 0 && is_asleep(forks); },
                             "the fork waits for the list of streams");
                  for (int round = 0; round < 3; ++round)
                      change(blocks);
                  in_threads(3, [](std::size_t number) { allocate_some(number); });
                  in_a_thread([&] { change(blocks); });
                  ::malloc_trim(0);
                  ::mallinfo2();
                  ::_IO_list_unlock();
                  forker.join();
                  require(child == "fine", "the child goes on");
                  for (int round = 0; round < 3; ++round) {
                      change(blocks);
                      change(of_child);
                  }
                  in_threads(3, [](std::size_t number) { allocate_some(number); });
              }),
              "fine");
}

TEST(fork, handlers_may_allocate)
{
    constexpr auto allocate = [] { allocate_some(5); };
    // Fork handlers cannot be removed, so the test runs in a child. In this process, the handlers
    // would allocate when a signal handler of another test forks.
    EXPECT_EQ(in_a_child([&] {
                  at_work const others(3, allocate_some);
                  require(::pthread_atfork(allocate, allocate, allocate) == 0, "they are set");
                  for (std::size_t round = 0; round < repeated(50, 10); ++round)
                      require(in_a_child(allocate) == "fine", "a child allocates");
              }),
              "fine");
}

void on_alarm(void (*handler)(int))
{
    struct sigaction action = {};
    action.sa_handler = handler;
    ::sigaction(SIGALRM, &action, nullptr);
}

/// Allocates while a signal arrives every half millisecond, until the handler of the signal has
/// forked `count` times.
void allocate_until(const volatile std::sig_atomic_t& forks, int count)
{
    itimerval const often{{0, 500}, {0, 500}};
    ::setitimer(ITIMER_REAL, &often, nullptr);
    std::size_t round = 0;
    while (forks < count)
        allocate_some(round++);
    itimerval const never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
}

/// In a process that never had a second thread, a signal handler may call fork. The handler may
/// interrupt malloc.
TEST(fork, works_in_a_signal_handler_that_interrupts_malloc)
{
    if (!is_alone()) {
        EXPECT_EQ(alone_in_a_new_process(), "fine");
        return;
    }
    EXPECT_EQ(in_a_child([] {
                  static volatile std::sig_atomic_t forks = 0;
                  on_alarm([](int) {
                      pid_t const child = ::fork();
                      if (child == 0)
                          ::_exit(0);
                      int status = 0;
                      require(::waitpid(child, &status, 0) == child && status == 0, "it ends");
                      forks = forks + 1;
                  });
                  allocate_until(forks, 200);
              }),
              "fine");
}

/// In a process with many threads, the child may call only async-signal-safe functions. glibc's
/// malloc may hang.
TEST(fork, works_in_a_signal_handler_while_threads_allocate)
{
    if (!is_preloaded())
        GTEST_SKIP() << "a promise of our own";
    EXPECT_EQ(in_a_child([] {
                  static volatile std::sig_atomic_t forks = 0;
                  static pthread_t forker;
                  forker = ::pthread_self();
                  on_alarm([](int) {
                      if (!::pthread_equal(::pthread_self(), forker))
                          return;
                      pid_t const child = ::fork();
                      if (child == 0 && forks % 2 == 0)
                          ::execl("/bin/true", "true", nullptr);
                      if (child == 0)
                          ::_exit(0);
                      int status = 0;
                      require(::waitpid(child, &status, 0) == child && status == 0, "it ends");
                      forks = forks + 1;
                  });
                  at_work const others(2, allocate_some);
                  allocate_until(forks, 100);
              }),
              "fine");
}

TEST(fork, many_forks_do_not_increase_the_memory_of_the_parent)
{
    allocate_some(1);
    std::size_t early = 0;
    for (std::size_t round = 0; round < repeated(300, 60); ++round) {
        ASSERT_EQ(in_a_child([] { allocate_some(1); }), "fine");
        if (round == 30)
            early = resident_bytes();
    }
    EXPECT_LE(resident_bytes(), early + (std::size_t{1} << 20));
}

} // namespace
