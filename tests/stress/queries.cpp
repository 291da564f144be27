// One thread calls trim, stats, owns and classify while the other threads allocate and free.
#include "../support/kinds.hpp"
#include "../support/market.hpp"

#include <barrier>

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr std::size_t workers = 3;
constexpr pool_options small_steps{
    .chunk = 4096, .grow = growth::fixed(4096), .cached_bytes = 4096};

/// A number that one thread writes and other threads read.
class alignas(cache_line_bytes) counter {
public:
    void add(std::size_t n) { n_.store(n_.load(std::memory_order_relaxed) + n); }
    std::size_t read() const { return n_.load(); }

private:
    std::atomic<std::size_t> n_ = 0;
};

/// Counters of one worker's calls. They give a reader bounds of the worker's number of blocks in
/// use.
struct account {
    counter allocations_begun, allocations_done, frees_begun, frees_done;
};

/// Calls `look()` some hundred times while workers call `work(number, stop)`.
template <class Work, class Look>
void during(Work work, Look look)
{
    std::latch all_here(workers + 1);
    std::atomic<bool> stop = false;
    std::vector<std::jthread> threads;
    for (std::size_t number = 0; number < workers; ++number)
        threads.emplace_back([&, number] {
            all_here.arrive_and_wait();
            work(number, stop);
        });
    all_here.arrive_and_wait();
    for (std::size_t i = 0; i < rounds(200); ++i)
        look();
    stop = true;
}

template <class Kind>
class pool_queries : public ::testing::Test {
protected:
    /// In a lock-free pool only one thread at a time may call `trim`, and `stats` is exact only if
    /// no other thread uses the pool.
    static constexpr bool may_trim = Kind::threads != sync::lock_free;
    static constexpr bool counts_exactly = Kind::threads != sync::lock_free;

    failing_source heap;
};
TYPED_TEST_SUITE(pool_queries, shared_kinds, kind_names);

TYPED_TEST(pool_queries, return_consistent_results_while_other_threads_allocate)
{
    using small_pool = typename TypeParam::template pool<small_steps>;
    auto const pool = std::make_unique<small_pool>(64, 0, this->heap);
    void* const kept = pool->allocate();
    void* const freed = pool->allocate();
    void* const array[8] = {};
    pool->deallocate(freed);
    std::array<account, workers> accounts;
    auto const sum = [&](counter account::* which) {
        std::size_t n = 0;
        for (account const& a : accounts)
            n += (a.*which).read();
        return n;
    };
    market between;
    auto const work = [&](std::size_t number, std::atomic<bool>& stop) {
        account& mine = accounts[number];
        seeded choose(number);
        std::vector<stamped> some;
        for (std::size_t serial = 0; !stop;) {
            std::size_t const count = 1 + choose(100);
            for (std::size_t i = 0; i < count; ++i) {
                mine.allocations_begun.add(1);
                some.emplace_back(pool->allocate(), layout(64), number, serial++);
                mine.allocations_done.add(1);
            }
            for (stamped& one : some) {
                stamped const old = between.swap(choose(market::places), std::exchange(one, {}));
                if (!old)
                    continue;
                mine.frees_begun.add(1);
                pool->deallocate(old.verified());
                mine.frees_done.add(1);
            }
            some.clear();
        }
    };
    auto const look = [&] {
        std::size_t const allocated = sum(&account::allocations_done);
        std::size_t const freed_before = sum(&account::frees_done);
        statistics const s = pool->stats();
        std::size_t const freed_after = sum(&account::frees_begun);
        std::size_t const begun = sum(&account::allocations_begun);
        if (this->counts_exactly) {
            EXPECT_GE(s.blocks_live + freed_after, 1 + allocated);
            EXPECT_LE(s.blocks_live + freed_before, 1 + begun);
        }
        EXPECT_EQ(s.bytes_live, 64 * s.blocks_live);
        EXPECT_EQ(pool->classify(kept), validity::valid);
        EXPECT_LE(s.bytes_live + s.bytes_idle, s.bytes_taken);
        EXPECT_TRUE(pool->owns(kept));
        EXPECT_FALSE(pool->owns(&array));
        EXPECT_EQ(pool->classify(static_cast<std::byte*>(kept) + 1), validity::invalid);
        EXPECT_EQ(pool->classify(&array), validity::miss);
        if (this->may_trim)
            pool->trim();
        std::this_thread::yield();
    };
    during(work, look);
    for (std::size_t at = 0; at < market::places; ++at)
        if (stamped const old = between.swap(at, {}))
            pool->deallocate(old.verified());
    EXPECT_EQ(pool->stats().blocks_live, 1U);
    pool->deallocate(kept);
    pool->trim();
    EXPECT_EQ(pool->stats().chunks, 0U);
}

template <class Kind>
class multipool_queries : public ::testing::Test {
protected:
    failing_source heap;
};
TYPED_TEST_SUITE(multipool_queries, growing_kinds, kind_names);

TYPED_TEST(multipool_queries, can_run_concurrently_with_allocations_of_other_threads)
{
    using multipool = typename TypeParam::template multipool<>;
    auto const of = new_subject<multipool>([&] { return multipool(this->heap); });
    market between;
    auto const work = [&](std::size_t number, std::atomic<bool>& stop) {
        trader one(*of, between, number, {.batches = false, .largest = 2000});
        while (!stop)
            one.step();
    };
    int const array[8] = {};
    auto const look = [&] {
        statistics const s = of->stats();
        EXPECT_LE(s.bytes_live + s.bytes_idle, s.bytes_taken);
        EXPECT_FALSE(of->owns(&array));
        EXPECT_EQ(of->classify(&array), validity::miss);
        of->trim(s.bytes_taken % 3 * 4096);
        std::this_thread::yield();
    };
    during(work, look);
    trader(*of, between, workers, {}).free_all();
    EXPECT_EQ(of->stats().blocks_live, 0U);
    of->trim(0);
    EXPECT_EQ(of->stats().chunks, 0U);
}

/// Tests `stats` and `trim`. A pool of one chunk does not search for the chunk of an address.
TYPED_TEST(pool_queries, can_run_concurrently_with_allocations_in_a_pool_of_one_chunk)
{
    using fixed = typename TypeParam::template pool<pool_options{.grow = growth::none(20'000)}>;
    auto const of = new_subject<fixed>([&] { return fixed(64, 0, this->heap); });
    market between;
    auto const work = [&](std::size_t number, std::atomic<bool>& stop) {
        trader one(*of, between, number, {.may_fail = true});
        while (!stop)
            one.step();
    };
    auto const look = [&] {
        EXPECT_LE(of->stats().chunks, 1U);
        if (this->may_trim)
            of->trim(0);
        std::this_thread::yield();
    };
    during(work, look);
    trader(*of, between, workers, {}).free_all();
    EXPECT_EQ(of->stats().blocks_live, 0U);
}

TYPED_TEST(pool_queries, return_exact_counts_while_the_other_threads_pause)
{
    using small_pool = typename TypeParam::template pool<small_steps>;
    auto const of = new_subject<small_pool>([&] { return small_pool(64, 0, this->heap); });
    market between;
    std::array<counter, workers> allocated, freed;
    std::barrier pause(workers + 1);
    std::vector<std::jthread> threads;
    std::size_t const pauses = rounds(200);
    for (std::size_t number = 0; number < workers; ++number)
        threads.emplace_back([&, number] {
            seeded choose(number);
            for (std::size_t i = 0; i < pauses; ++i) {
                for (std::size_t n = choose(200); n > 0; --n) {
                    stamped const fresh(of->allocate_single(true), layout(64), number, n);
                    allocated[number].add(1);
                    if (stamped const old = between.swap(choose(market::places), fresh)) {
                        of->deallocate_single(old.verified());
                        freed[number].add(1);
                    }
                }
                pause.arrive_and_wait();
                pause.arrive_and_wait();
            }
        });
    for (std::size_t i = 0; i < pauses; ++i) {
        pause.arrive_and_wait();
        std::size_t live = 0;
        for (std::size_t number = 0; number < workers; ++number)
            live += allocated[number].read() - freed[number].read();
        statistics const s = of->stats();
        EXPECT_EQ(s.blocks_live, live);
        EXPECT_EQ(s.bytes_taken, this->heap.bytes());
        if (i % 8 == 0)
            of->trim(i % 16 * 512);
        pause.arrive_and_wait();
    }
    threads.clear();
    trader(*of, between, workers, {}).free_all();
}

/// `trim` also returns the cached blocks of idle threads, and abandoned caches.
TYPED_TEST(pool_queries, count_no_block_after_all_frees_and_trim_returns_all_memory)
{
    using small_pool = typename TypeParam::template pool<small_steps>;
    auto const of = new_subject<small_pool>([&] { return small_pool(64, 0, this->heap); });
    {
        std::array<puppet, 4> idle;
        std::array<std::vector<void*>, 4> blocks;
        for (int round = 0; round < 3; ++round) {
            for (std::size_t i = 0; i < 4; ++i)
                idle[i]([&] {
                    blocks[i].resize(300 * (i + 1));
                    for (void*& block : blocks[i])
                        block = of->allocate_single(true);
                });
            in_a_thread([&] { // leaves the cache of an exited thread
                for (std::size_t i = 0; i < 100; ++i)
                    of->deallocate_single(std::exchange(blocks[3][i], of->allocate_single(true)));
            });
            for (std::size_t i = 0; i < 4; ++i)
                idle[i]([&] { // frees another thread's blocks, one by one and in a batch
                    auto& others = blocks[(i + 1) % 4];
                    for (; others.size() > 150; others.pop_back())
                        of->deallocate_single(others.back());
                    of->deallocate_batch(others);
                });
            EXPECT_EQ(of->stats().blocks_live, 0U);
            EXPECT_GE(of->stats().chunks, 1U);
            of->trim(0);
            EXPECT_EQ(of->stats().chunks, 0U);
            EXPECT_EQ(of->stats().bytes_taken, this->heap.bytes());
            // One of the thread caches is part of the pool object, so only the others come from the
            // source.
            EXPECT_LE(this->heap.live().size(),
                      TypeParam::threads == sync::thread_cached ? 3U : 0U);
            EXPECT_LE(this->heap.bytes(), 3 * 1024U);
        }
    }
    of->trim(0);
    EXPECT_EQ(this->heap.bytes(), 0U) << "abandoned caches are returned too";
}

} // namespace
