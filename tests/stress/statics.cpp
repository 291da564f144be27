// Static pools are ready before `main` starts, and usable after `main` returns: in destructors of
// static and thread-local objects, and in detached threads.
#include "../support/kinds.hpp"
#include "../support/market.hpp"

#include <unistd.h>

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr pool_options of_nodes(mallard::sync threads, check checks)
{
    growth const rule =
        threads == mallard::sync::lock_free ? growth::none(1 << 20) : growth::fixed(1 << 16);
    return {.block = 48, .grow = rule, .threads = threads, .checks = checks};
}
template <mallard::sync Threads, check Checks>
using nodes = pool<default_heap, of_nodes(Threads, Checks)>;

/// Holds blocks of a pool. The destructor frees the blocks and allocates once more.
template <class Pool, Pool& From>
struct user {
    std::vector<void*> blocks;

    ~user()
    {
        if (blocks.empty())
            return;
        std::size_t const before = From.stats().blocks_live;
        for (void* const block : blocks)
            From.deallocate(block);
        From.deallocate(From.allocate());
        require(From.stats().blocks_live == before - blocks.size(), "blocks are counted");
    }
};

// These pools are destroyed in the reverse order of their construction.
constinit nodes<sync::mutex, check::on> locked;
constinit nodes<sync::lock_free, check::on> stacked;
constinit nodes<sync::thread_cached, check::off> cached;
constinit nodes<sync::thread_cached, check::on> watched;
constinit multipool<default_heap, multipool_options{.threads = sync::thread_cached}> mixed;

user<decltype(cached), cached> user_of_cached;
user<decltype(watched), watched> user_of_watched;
user<decltype(locked), locked> user_of_locked;
user<decltype(stacked), stacked> user_of_stacked;

thread_local user<decltype(cached), cached> cached_in_thread;
thread_local user<decltype(watched), watched> watched_in_thread;

template <class Pool>
void take(Pool& from, std::vector<void*>& into, std::size_t count)
{
    for (; count > 0; --count)
        into.push_back(from.allocate());
}

TEST(static_pools, are_usable_before_and_after_main)
{
    take(locked, user_of_locked.blocks, 100);
    take(stacked, user_of_stacked.blocks, 100);
    take(cached, user_of_cached.blocks, 100);
    take(watched, user_of_watched.blocks, 100);
    take(cached, cached_in_thread.blocks, 100); // destroyed before the static objects
    take(watched, watched_in_thread.blocks, 100);
    EXPECT_GE(cached.stats().blocks_live, 200U);
    EXPECT_GE(watched.stats().blocks_live, 200U);
}

TEST(static_pools, can_be_used_by_detached_threads)
{
    static market between;
    static std::latch all_at_work(4);
    for (std::size_t number = 0; number < 4; ++number)
        std::thread([number] {
            seeded choose(number);
            for (std::size_t i = 0; i < 3000; ++i) {
                layout const l(1 + choose(500));
                stamped const fresh(mixed.allocate(l), l, number, i);
                if (stamped const old = between.swap(choose(market::places), fresh))
                    mixed.deallocate(old.verified(), old.asked());
                cached.deallocate(cached.allocate());
                watched.deallocate(watched.allocate());
            }
            // These blocks are freed when this detached thread exits, if it ever exits.
            take(cached, cached_in_thread.blocks, 10);
            all_at_work.count_down();
            for (;;)
                ::pause();
        }).detach();
    all_at_work.wait();
    EXPECT_GE(mixed.stats().blocks_live, 1U);
}

TEST(static_pools, allow_any_order_of_destruction_in_a_thread)
{
    for (int i = 0; i < 100; ++i)
        in_a_thread([i] {
            if (i % 2 == 0)
                // Constructs the thread-local object first, and then lets the library register its
                // exit function. The other branch uses the reverse order.
                cached_in_thread.blocks.clear();
            else
                cached.deallocate(cached.allocate());
            take(cached, cached_in_thread.blocks, 20);
            take(watched, watched_in_thread.blocks, 20);
        });
}

} // namespace
