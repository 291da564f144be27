// Tests threads that start and exit, and that free each other's blocks. The program links the
// malloc engine under other names, so the malloc of the C library is there too.
#include "../support/engine_program.hpp"
#include "../support/threads.hpp"
#include "../support/tsan.hpp"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>

#include <pthread.h>

namespace {

using namespace mallard::testing;
namespace engine = mallard::engine;

constexpr std::size_t threads = 4;

/// Checks that all memory is returned after a test. A test runs in threads that exit before the
/// check.
class engine_threads : public ::testing::Test {
protected:
    ~engine_threads() override
    {
        EXPECT_EQ(slices_used(), before_);
        EXPECT_EQ(engine::huge_now().blocks, 0U);
        EXPECT_EQ(engine::huge_now().bytes, 0U);
    }

private:
    std::size_t before_ = slices_used();
};

TEST_F(engine_threads, can_free_blocks_of_all_kinds_from_other_threads)
{
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        engine_market market(64);
        in_threads(threads, [&](std::size_t number) {
            engine_user user(seed * threads + number);
            market.trade(user, rounds(10'000));
        });
        in_a_thread([&] { market.clear(); });
    }
}

// Uses blocks of one class, so that slabs often become full or empty, and change their owner.
TEST_F(engine_threads, can_free_blocks_of_one_size_from_other_threads)
{
    std::vector<std::atomic<void*>> blocks(3000);
    in_threads(threads, [&](std::size_t number) {
        seeded choose(number);
        for (std::size_t i = 0; i < rounds(300'000); ++i) {
            auto* const block = static_cast<std::size_t*>(engine::allocate(48));
            *block = i;
            engine::deallocate(blocks[choose(blocks.size())].exchange(block));
        }
    });
    in_a_thread([&] {
        for (auto& block : blocks)
            engine::deallocate(block);
    });
}

TEST_F(engine_threads, can_allocate_blocks_that_other_threads_free)
{
    std::mutex lock;
    std::condition_variable changed;
    std::deque<void*> queue;
    constexpr std::size_t queue_max = 500;
    in_threads(threads, [&](std::size_t number) {
        engine_user user(number);
        for (std::size_t i = 0; i < rounds(30'000); ++i) {
            void* block = number % 2 == 0 ? user.make() : nullptr;
            std::unique_lock held(lock);
            changed.wait(
                held, [&] { return number % 2 == 0 ? queue.size() < queue_max : !queue.empty(); });
            if (number % 2 == 0) {
                queue.push_back(block);
            } else {
                block = queue.front();
                queue.pop_front();
            }
            held.unlock();
            changed.notify_all();
            if (number % 2 != 0)
                user.end(block);
        }
    });
}

// Other threads free and resize the blocks of a thread while the thread exits, and while its cache
// is reclaimed.
TEST_F(engine_threads, can_start_and_exit_at_any_time)
{
    engine_market market(256);
    in_threads(threads, [&](std::size_t number) {
        for (std::size_t i = 0; i < rounds(300); ++i)
            in_a_thread([&] {
                engine_user user(number * 1000 + i);
                market.trade(user, 100);
            });
    });
    in_a_thread([&] { market.clear(); });
}

// Flushes abandoned caches and purges free slices continuously, as if decay intervals were very
// short.
TEST_F(engine_threads, can_start_and_exit_while_their_caches_are_scavenged)
{
    engine_market market(128);
    std::atomic<std::size_t> at_work{threads};
    in_threads(threads + 2, [&](std::size_t number) {
        if (number < threads) {
            for (std::size_t i = 0; i < rounds(60); ++i)
                in_a_thread([&] {
                    engine_user user(number * 1000 + i);
                    market.trade(user, 100);
                });
            --at_work;
            return;
        }
        engine::key_of_process(); // chooses the secret key, which a flush needs
        while (at_work != 0) {
            engine::flush_abandoned();
            if (number == threads)
                engine::the_slice_heap.age();
            else
                engine::the_slice_heap.trim(std::size_t{1} << 20);
        }
    });
    in_a_thread([&] { market.clear(); });
}

// One thread allocates each block. The next thread frees the block, and makes no other call.
TEST_F(engine_threads, may_exit_after_freeing_a_single_block)
{
    for (std::size_t bytes : {16UL, 4000UL, 40'000UL, 2'000'000UL, 40'000'000UL})
        for (std::size_t i = 0; i < rounds(200); ++i) {
            void* block = nullptr;
            in_a_thread([&] { block = engine::allocate(bytes); });
            in_a_thread([&] { engine::deallocate(block); });
        }
}

// --- the exit of a thread --------------------------------------------------------

void free_in_destructor(void* block)
{
    engine::deallocate(block);
}

TEST_F(engine_threads, may_free_blocks_in_destructors_of_thread_keys)
{
    std::vector<pthread_key_t> keys(8);
    for (pthread_key_t& key : keys)
        ASSERT_EQ(::pthread_key_create(&key, free_in_destructor), 0);
    for (std::size_t i = 0; i < rounds(500); ++i)
        in_a_thread([&] {
            seeded choose(i);
            for (pthread_key_t const key : keys)
                ::pthread_setspecific(key, engine::allocate(some_size(choose)));
        });
    for (pthread_key_t const key : keys)
        ::pthread_key_delete(key);
}

pthread_key_t round_key;
/// The first round of thread-key destructors in which the thread allocates.
std::atomic<std::uintptr_t> round_first;

/// A thread-key destructor that sets the key again, so that it is called in every round.
void allocate_in_destructor(void* value)
{
    auto const round = reinterpret_cast<std::uintptr_t>(value);
    if (round >= round_first) {
        void* const block = engine::allocate(100);
        std::memset(block, 1, 100);
        engine::deallocate(block);
    }
    // Before the fourth round, ThreadSanitizer has already deleted its state of the thread.
    if (round < 3 || !has_tsan())
        ::pthread_setspecific(round_key, reinterpret_cast<void*>(round + 1));
}

TEST(exiting_engine_threads, may_allocate_in_every_round_of_destructors_without_a_leak)
{
    in_a_thread(
        [] { engine::deallocate(engine::allocate(100)); }); // the engine chooses its secret key
    ASSERT_EQ(::pthread_key_create(&round_key, allocate_in_destructor), 0);
    // A cache that a thread makes in the second round is abandoned in the last round. Before that
    // round, newer runtimes of ThreadSanitizer have deleted their state of the thread.
    std::uintptr_t const last = has_tsan_of_llvm_15() ? 1 : 2;
    for (round_first = 0; round_first <= last; ++round_first) {
        for (std::size_t i = 0; i < 200; ++i)
            in_a_thread([&] {
                if (round_first == 0)
                    engine::deallocate(engine::allocate(100));
                ::pthread_setspecific(round_key, reinterpret_cast<void*>(1));
            });
        EXPECT_EQ(slices_used(), 0U) << "from round " << round_first;
    }
    ::pthread_key_delete(round_key);
}

} // namespace
