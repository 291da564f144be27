// Tests the mutex that is locked while a shared allocator grows.
#include <mallard/detail/threads/thread_caches.hpp>

#include <gtest/gtest.h>

#include <mutex>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using mallard::recursive_mutex;

constinit recursive_mutex in_static_memory;

bool another_thread_gets(recursive_mutex& m)
{
    bool got = false;
    std::thread([&] {
        got = m.try_lock();
        if (got)
            m.unlock();
    }).join();
    return got;
}

TEST(recursive_mutex, is_free_after_as_many_unlocks_as_locks)
{
    recursive_mutex& m = in_static_memory;
    m.lock();
    m.lock();
    EXPECT_TRUE(m.try_lock());
    for (int i = 0; i < 3; ++i) {
        EXPECT_FALSE(another_thread_gets(m));
        m.unlock();
    }
    EXPECT_TRUE(another_thread_gets(m));
}

TEST(recursive_mutex, admits_one_thread_at_a_time)
{
    recursive_mutex m;
    long sum = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (int i = 0; i < 10'000; ++i) {
                std::lock_guard const once(m);
                std::lock_guard const again(m);
                ++sum;
            }
        });
    for (auto& t : threads)
        t.join();
    EXPECT_EQ(sum, 40'000);
}

TEST(recursive_mutex, still_has_its_owner_in_the_child_of_a_fork)
{
    recursive_mutex m;
    m.lock();
    pid_t const child = fork();
    if (child == 0) {
        bool const is_mine = m.try_lock();
        m.unlock();
        m.unlock();
        _exit(is_mine ? 0 : 1);
    }
    int status = -1;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    m.unlock();
}

} // namespace
