// Forks of a process whose other threads use the malloc engine at the same time. The child must be
// able to continue.
#include "../../src/heap/guests.hpp"
#include "../../src/heap/requests.hpp"
#include "../../src/heap/sample.hpp"
#include "../support/asan.hpp"
#include "../support/child.hpp"
#include "../support/engine_program.hpp"
#include "../support/threads.hpp"
#include "../support/tsan.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <vector>

#include <pthread.h>

namespace {

using namespace mallard::testing;
namespace engine = mallard::engine;
namespace os = mallard::os;

constexpr std::size_t workers = 3;
// ThreadSanitizer makes forks slow, because its shadow memory is copied.
std::size_t const forks = repeated(has_tsan() ? 15 : 40, 5);

/// Returns whether threads may start during forks. The malloc of a sanitizer does not survive a
/// fork while threads start and exit.
bool threads_may_come()
{
    return !has_tsan() && !has_asan();
}

/// A thread that is exiting. An earlier round of thread-key destructors has abandoned its cache, so
/// its calls use the fallback cache.
class late_worker {
public:
    late_worker()
    {
        ::pthread_key_create(&key_, [](void* self) { static_cast<late_worker*>(self)->end(); });
        thread_ = std::jthread([this] {
            engine::deallocate(engine::allocate(100));
            ::pthread_setspecific(key_, this);
        });
    }
    ~late_worker()
    {
        stop_ = true;
        thread_.join();
        ::pthread_key_delete(key_);
    }

private:
    void end()
    {
        if (++round_ < 3) {
            ::pthread_setspecific(key_, this);
            return;
        }
        require(engine::shown_cache()->is_decoy(), "its cache is abandoned");
        engine_user user(99);
        while (!stop_)
            user.end(user.make());
    }

    std::atomic<bool> stop_ = false;
    int round_ = 0;
    pthread_key_t key_{};
    std::jthread thread_;
};

TEST(engine_fork, leaves_a_working_child)
{
    engine_market market(64);
    std::atomic<bool> stop = false;
    {
        late_worker late;
        std::vector<std::jthread> threads;
        for (std::size_t number = 0; number < workers; ++number)
            threads.emplace_back([&, number] {
                for (std::size_t i = 0; !stop; ++i) {
                    // Runs some rounds in a separate thread, so that caches are abandoned and
                    // reclaimed.
                    auto const work = [&] {
                        engine_user user(number << 32 | i);
                        market.trade(user, 20);
                    };
                    if (i % 4 == 0 && threads_may_come())
                        in_a_thread(work);
                    else
                        work();
                    engine::flush_abandoned();
                    engine::the_slice_heap.age();
                }
            });
        for (std::size_t i = 0; i < forks; ++i)
            EXPECT_EQ(in_a_child([&] {
                          engine_user user(i);
                          engine_market own(32);
                          own.trade(user, 300);
                          engine::flush_abandoned();
                          engine::the_slice_heap.trim(0);
                          if (!threads_may_come())
                              return;
                          in_threads(2, [&](std::size_t number) {
                              engine_user other(i + number);
                              own.trade(other, 100);
                          });
                      }),
                      "fine");
        stop = true;
    }
}

extern "C" {
// Internal functions of glibc. A fork waits for their lock after it has run its fork handlers.
void _IO_list_lock();
void _IO_list_unlock();
}

void count_sample(void* live, mallard_sample_event event, const mallard_sample*)
{
    *static_cast<std::ptrdiff_t*>(live) += event == MALLARD_SAMPLE_ALLOCATED ? 1 : -1;
}

/// Returns why threads cannot continue during a fork, or null if they can.
const char* why_threads_wait_for_forks()
{
    return has_tsan_of_llvm_15()
               ? "this ThreadSanitizer holds its locks during a fork, so that other threads wait"
               : nullptr;
}

/// Calls `meanwhile()` while a fork holds all engine locks and waits, and `in_child()` in the child
/// of that fork.
template <class Meanwhile, class Child>
void while_a_fork_waits(Meanwhile meanwhile, Child in_child)
{
    std::string child;
    ::_IO_list_lock();
    std::jthread forker([&] { child = in_a_child(in_child); });
    while (!engine::the_slice_heap.its_lock().is_kept())
        std::this_thread::yield();
    meanwhile();
    ::_IO_list_unlock();
    forker.join();
    require(child == "fine", "the child goes on");
}

// Threads that call the engine during a fork do not wait for the locks that the forking thread
// holds, but use a slow path. The spans that these threads free become free after the fork.
TEST(engine_fork, loses_no_change_that_other_threads_make_during_the_fork)
{
    if (const char* const why = why_threads_wait_for_forks())
        GTEST_SKIP() << why;
    EXPECT_EQ(in_a_child([] {
                  std::ptrdiff_t live = 0;
                  require(engine::set_sampling(100'000, count_sample, &live) == 0, "sampling");
                  engine_market market(64);
                  engine_market of_child(64);
                  engine_user user(1);
                  market.trade(user, 2000);
                  of_child.trade(user, 2000);
                  for (int round = 0; round < 3; ++round)
                      while_a_fork_waits(
                          [&] {
                              market.trade(user, rounds(3000));
                              engine::flush_abandoned();
                              engine::the_slice_heap.age();
                              engine::the_slice_heap.trim(0);
                          },
                          [&] {
                              engine_user other(2);
                              of_child.trade(other, rounds(3000));
                              engine::the_slice_heap.age();
                              engine::the_slice_heap.trim(0);
                          });
                  market.clear();
                  of_child.clear();
                  in_a_thread([] {}); // becomes the thread that exited last
                  require(live == 0, "all sampled blocks were reported as freed");
                  engine::flush_idle_threads();
                  engine::usage const now = engine::the_slice_heap.now();
                  require(now.used < 64, "only slabs that are being carved are in use");
                  engine::the_slice_heap.trim(0);
                  require(engine::huge_now().bytes == 0, "no mapping is left");
              }),
              "fine");
}

std::ptrdiff_t cache_count()
{
    std::ptrdiff_t count = 0;
    for (auto* cache = engine::all_caches(); cache != nullptr; cache = cache->next_of_all)
        count += 1;
    return count;
}

TEST(engine_fork, lets_other_threads_use_free_memory_and_caches_during_the_fork)
{
    if (const char* const why = why_threads_wait_for_forks())
        GTEST_SKIP() << why;
    EXPECT_EQ(in_a_child([] {
                  auto const use_memory = [] {
                      for (int i = 0; i < 20; ++i) {
                          void* blocks[8];
                          for (void*& block : blocks)
                              std::memset(block = engine::allocate(300'000), i, 300'000);
                          for (void* const block : blocks)
                              engine::deallocate(block);
                      }
                  };
                  auto const meanwhile = [&] {
                      use_memory();
                      if (threads_may_come())
                          in_a_thread(use_memory);
                  };
                  while_a_fork_waits(meanwhile, use_memory);
                  engine::usage const first = engine::the_slice_heap.now();
                  std::ptrdiff_t const caches = cache_count();
                  for (int round = 0; round < 5; ++round)
                      while_a_fork_waits(meanwhile, use_memory);
                  require(engine::the_slice_heap.now().committed == first.committed,
                          "the commit limit stays");
                  // Fewer slices may be in use, because caches that this process inherited return
                  // idle slabs.
                  require(engine::the_slice_heap.now().used <= first.used, "all spans are free");
                  require(cache_count() == caches, "no thread made another cache");
              }),
              "fine");
}

bool is_filled(const void* block, std::size_t bytes, char value)
{
    std::string_view const all(static_cast<const char*>(block), bytes);
    return all.find_first_not_of(value) == all.npos;
}

// The child may hold pointers to blocks that other threads allocated just before the fork copied
// the process.
TEST(engine_fork, keeps_the_blocks_that_other_threads_allocate_during_the_fork)
{
    if (const char* const why = why_threads_wait_for_forks())
        GTEST_SKIP() << why;
    EXPECT_EQ(in_a_child([] {
                  auto const size_of = [](std::size_t i) { return i * i * 500 + 1; };
                  std::vector<void*> blocks(40);
                  void* const before = engine::allocate(5'000'000);
                  std::memset(before, 1, 5'000'000);
                  engine::deallocate(before); // guests and the child reuse these slices
                  auto const holds_all = [&] {
                      for (std::size_t i = 0; i < blocks.size(); ++i)
                          require(is_filled(blocks[i], size_of(i), static_cast<char>(i)),
                                  "a block keeps its bytes");
                  };
                  while_a_fork_waits(
                      [&] {
                          void* const zeroed = engine::allocate_zeroed(4'000'000);
                          require(is_filled(zeroed, 4'000'000, 0), "a guest's block is zeroed");
                          engine::deallocate(zeroed);
                          for (std::size_t i = 0; i < blocks.size(); ++i)
                              std::memset(blocks[i] = engine::allocate(size_of(i)),
                                          static_cast<int>(i), size_of(i));
                      },
                      [&] {
                          engine_user user(1);
                          engine_market own(64);
                          own.trade(user, rounds(3000));
                          engine::the_slice_heap.age();
                          engine::the_slice_heap.age();
                          engine::the_slice_heap.trim(0);
                          require(is_filled(engine::allocate_zeroed(5'000'000), 5'000'000, 0),
                                  "a block is zeroed");
                          holds_all();
                      });
                  holds_all();
                  for (void* const block : blocks)
                      engine::deallocate(block);
              }),
              "fine");
}

// Simulates a signal handler that forks after it has interrupted a thread that holds a lock.
TEST(engine_fork, does_not_wait_for_a_thread_that_is_interrupted_in_the_engine)
{
    if (const char* const why = why_threads_wait_for_forks())
        GTEST_SKIP() << why;
    EXPECT_EQ(in_a_child([] {
                  engine_market market(64);
                  at_work const others(2, [&](std::size_t number, std::size_t round) {
                      engine_user user(number << 32 | round);
                      market.trade(user, 20);
                  });
                  for (os::lock* const held : {&engine::the_slice_heap.its_lock(),
                                               &engine::lock_of_huge(), &engine::guests})
                      for (int round = 0; round < 10; ++round) {
                          os::hold const interrupted(*held);
                          pid_t const child = ::fork();
                          if (child == 0)
                              ::_exit(0);
                          int status = 0;
                          require(::waitpid(child, &status, 0) == child && status == 0, "it ends");
                      }
                  while_a_fork_waits([] {}, [] { engine::deallocate(engine::allocate(100)); });
              }),
              "fine");
}

} // namespace
