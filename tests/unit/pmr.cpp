#include "../support/asan.hpp"
#include "../support/sources.hpp"

#include <mallard/pmr.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using namespace mallard::testing;
using mallard::layout;
using mallard::pmr_resource;
using mallard::ref;

using arena_resource = pmr_resource<mallard::arena<>>;
using multipool_resource = pmr_resource<mallard::multipool<>>;

static_assert(std::derived_from<arena_resource, mallard::arena<>>);
static_assert(std::derived_from<arena_resource, std::pmr::memory_resource>);
static_assert(mallard::rewindable<arena_resource> && mallard::block_allocator<multipool_resource>);
static_assert(!std::is_copy_constructible_v<arena_resource>);
static_assert(!std::is_move_constructible_v<arena_resource>);
static_assert(!std::is_copy_assignable_v<arena_resource> &&
              !std::is_move_assignable_v<arena_resource>);
template <class R>
concept tells_upstream = requires(const R& r) { r.upstream_resource(); };
static_assert(tells_upstream<mallard::pmr::arena> && !tells_upstream<arena_resource>);

static_assert(std::is_default_constructible_v<mallard::pmr::arena>);
static_assert(std::is_constructible_v<mallard::pmr::arena, std::pmr::memory_resource*>);

TEST(pmr_resource, is_also_the_allocator)
{
    arena_resource a;
    auto* const first = static_cast<std::byte*>(a.allocate(layout(8, 1)));
    EXPECT_EQ(a.allocate({8, 1}), first + 8);
    EXPECT_EQ(a.allocate(8, 1), first + 16) << "as a memory resource, from the same cursor";
    EXPECT_EQ(a.make<char>('x'), 'x');
    {
        mallard::scope frame(a);
        EXPECT_EQ(a.allocate(1, 1), first + 25);
    }
    EXPECT_EQ(a.allocate(1, 1), first + 25);
    a.deallocate(first + 25, {1, 1});
    EXPECT_EQ(a.allocate(1, 1), first + 25) << "as an arena it takes the last block back";
}

TEST(pmr_resource, has_all_constructors_of_the_allocator)
{
    std::byte memory[64];
    pmr_resource<mallard::arena<mallard::null>> a{std::span(memory)};
    EXPECT_EQ(a.allocate(64, 1), memory);
    EXPECT_THROW(std::ignore = a.allocate(1, 1), std::bad_alloc);

    counting_source heap;
    pmr_resource<mallard::pool<ref<counting_source>>> p(48, 16, heap);
    EXPECT_EQ(p.block_bytes(), 48u);
    p.deallocate(p.allocate(48, 16), 48, 16);
    EXPECT_EQ(p.stats().blocks_live, 0u);
}

TEST(pmr_resource, does_nothing_in_deallocate_over_an_arena)
{
    arena_resource a;
    std::pmr::memory_resource& r = a;
    auto* const first = static_cast<std::byte*>(r.allocate(8, 1));
    r.deallocate(first, 8, 1);
    EXPECT_EQ(r.allocate(8, 1), first + 8);
    EXPECT_FALSE(is_poisoned(first, false)) << "monotonic resources promise no more";
}

TEST(pmr_resource, frees_blocks_over_other_allocators)
{
    multipool_resource m;
    std::pmr::memory_resource& r = m;
    void* const block = r.allocate(40);
    r.deallocate(block, 40);
    EXPECT_EQ(r.allocate(40), block);
    r.deallocate(r.allocate(100'000, 4096), 100'000, 4096);
    EXPECT_EQ(m.stats().blocks_live, 1u);
}

TEST(pmr_resource, returns_its_upstream_resource_if_it_has_one)
{
    failing_resource upstream;
    mallard::pmr::arena const a(&upstream);
    mallard::pmr::multipool const m(&upstream);
    mallard::pmr::pool const p(48, 0, &upstream);
    EXPECT_EQ(a.upstream_resource(), &upstream);
    EXPECT_EQ(m.upstream_resource(), &upstream);
    EXPECT_EQ(p.upstream_resource(), &upstream);
    EXPECT_EQ(mallard::pmr::arena().upstream_resource(), std::pmr::get_default_resource());
}

TEST(pmr_resource, stops_at_an_alignment_that_is_no_power_of_two)
{
    multipool_resource m;
    volatile std::size_t align = 24;
    EXPECT_DEATH(std::ignore = m.std::pmr::memory_resource::allocate(8, align),
                 "mallard: alignment 24 is not a power of two");
}

TEST(pmr_resource, serves_nested_containers)
{
    mallard::pmr::multipool memory;
    std::pmr::vector<std::pmr::string> words(&memory);
    for (int i = 0; i < 1000; ++i)
        words.emplace_back(static_cast<std::size_t>(i % 100), 'x');
    for (auto const& word : words)
        ASSERT_EQ(word.get_allocator().resource(), &memory);
    EXPECT_EQ(words[99], std::pmr::string(99, 'x'));
}

} // namespace
