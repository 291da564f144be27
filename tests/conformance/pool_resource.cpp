// Tests that mallard::pmr::multipool and mallard::pmr::shared_multipool meet the requirements on
// std::pmr's two pool resources.
#include "../support/model.hpp"
#include "../support/sources.hpp"

#include <mallard/pmr.hpp>

#include <gtest/gtest.h>

#include <deque>
#include <memory>

namespace {

using namespace mallard::testing;
using mallard::pmr::multipool;
using mallard::pmr::shared_multipool;

/// One of the two resources, type-erased, so that each test is compiled once.
struct resource {
    virtual ~resource() = default;
    virtual std::pmr::memory_resource& base() = 0;
    virtual std::pmr::memory_resource* upstream_resource() const = 0;
    virtual std::pmr::pool_options options() const = 0;
    virtual mallard::statistics stats() const = 0;
    virtual void release() = 0;
};

template <class Multipool>
struct resource_of final : resource {
    template <class... Args>
    explicit resource_of(Args... args) : own(args...)
    {
    }
    std::pmr::memory_resource& base() override { return own; }
    std::pmr::memory_resource* upstream_resource() const override
    {
        return own.upstream_resource();
    }
    std::pmr::pool_options options() const override { return own.options(); }
    mallard::statistics stats() const override { return own.stats(); }
    void release() override { own.release(); }

    Multipool own;
};

class pool_resource : public ::testing::TestWithParam<bool> {
public:
    template <class... Args>
    static std::unique_ptr<resource> make(Args... args)
    {
        if (GetParam())
            return std::make_unique<resource_of<shared_multipool>>(args...);
        return std::make_unique<resource_of<multipool>>(args...);
    }

    failing_resource upstream;
    failing_source& calls = upstream.source;
    std::unique_ptr<resource> own = make(&upstream);
    std::pmr::memory_resource& r = own->base();
    static constexpr std::size_t largest = multipool::largest();
};

INSTANTIATE_TEST_SUITE_P(, pool_resource, ::testing::Bool(), [](const auto& shared) {
    return shared.param ? "shared_multipool" : "multipool";
});

TEST_P(pool_resource, reuses_a_freed_block_without_calling_upstream)
{
    for (std::size_t const bytes : {1u, 8u, 100u, 1000u, 32768u}) {
        r.deallocate(r.allocate(bytes), bytes);
        std::size_t const before = calls.calls();
        for (int i = 0; i < 1000; ++i)
            r.deallocate(r.allocate(bytes), bytes);
        EXPECT_EQ(calls.calls(), before);
    }
}

TEST_P(pool_resource, pools_blocks_up_to_largest_required_pool_block)
{
    EXPECT_EQ(largest, 32768u);
    for (std::size_t const bytes : {largest / 2, largest - 1, largest}) {
        std::size_t const before = calls.calls();
        for (int i = 0; i < 1000; ++i)
            std::ignore = r.allocate(bytes);
        EXPECT_LT(calls.calls() - before, 300u) << bytes;
    }
}

TEST_P(pool_resource, allocates_larger_blocks_from_upstream_and_returns_them_immediately)
{
    for (std::size_t const bytes : {largest + 1, 10 * largest, std::size_t{1} << 20}) {
        std::size_t const before = calls.calls();
        std::size_t const held = calls.bytes();
        void* const block = r.allocate(bytes);
        EXPECT_EQ(calls.calls(), before + 1);
        r.deallocate(block, bytes);
        EXPECT_EQ(calls.bytes(), held);
    }
}

TEST_P(pool_resource, never_overlaps_blocks_across_chunks)
{
    model blocks;
    for (std::size_t bytes = 1; bytes <= largest + 64; bytes += bytes < 300 ? 1 : 97)
        for (int i = 0; i < 20; ++i)
            blocks.add(r.allocate(bytes, 1), {bytes, 1});
    blocks.verify();
    while (!blocks.empty()) {
        void* const block = blocks[0];
        std::size_t const bytes = blocks.remove(block).bytes;
        r.deallocate(block, bytes, 1);
    }
    EXPECT_EQ(own->stats().blocks_live, 0u);
}

TEST_P(pool_resource, pools_blocks_whose_alignment_is_their_size_up_to_a_cache_line)
{
    for (std::size_t size = 1; size <= mallard::cache_line_bytes; size *= 2) {
        model blocks;
        std::size_t const before = calls.calls();
        for (int i = 0; i < 300; ++i)
            blocks.add(r.allocate(size, size), {size, size});
        EXPECT_LT(calls.calls() - before, 100u) << size;
        blocks.verify();
    }
}

TEST_P(pool_resource, needs_no_more_memory_for_a_queue_of_constant_length)
{
    std::deque<void*> queue;
    for (int i = 0; i < 20'000; ++i)
        queue.push_back(r.allocate(100));
    std::size_t const before = calls.calls();
    for (int i = 0; i < 20'000; ++i) {
        r.deallocate(queue.front(), 100);
        queue.pop_front();
        queue.push_back(r.allocate(100));
    }
    EXPECT_EQ(calls.calls(), before);
}

TEST_P(pool_resource, returns_the_memory_of_blocks_in_use_at_release)
{
    for (std::size_t const bytes : {1u, 100u, 32768u, 32769u, 100'000u})
        for (int i = 0; i < 100; ++i)
            std::ignore = r.allocate(bytes);
    own->release();
    EXPECT_EQ(calls.bytes(), 0u);
    EXPECT_NE(r.allocate(100), nullptr);
}

TEST_P(pool_resource, requests_large_blocks_with_their_size_and_alignment)
{
    std::size_t const align = 1024;
    calls.fail_from(1);
    for (int i = 0; i < std::numeric_limits<std::size_t>::digits; ++i)
        for (std::size_t const off : {-63, -1, 0, 1, std::numeric_limits<int>::max()}) {
            std::size_t const bytes = (std::size_t{1} << i) + off;
            EXPECT_THROW(std::ignore = r.allocate(bytes, align), refusal) << bytes;
            EXPECT_GE(calls.asked().back().bytes, bytes);
            EXPECT_EQ(calls.asked().back().align, align);
        }
    calls.fail_never();
    EXPECT_TRUE(calls.holds(r.allocate(largest + 1, align)));
}

TEST_P(pool_resource, has_the_standard_constructors_which_allocate_no_memory)
{
    std::pmr::pool_options const wanted{.max_blocks_per_chunk = 1,
                                        .largest_required_pool_block = 2};
    EXPECT_EQ(own->upstream_resource(), &upstream);
    EXPECT_EQ(make(wanted, &upstream)->upstream_resource(), &upstream);
    EXPECT_EQ(calls.calls(), 0u);
    std::pmr::set_default_resource(&upstream);
    auto const by_default = make(), with_options = make(wanted);
    std::pmr::set_default_resource(nullptr);
    EXPECT_EQ(by_default->upstream_resource(), &upstream);
    EXPECT_EQ(with_options->upstream_resource(), &upstream);
    EXPECT_EQ(calls.calls(), 0u);
}

TEST_P(pool_resource, returns_the_actual_options)
{
    for (std::size_t const n : {0u, 1u, 8u, 100'000'000u}) {
        auto const pooled = make(std::pmr::pool_options{n, n}, &upstream);
        auto const told = pooled->options();
        EXPECT_EQ(told.largest_required_pool_block, largest);
        std::ignore = pooled->base().allocate(told.largest_required_pool_block + 1);
        std::size_t const before = calls.calls();
        std::ignore = pooled->base().allocate(told.largest_required_pool_block + 1);
        EXPECT_EQ(calls.calls(), before + 1) << "one by one from upstream";
    }
    std::size_t most = 0;
    for (int i = 0; i < 1 << 19; ++i)
        std::ignore = r.allocate(8, 1);
    for (auto const& asked : calls.asked())
        most = std::max(most, asked.bytes);
    EXPECT_EQ(most / 8, own->options().max_blocks_per_chunk);
}

TEST(pool_resource_types, can_be_base_classes_and_cannot_be_copied_or_moved)
{
    struct derived : multipool {
        using multipool::multipool;
    };
    struct shared : shared_multipool {
        using shared_multipool::shared_multipool;
    };
    failing_resource upstream;
    derived first = {std::pmr::pool_options{1, 2}, &upstream};
    shared second{&upstream};
    EXPECT_EQ(first.upstream_resource(), second.upstream_resource());
    EXPECT_EQ(derived().upstream_resource(), std::pmr::get_default_resource());
    static_assert(!std::is_copy_constructible_v<derived> && !std::is_move_assignable_v<derived>);
    static_assert(!std::is_copy_constructible_v<shared> && !std::is_move_assignable_v<shared>);
    static_assert(!std::is_convertible_v<std::pmr::memory_resource*, multipool>);
}

} // namespace
