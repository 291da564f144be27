#include "../support/sources.hpp"

#include <mallard/adapt/observed.hpp>
#include <mallard/allocator.hpp>
#include <mallard/debug/exception_test.hpp>
#include <mallard/debug/report.hpp>

#include <gtest/gtest.h>

#include <array>
#include <list>
#include <string>

namespace {

using mallard::arena;
using mallard::call_counts;
using mallard::counted;
using mallard::default_heap;
using mallard::layout;
using mallard::multipool;
using mallard::pool;
using mallard::pool_options;
using mallard::reuse;
using mallard::snapshot;
using mallard::snapshot_of;
using mallard::statistics;
using mallard::sync;

// --- snapshot

TEST(snapshot, contains_the_counts_and_statistics_that_an_allocator_has)
{
    EXPECT_FALSE(snapshot_of(default_heap()).calls || snapshot_of(default_heap()).memory);
    pool<> blocks(64);
    EXPECT_TRUE(snapshot_of(blocks).memory && !snapshot_of(blocks).calls);
    counted<default_heap> source;
    EXPECT_TRUE(snapshot_of(source).calls && !snapshot_of(source).memory);

    mallard::failing<counted<multipool<>>> stack;
    void* const block = stack.allocate({60, 4});
    snapshot const s = snapshot_of(stack);
    EXPECT_EQ(s.calls->bytes_live(), 60) << "as asked";
    EXPECT_EQ(s.memory->bytes_live, 64u) << "as held";
    stack.deallocate(block, {60, 4});
}

TEST(statistics, are_consistent_with_each_other)
{
    statistics sum{.blocks_live = 1, .refills = 2};
    sum += {.blocks_live = 1,
            .bytes_live = 2,
            .bytes_idle = 3,
            .bytes_taken = 4,
            .chunks = 5,
            .growths = 6,
            .refills = 7,
            .flushes = 8};
    EXPECT_EQ(sum, (statistics{.blocks_live = 2,
                               .bytes_live = 2,
                               .bytes_idle = 3,
                               .bytes_taken = 4,
                               .chunks = 5,
                               .growths = 6,
                               .refills = 9,
                               .flushes = 8}));
}

template <class Pool>
class any_counted_pool : public ::testing::Test {};
template <sync Threads, reuse Order = reuse::ordered>
using pool_of = pool<default_heap, pool_options{.block = 64,
                                                .grow = Threads == sync::lock_free
                                                            ? mallard::growth::none(1 << 16)
                                                            : pool_options{}.grow,
                                                .threads = Threads,
                                                .order = Order}>;
using pools =
    ::testing::Types<pool_of<sync::none>, pool_of<sync::none, reuse::lifo>, pool_of<sync::mutex>,
                     pool_of<sync::lock_free>, pool_of<sync::thread_cached>>;
TYPED_TEST_SUITE(any_counted_pool, pools);

TYPED_TEST(any_counted_pool, counts_refills_and_flushes_on_slow_paths)
{
    TypeParam blocks;
    EXPECT_EQ(blocks.stats(), statistics{});
    std::array<void*, 500> some;
    for (void*& block : some)
        block = blocks.allocate();
    std::size_t const refills = blocks.stats().refills;
    EXPECT_GE(refills, 1u);
    EXPECT_LE(refills, 20u) << "far fewer refills than blocks";
    for (int round = 0; round < 4; ++round) { // fills the array of the free list
        for (void* const block : some)
            blocks.deallocate(block);
        for (void*& block : some)
            block = blocks.allocate();
    }
    bool const never_flushes = std::is_same_v<TypeParam, pool_of<sync::none, reuse::lifo>> ||
                               std::is_same_v<TypeParam, pool_of<sync::lock_free>>;
    EXPECT_EQ(blocks.stats().flushes == 0, never_flushes);
    EXPECT_GE(blocks.stats().refills, refills);
    blocks.release();
    EXPECT_EQ(blocks.stats().blocks_live, 0u);
}

TEST(arena, counts_each_chunk_that_comes_into_use)
{
    arena<> scratch;
    for (int round = 0; round < 3; ++round) {
        static_cast<void>(scratch.allocate({3000, 1}));
        static_cast<void>(scratch.allocate({3000, 1}));
        scratch.reset();
    }
    EXPECT_EQ(scratch.stats().growths, 2u);
    EXPECT_GE(scratch.stats().refills, 5u) << "idle chunks too";
    arena<> const other = std::move(scratch);
    EXPECT_EQ(scratch.stats(), statistics{});
}

// --- report

snapshot const example(call_counts{.allocations = 12, .frees = 2, .bytes_allocated = 480},
                       statistics{.blocks_live = 10, .bytes_live = 480, .refills = 1});

TEST(report, can_be_json_on_one_line)
{
    std::array<char, 1024> room;
    mallard::written const json = report_json(room, "orders", example);
    EXPECT_FALSE(json.is_cut());
    EXPECT_EQ(json.text, R"({"name":"orders","calls":{"allocations":12,"frees":2,"failures":0,)"
                         R"("blocks_live":10,"blocks_peak":0,"bytes_live":480,"bytes_peak":0,)"
                         R"("bytes_allocated":480,"bytes_freed":0},"memory":{"blocks_live":10,)"
                         R"("bytes_live":480,"bytes_idle":0,"bytes_taken":0,"chunks":0,)"
                         R"("growths":0,"refills":1,"flushes":0}})");
    EXPECT_EQ(std::string_view(report_json(room, "", snapshot())), R"({"name":""})");
}

TEST(report, escapes_the_name_in_json)
{
    std::array<char, 256> room;
    std::string_view const name("a\"b\\c\n\x1f\0\xc3\xa9", 10);
    EXPECT_EQ(report_json(room, name, snapshot()).text,
              "{\"name\":\"a\\\"b\\\\c\\u000a\\u001f\\u0000\xc3\xa9\"}");
}

TEST(report, has_a_line_for_each_figure_with_aligned_numbers)
{
    std::array<char, 1024> room;
    std::string const text(report_text(room, "orders", example).text);
    EXPECT_EQ(text.find("orders\n"
                        "  calls\n"
                        "    allocations                       12\n"
                        "    frees                              2\n"),
              0u)
        << text;
    EXPECT_NE(text.find("  memory\n    blocks_live                       10\n"), text.npos);
    EXPECT_EQ(text.back(), '\n');
}

TEST(report, accepts_statistics_or_counts_alone)
{
    std::array<char, 1024> room;
    EXPECT_EQ(report_json(room, "x", arena<>().stats()).text.find(R"({"name":"x","memory":{)"), 0u);
    EXPECT_EQ(report_json(room, "x", call_counts()).text.find(R"({"name":"x","calls":{)"), 0u);
}

TEST(report, writes_negative_numbers_of_a_scope)
{
    std::array<char, 1024> room;
    call_counts const c{.frees = 1, .bytes_freed = 48};
    EXPECT_NE(report_json(room, "x", c).text.find(R"("bytes_live":-48,)"), std::string::npos);
    EXPECT_NE(report_text(room, "x", c).text.find(" -48\n"), std::string::npos);
}

TEST(report, ends_in_dots_if_it_is_truncated_and_returns_the_bytes_it_needs)
{
    std::array<char, 2048> enough;
    for (auto const report : {mallard::report_json, mallard::report_text}) {
        std::string const whole(report(enough, "orders", example).text);
        for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes) {
            std::string room(bytes + 1, '#');
            mallard::written const cut = report({room.data(), bytes}, "orders", example);
            ASSERT_EQ(cut.bytes_needed, whole.size());
            ASSERT_EQ(cut.text.size(), bytes);
            ASSERT_EQ(cut.is_cut(), bytes < whole.size());
            ASSERT_EQ(room.back(), '#') << "nothing is written beyond the buffer";
            std::size_t const dots = cut.is_cut() ? std::min<std::size_t>(bytes, 3) : 0;
            ASSERT_EQ(cut.text, whole.substr(0, bytes - dots) + std::string(dots, '.'));
        }
    }
}

// --- for_each_failure

TEST(for_each_failure, makes_each_allocation_fail_once)
{
    std::vector<std::size_t> seen;
    std::size_t const points = mallard::for_each_failure([&](auto& memory) {
        try {
            std::pmr::list<int> numbers({1, 2, 3}, &memory);
        } catch (const std::bad_alloc&) {
            seen.push_back(memory.calls());
            throw;
        }
    });
    EXPECT_EQ(points, 3u);
    EXPECT_EQ(seen, (std::vector<std::size_t>{1, 2, 3}));
    EXPECT_EQ(mallard::for_each_failure([](auto&) {}), 0u);
}

TEST(for_each_failure, continues_after_a_handled_failure)
{
    std::size_t nulls = 0;
    auto const asks = [&nulls](auto& memory) {
        for (int i = 0; i < 4; ++i)
            if (void* const block = memory.try_allocate({8, 8}))
                memory.deallocate(block, {8, 8});
            else
                ++nulls;
    };
    EXPECT_EQ(mallard::for_each_failure(asks), 4u);
    EXPECT_EQ(nulls, 4u);
}

TEST(for_each_failure, uses_one_given_allocator_or_a_new_one_for_each_run)
{
    auto const lists = [](auto& memory) {
        using A = std::remove_reference_t<decltype(memory)>;
        std::list<int, mallard::allocator<int, A>> numbers({1, 2, 3}, memory);
    };
    pool<> nodes(24);
    EXPECT_EQ(mallard::for_each_failure(nodes, lists), 3u);
    EXPECT_EQ(nodes.stats().blocks_live, 0u);
    EXPECT_EQ(mallard::for_each_failure([] { return arena<>(); }, lists), 3u);
}

TEST(for_each_failure, propagates_other_exceptions_and_real_exhaustion)
{
    EXPECT_THROW(mallard::for_each_failure([](auto&) { throw 7; }), int);
    auto const needs_one = [](auto& memory) {
        void* const block = memory.allocate({100, 1});
        memory.deallocate(block, {100, 1});
    };
    EXPECT_THROW(mallard::for_each_failure([] { return arena<mallard::null>(); }, needs_one),
                 std::bad_alloc);
}

TEST(for_each_failure, reports_leaks_and_the_allocation_that_failed)
{
    auto const after = [](std::size_t last, std::size_t bytes) {
        mallard::for_each_failure([=](auto& memory) {
            void* const first = memory.allocate({40, 8});
            memory.deallocate(first, {bytes, 8});
            for (std::size_t i = 0; i < last; ++i)
                static_cast<void>(memory.allocate({8, 8}));
        });
    };
    EXPECT_DEATH(after(1, 40), "^mallard: 1 block leaked when no allocation failed\n"
                               "  [^\n]* differ by 8\n  help: [^\n]*first = 2");
    EXPECT_DEATH(after(3, 40), "^mallard: 1 block leaked when allocation 2 failed\n"
                               "  [^\n]* differ by 8\n  help: [^\n]*first = 2");
    EXPECT_DEATH(after(0, 39),
                 "^mallard: blocks were freed with incorrect sizes when no allocation "
                 "failed\n  [^\n]* differ by 1\n");
}

} // namespace
