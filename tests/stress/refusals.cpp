// Sources that fail sometimes, or nearly always. No block and no byte may be lost.
#include "../support/kinds.hpp"
#include "../support/market.hpp"

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr std::size_t threads = 4;
constexpr pool_options small_steps{
    .chunk = 1024, .grow = growth::fixed(4096), .cached_bytes = 2048};

/// A source that fails in one of four ways: never, in one of three calls at random, in every second
/// call, or always.
class unreliable_source : public counting_source {
public:
    chunk try_take(layout l) noexcept
    {
        std::size_t const mood = calls() / 20 % 4;
        bool const refuses =
            (mood == 1 && choose_(3) == 0) || (mood == 2 && calls() % 2 == 0) || mood == 3;
        refusals_ += refuses;
        return refuses ? refuse(l), chunk{} : counting_source::try_take(l);
    }
    std::size_t refusals() const { return refusals_; }

private:
    seeded choose_{1};
    std::size_t refusals_ = 0;
};

/// A source that has memory for chunks, but none for arrays and thread caches.
class chunks_only : public counting_source {
public:
    chunk try_take(layout l) noexcept
    {
        return l.bytes < 4096 ? refuse(l), chunk{} : counting_source::try_take(l);
    }
};

/// Threads trade blocks until the source has failed more than 20 requests. Trims the allocator
/// after each round, because later rounds might otherwise need no chunk from the source, depending
/// on the scheduler.
void trade_until_refused(subject& of, unreliable_source& heap, demand const& goods)
{
    for (int round = 0; round < 100 && heap.refusals() <= 20; ++round) {
        trade(of, goods, threads, rounds(2000));
        EXPECT_EQ(of.stats().bytes_taken, heap.bytes());
        of.trim(0);
        EXPECT_EQ(of.stats().chunks, 0U);
    }
    EXPECT_GT(heap.refusals(), 20U);
}

template <class Kind>
class shared_failures : public ::testing::Test {};
TYPED_TEST_SUITE(shared_failures, growing_kinds, kind_names);

TYPED_TEST(shared_failures, a_pool_leaks_no_block_when_its_source_fails)
{
    using pool = typename TypeParam::template pool<small_steps, ref<unreliable_source>>;
    unreliable_source heap;
    auto const of = new_subject<pool>([&] { return pool(100, 0, heap); });
    trade_until_refused(*of, heap, {.may_fail = true});
}

TYPED_TEST(shared_failures, a_multipool_leaks_no_block_when_its_source_fails)
{
    using multipool = typename TypeParam::template multipool<ref<unreliable_source>>;
    unreliable_source heap;
    auto const of = new_subject<multipool>([&] { return multipool(heap); });
    trade_until_refused(*of, heap,
                        {.batches = false, .largest = 4096, .large_one_in = 10, .may_fail = true});
}

/// Two threads exchange blocks. The second thread sometimes exits and is replaced. The blocks are
/// counted after each step.
class small_scene {
public:
    explicit small_scene(subject& of) : of_(of) {}

    void run()
    {
        puppet first;
        for (int round = 0; round < 2; ++round) {
            puppet second;
            first([this] { take(40); });
            second([this] { give(20); });
            second([this] { take(90); });
            first([this] { give(60); });
            second([this] { take_batch(30); });
            first([this] { give_batch(); });
            first([this] { of_.trim(0); });
            second([this] { take(10); });
        }
        in_a_thread([this] { give(blocks_.size()); });
        first([this] { of_.trim(0); });
    }

private:
    void take(std::size_t count)
    {
        for (; count > 0; --count)
            keep(of_.allocate_single(count % 2 == 0));
        count_all();
    }
    void take_batch(std::size_t count)
    {
        std::vector<void*> batch(count);
        if (of_.allocate_batch(batch, false))
            std::for_each(batch.begin(), batch.end(), [this](void* block) { keep(block); });
        count_all();
    }
    void give(std::size_t count)
    {
        for (count = std::min(count, blocks_.size()); count > 0; --count) {
            of_.deallocate_single(blocks_.back().verified());
            blocks_.pop_back();
        }
        count_all();
    }
    void give_batch()
    {
        std::vector<void*> batch;
        for (; !blocks_.empty(); blocks_.pop_back())
            batch.push_back(blocks_.back().verified());
        of_.deallocate_batch(batch);
        count_all();
    }

    void keep(void* block)
    {
        if (block != nullptr)
            blocks_.emplace_back(block, *of_.single(), 0, serial_++);
    }
    void count_all() const
    {
        require(of_.stats().blocks_live == blocks_.size(), "blocks are counted");
        for (stamped const& block : blocks_)
            require(of_.classify(block.verified()) == validity::valid, "blocks in use stay valid");
    }

    subject& of_;
    std::vector<stamped> blocks_;
    std::size_t serial_ = 0;
};

TYPED_TEST(shared_failures, a_failure_of_any_single_source_call_leaks_nothing)
{
    using pool = typename TypeParam::template pool<small_steps>;
    for_each_refusal([](failing_source& heap) {
        auto const of = new_subject<pool>([&] { return pool(100, 0, heap); });
        small_scene(*of).run();
        require(of->stats().bytes_taken == heap.bytes(), "bytes_taken counts what the source gave");
        require(of->stats().chunks == 0, "trim returns all chunks");
    });
}

TYPED_TEST(shared_failures, a_failure_of_all_source_calls_after_a_certain_call_leaks_nothing)
{
    using pool = typename TypeParam::template pool<small_steps>;
    for (std::size_t n = 1; n <= 40; ++n) {
        doing = "the source refuses call " + std::to_string(n) + " and all after it";
        failing_source heap;
        heap.fail_from(n);
        auto const of = new_subject<pool>([&] { return pool(100, 0, heap); });
        small_scene(*of).run();
        require(of->stats().bytes_taken == heap.bytes(), "bytes_taken counts what the source gave");
        require(of->stats().chunks == 0, "trim returns all chunks");
    }
    doing.clear();
}

TYPED_TEST(shared_failures, throw_the_exception_of_the_source_whichever_call_fails)
{
    using pool_type = typename TypeParam::template pool<small_steps, pmr_source>;
    for (std::size_t n = 1; n <= 40; ++n) {
        failing_resource upstream;
        upstream.source.fail_from(n);
        auto const pool = std::make_unique<pool_type>(100, 0, pmr_source(&upstream));
        EXPECT_THROW(for (;;) static_cast<void>(pool->allocate()), refusal) << "call " << n;
    }
}

TYPED_TEST(shared_failures, a_pool_without_memory_for_arrays_and_caches_is_slow_but_usable)
{
    using pool = typename TypeParam::template pool<pool_options{}, ref<chunks_only>>;
    chunks_only heap;
    auto const of = new_subject<pool>([&] { return pool(100, 0, heap); });
    void* const first = of->allocate_single(false);
    ASSERT_NE(first, nullptr);
    trade(*of, {.may_fail = true}, threads, rounds(30));
    of->deallocate_single(first);
    of->trim(0);
    EXPECT_EQ(heap.bytes(), 0U);
}

TYPED_TEST(shared_failures, a_pool_without_memory_for_arrays_and_caches_requests_no_more_chunks)
{
    using pool = typename TypeParam::template pool<pool_options{.grow = growth::fixed(1 << 16)},
                                                   ref<chunks_only>>;
    chunks_only heap;
    auto const of = new_subject<pool>([&] { return pool(100, 0, heap); });
    void* const first = of->allocate_single(false);
    ASSERT_NE(first, nullptr);
    std::size_t const taken = heap.bytes();
    in_a_thread([&] {
        for (int i = 0; i < 200; ++i)
            of->deallocate_single(of->allocate_single(false));
    });
    EXPECT_EQ(heap.bytes(), taken) << "one block is in use at a time, so the first chunk is enough";
    of->deallocate_single(first);
}

template <class Kind>
class shared_pool_in_a_buffer : public ::testing::Test {};
TYPED_TEST_SUITE(shared_pool_in_a_buffer, shared_kinds, kind_names);

TYPED_TEST(shared_pool_in_a_buffer, leaks_no_block_when_the_buffer_is_exhausted)
{
    constexpr pool_options in_a_buffer{.block = 48, .grow = growth::none(40'000)};
    using pool_type = typename TypeParam::template pool<in_a_buffer, buffer<60'000>>;
    auto const of = new_subject<pool_type>([] { return pool_type(); });
    for (int round = 0; round < 3; ++round) {
        trade(*of, {.may_fail = true}, threads, rounds(500));
        of->trim(0);
        EXPECT_EQ(of->stats().chunks, 0U);
    }
}

} // namespace
