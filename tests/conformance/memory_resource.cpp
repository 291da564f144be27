// Tests that Mallard's memory resources meet the requirements of std::pmr.
#include "../support/model.hpp"
#include "../support/sources.hpp"

#include <mallard/pmr.hpp>

#include <gtest/gtest.h>

#include <random>

namespace {

using namespace mallard::testing;
using mallard::layout;
namespace pmr = mallard::pmr;

struct as_arena {
    static pmr::arena over(std::pmr::memory_resource* upstream) { return pmr::arena(upstream); }
    static pmr::arena plain() { return pmr::arena(); }
};
struct as_multipool {
    static pmr::multipool over(std::pmr::memory_resource* upstream)
    {
        return pmr::multipool(upstream);
    }
    static pmr::multipool plain() { return pmr::multipool(); }
};
struct as_pool {
    static pmr::pool over(std::pmr::memory_resource* upstream)
    {
        return pmr::pool(64, 0, upstream);
    }
    static pmr::pool plain() { return pmr::pool(64); }
};
struct as_shared_multipool {
    static pmr::shared_multipool over(std::pmr::memory_resource* upstream)
    {
        return pmr::shared_multipool(upstream);
    }
    static pmr::shared_multipool plain() { return pmr::shared_multipool(); }
};

template <class Kind>
class memory_resource : public ::testing::Test {
public:
    failing_resource upstream; // verifies the arguments of every deallocate
    failing_source& calls = upstream.source;
    decltype(Kind::plain()) own = Kind::over(&upstream);
    std::pmr::memory_resource& r = own;
};

struct kind_names {
    template <class Kind>
    static std::string GetName(int)
    {
        return std::is_same_v<Kind, as_arena>       ? "arena"
               : std::is_same_v<Kind, as_multipool> ? "multipool"
               : std::is_same_v<Kind, as_pool>      ? "pool"
                                                    : "shared_multipool";
    }
};
using kinds = ::testing::Types<as_arena, as_multipool, as_pool, as_shared_multipool>;
TYPED_TEST_SUITE(memory_resource, kinds, kind_names);

TYPED_TEST(memory_resource, allocates_no_memory_at_construction_and_release)
{
    this->own.release();
    EXPECT_EQ(this->calls.calls(), 0u);
}

TYPED_TEST(memory_resource, is_equal_only_to_itself)
{
    auto other = TypeParam::over(&this->upstream);
    EXPECT_TRUE(this->r.is_equal(this->r) && this->r == this->r);
    EXPECT_FALSE(this->r.is_equal(other) || this->r == other || other == this->r);
    EXPECT_FALSE(this->r == this->upstream || this->r == *std::pmr::new_delete_resource());
}

TYPED_TEST(memory_resource, uses_the_default_resource_by_default)
{
    auto* const before = std::pmr::set_default_resource(&this->upstream);
    auto plain = TypeParam::plain();
    std::pmr::set_default_resource(before);
    std::ignore = static_cast<std::pmr::memory_resource&>(plain).allocate(1);
    EXPECT_NE(this->calls.calls(), 0u) << "the default resource at its construction";
}

TYPED_TEST(memory_resource, returns_a_distinct_address_for_each_zero_byte_block)
{
    std::vector<void*> blocks;
    for (int i = 0; i < 100; ++i)
        blocks.push_back(this->r.allocate(0));
    for (void* const block : blocks)
        this->r.deallocate(block, 0);
    std::sort(blocks.begin(), blocks.end());
    EXPECT_EQ(std::unique(blocks.begin(), blocks.end()), blocks.end());
}

TYPED_TEST(memory_resource, returns_aligned_blocks_that_do_not_overlap)
{
    std::mt19937 random(1);
    model blocks;
    for (int i = 0; i < 4000; ++i) {
        std::size_t const limit = i % 50 == 0 ? 20'000 : 300;
        layout const l(random() % limit, std::size_t{1} << random() % 8);
        if (random() % 3 != 0 || blocks.empty()) {
            blocks.add(this->r.allocate(l.bytes, l.align), l);
        } else {
            void* const block = blocks[random() % blocks.count()];
            layout const asked = blocks.remove(block);
            this->r.deallocate(block, asked.bytes, asked.align);
        }
    }
    blocks.verify();
}

TYPED_TEST(memory_resource, aligns_small_blocks_as_requested)
{
    model blocks;
    for (std::size_t align = 1; align <= 1 << 16; align *= 2)
        for (std::size_t const bytes : {0u, 1u, 7u, 8u, 24u, 64u})
            blocks.add(this->r.allocate(bytes, align), {bytes, align});
    blocks.verify();
}

TYPED_TEST(memory_resource, passes_strict_alignments_on_to_upstream)
{
    std::ignore = this->r.allocate(10'000, 1 << 14);
    EXPECT_EQ(this->calls.asked().back().align, std::size_t{1} << 14);
}

/// Returns the largest alignment of the next two chunk requests for small blocks.
std::size_t alignment_of_chunks(std::pmr::memory_resource& r, failing_source& calls)
{
    std::size_t const asked = calls.calls();
    while (calls.calls() < asked + 2)
        std::ignore = r.allocate(4096, 1);
    std::size_t strictest = 1;
    for (std::size_t i = asked; i < calls.calls(); ++i)
        strictest = std::max(strictest, calls.asked()[i].align);
    return strictest;
}

TYPED_TEST(memory_resource, requests_ordinary_chunks_after_a_strictly_aligned_one)
{
    failing_resource other;
    auto untouched = TypeParam::over(&other);
    std::size_t const usual = alignment_of_chunks(untouched, other.source);
    std::ignore = this->r.allocate(1, 1 << 20);
    EXPECT_EQ(alignment_of_chunks(this->r, this->calls), usual);
    // A shared_multipool finds the chunk of a block by the address of the block, so its chunks are
    // aligned to their size. Chunks of the other resources need at most 16.
    EXPECT_LE(usual, (std::is_same_v<TypeParam, as_shared_multipool>) ? 65'536u : 16u);
}

TYPED_TEST(memory_resource, passes_impossible_sizes_to_upstream_and_propagates_its_exception)
{
    for (std::size_t const bytes : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2 + 1, SIZE_MAX / 2,
                                    SIZE_MAX / 2 - 63, SIZE_MAX / 4 + 1}) {
        for (std::size_t const align : {1u, 16u, 4096u}) {
            try {
                std::ignore = this->r.allocate(bytes, align);
                ADD_FAILURE() << bytes;
            } catch (const refusal& said) {
                EXPECT_GE(said.bytes, bytes);
                EXPECT_GE(said.align, align);
            }
        }
    }
    EXPECT_NE(this->r.allocate(64), nullptr);
}

TYPED_TEST(memory_resource, leaks_nothing_when_any_call_of_upstream_throws)
{
    std::size_t failures = 1;
    for (std::size_t call = 1; failures != 0; ++call) {
        failing_resource fresh;
        auto over_fresh = TypeParam::over(&fresh);
        std::pmr::memory_resource& resource = over_fresh;
        fresh.source.fail_at(call);
        model blocks;
        for (std::size_t i = 0; i < 300; ++i) {
            layout const l(i * 37 % 9000, std::size_t{1} << i % 7);
            try {
                blocks.add(resource.allocate(l.bytes, l.align), l);
            } catch (const refusal&) {
                blocks.add(resource.allocate(l.bytes, l.align), l); // the second try
            }
        }
        blocks.verify();
        failures = fresh.source.failures();
    }
}

TYPED_TEST(memory_resource, throws_bad_alloc_over_the_null_resource)
{
    auto over_null = TypeParam::over(std::pmr::null_memory_resource());
    std::pmr::memory_resource& resource = over_null;
    for (std::size_t const bytes : {0u, 1u, 64u, 100'000u})
        EXPECT_THROW(std::ignore = resource.allocate(bytes), std::bad_alloc);
}

TYPED_TEST(memory_resource, returns_all_memory_at_release_and_in_its_destructor)
{
    for (int round = 0; round < 3; ++round) {
        for (std::size_t bytes = 0; bytes < 20'000; bytes += 61)
            std::ignore = this->r.allocate(bytes, 8);
        EXPECT_NE(this->calls.bytes(), 0u);
        this->own.release();
        EXPECT_EQ(this->calls.bytes(), 0u);
    }
    std::ignore = this->r.allocate(100); // the destructor frees the block
}

} // namespace
