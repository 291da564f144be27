#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>
#include <mallard/debug/checked.hpp>
#include <mallard/multipool.hpp>
#include <mallard/pmr.hpp>

#include "../support/asan.hpp"
#include "../support/choices.hpp"
#include "../support/faults.hpp"
#include "../support/model.hpp"
#include "../support/sources.hpp"
#include "../support/threads.hpp"

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <optional>

namespace {

using namespace mallard;
using namespace mallard::testing;

using checked_multipool = checked<multipool<>>;
static_assert(block_allocator<checked_multipool> && resettable<checked_multipool>);
static_assert(chunk_source<checked<>> && !block_allocator<checked<>>);
static_assert(block_allocator<checked<checked<arena<>>>>);

/// A checked pool with a collector of its fault reports.
struct watched {
    ~watched() { EXPECT_TRUE(faults.empty()); }

    std::byte* some(layout l = {40}) { return static_cast<std::byte*>(blocks.allocate(l)); }

    collected_faults faults;
    checked_multipool blocks{{"blocks", faults}};
};

TEST(checked, reports_nothing_for_a_correct_program)
{
    watched w;
    for (std::size_t const bytes : {0, 1, 7, 8, 40, 5000}) {
        for (std::size_t align = 1; align <= 4096; align *= 2) {
            std::byte* const block = w.some({bytes, align});
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % align, 0);
            std::memset(block, 1, bytes);
            w.blocks.verify();
            w.blocks.deallocate(block, {bytes, align});
        }
    }
}

TEST(checked, fills_new_blocks_with_a_pattern)
{
    watched w;
    std::byte* const block = w.some();
    for (std::size_t i = 0; i < 40; ++i)
        EXPECT_EQ(block[i], std::byte{fill::fresh});
    w.blocks.deallocate(block, {40});
}

TEST(checked, finds_a_double_free_and_changes_nothing)
{
    watched w;
    std::byte* const block = w.some();
    w.blocks.deallocate(block, {40});
    w.blocks.deallocate(block, {40});
    EXPECT_TRUE(w.faults.were(fault_kind::double_free, block, block));
}

TEST(checked, finds_a_free_of_a_foreign_address)
{
    watched w;
    int stranger = 0;
    w.blocks.deallocate(&stranger, {4});
    EXPECT_TRUE(w.faults.were(fault_kind::foreign_free, nullptr, &stranger));
    w.blocks.deallocate(nullptr, {4});
    EXPECT_TRUE(w.faults.were(fault_kind::foreign_free, nullptr));
}

TEST(checked, finds_a_free_of_an_address_inside_a_block)
{
    watched w;
    std::byte* const block = w.some();
    w.blocks.deallocate(block + 39, {1});
    EXPECT_TRUE(w.faults.were(fault_kind::interior_free, block, block + 39));
    w.blocks.deallocate(block, {40});
}

TEST(checked, reports_a_free_with_an_incorrect_layout_and_frees_with_the_right_one)
{
    watched w;
    std::byte* const block = w.some();
    w.blocks.deallocate(block, {41});
    EXPECT_TRUE(w.faults.were(fault_kind::wrong_layout, block));
    std::byte* const other = w.some();
    w.blocks.deallocate(other, {40, 8});
    EXPECT_TRUE(w.faults.were(fault_kind::wrong_layout, other));
}

TEST(checked, finds_an_overrun_or_underrun_at_each_byte)
{
    watched w;
    for (std::size_t i = 0; i < 16; ++i) {
        std::byte* const block = w.some();
        flip(block + 40 + i);
        w.blocks.deallocate(block, {40});
        EXPECT_TRUE(w.faults.were(fault_kind::overrun, block, block + 40 + i));
        std::byte* const other = w.some();
        flip(other - 1 - i);
        w.blocks.deallocate(other, {40});
        EXPECT_TRUE(w.faults.were(fault_kind::underrun, other, other - 1 - i));
    }
}

TEST(checked, reports_an_overrun_at_verify_and_only_once)
{
    watched w;
    std::byte* const block = w.some({13, 1});
    flip(block + 13);
    w.blocks.verify();
    EXPECT_TRUE(w.faults.were(fault_kind::overrun, block, block + 13));
    w.blocks.verify();
    w.blocks.deallocate(block, {13, 1});
}

TEST(checked, finds_an_overrun_at_reset)
{
    watched w;
    std::byte* const block = w.some();
    flip(block + 40);
    w.blocks.reset();
    EXPECT_TRUE(w.faults.were(fault_kind::overrun, block));
    w.blocks.deallocate(block, {40});
    EXPECT_TRUE(w.faults.were(fault_kind::foreign_free, nullptr)); // reset has freed all blocks
}

TEST(checked, finds_a_write_into_a_freed_block)
{
    watched w;
    std::byte* const block = w.some();
    w.blocks.deallocate(block, {40});
    flip(block + 39);
    w.blocks.verify();
    EXPECT_TRUE(w.faults.were(fault_kind::write_after_free, block, block + 39));
    w.blocks.verify();
}

TEST(checked, reports_leaks_in_its_destructor_in_the_order_of_allocation)
{
    collected_faults faults;
    std::vector<const void*> kept;
    {
        checked_multipool blocks({"blocks", faults});
        for (std::size_t i = 1; i <= 100; ++i)
            kept.push_back(blocks.allocate({i}));
        blocks.deallocate(const_cast<void*>(kept[1]), {2});
    }
    ASSERT_EQ(faults.count(), 1);
    EXPECT_EQ(faults.last().kind, fault_kind::leak);
    EXPECT_EQ(faults.last().count, 99);
    EXPECT_EQ(faults.last().bytes, 5050 - 2);
    kept.erase(kept.begin() + 1);
    kept.resize(faults.last().blocks.size());
    EXPECT_EQ(faults.last().blocks, kept);
}

TEST(checked, can_ignore_leaks_if_it_wraps_an_arena)
{
    collected_faults faults;
    {
        checked<arena<>, checked_options{.leaks = false}> blocks({"blocks", faults});
        static_cast<void>(blocks.allocate({40}));
    }
    EXPECT_TRUE(faults.empty());
}

TEST(checked, keeps_freed_blocks_in_quarantine_up_to_its_limit)
{
    counting_source heap;
    collected_faults faults;
    checked<ref<counting_source>, checked_options{.quarantine = 1000}> chunks({"chunks", faults},
                                                                              std::in_place, heap);
    std::vector<chunk> taken(100);
    for (chunk& c : taken)
        c = chunks.take({64});
    std::size_t const each = heap.bytes() / taken.size();
    for (chunk const c : taken)
        chunks.give(c);
    EXPECT_EQ(heap.bytes(), 1000 / each * each);
    chunks.give(taken.back());
    EXPECT_TRUE(faults.were(fault_kind::double_free, taken.back().data));
    chunks.give(taken.front()); // by now, the record is freed
    EXPECT_TRUE(faults.were(fault_kind::foreign_free, nullptr));
}

TEST(checked, empties_its_quarantine_before_an_allocation_fails)
{
    failing_source heap;
    collected_faults faults;
    checked<ref<failing_source>> chunks({"chunks", faults}, std::in_place, heap);
    chunks.give(chunks.take({64}));
    EXPECT_EQ(heap.live().size(), 1);
    heap.fail_at(1);
    chunk const c = chunks.take({64});
    EXPECT_EQ(heap.live().size(), 1); // the block of `c`
    heap.fail_at(1);
    EXPECT_THROW(static_cast<void>(chunks.take({64})), std::bad_alloc);
    chunks.give(c);
}

/// A source with a fixed number of chunks.
struct scarce_heap : default_heap {
    inline static int left = 0;
    chunk try_take(layout l) noexcept { return left-- > 0 ? default_heap::try_take(l) : chunk{}; }
};

TEST(checked, fails_and_changes_nothing_without_memory_for_block_metadata)
{
    for (int const chunks_left : {0, 1, 2, 3, 4}) {
        scarce_heap::left = chunks_left;
        counting_source heap;
        checked<ref<counting_source>, checked_options{}, scarce_heap> chunks("chunks",
                                                                             std::in_place, heap);
        std::vector<chunk> taken;
        for (int i = 0; i < 3000; ++i) {
            taken.push_back(chunks.try_take({8}));
            if (taken.back().data == nullptr)
                taken.pop_back();
        }
        EXPECT_EQ(heap.live().size(), taken.size());
        EXPECT_EQ(taken.empty(), chunks_left == 0);
        EXPECT_LT(taken.size(), 3000);
        EXPECT_THROW(static_cast<void>(chunks.take({8})), std::bad_alloc);
        for (chunk const c : taken)
            chunks.give(c);
    }
}

TEST(checked, passes_on_bytes_that_a_source_returns_beyond_the_request)
{
    generous_source heap;
    checked<ref<generous_source>> chunks("chunks", std::in_place, heap);
    chunk const c = chunks.take({64});
    EXPECT_EQ(c.bytes, 1064);
    std::memset(c.data, 1, c.bytes);
    chunks.give(c);
}

TEST(checked, fails_for_absurd_layouts)
{
    counting_source heap;
    checked<multipool<ref<counting_source>>> blocks("blocks", std::in_place, heap);
    for (layout const l : {layout(bytes_max), layout(SIZE_MAX), layout(SIZE_MAX - 30),
                           layout(8, std::size_t{1} << 63), layout(bytes_max / 2)}) {
        EXPECT_EQ(blocks.try_allocate(l), nullptr);
        EXPECT_THROW(static_cast<void>(blocks.allocate(l)), std::bad_alloc);
    }
}

TEST(checked, poisons_bytes_outside_blocks_for_address_sanitizer)
{
    checked_multipool blocks;
    auto* const block = static_cast<std::byte*>(blocks.allocate({21}));
    EXPECT_TRUE(is_poisoned(block - 1, true));
    EXPECT_FALSE(is_poisoned(block, false));
    EXPECT_FALSE(is_poisoned(block + 20, false));
    EXPECT_TRUE(is_poisoned(block + 21, true));
    blocks.deallocate(block, {21});
    EXPECT_TRUE(is_poisoned(block, true));
}

TEST(checked, can_be_used_by_containers_and_combined_with_other_adaptors)
{
    using inner = checked<pool<default_heap, pool_options{.block = 128}>>;
    collected_faults faults;
    checked<inner> blocks({"outer", faults}, std::in_place, fault_reporter("inner", faults));
    {
        std::list<int, allocator<int, checked<inner>>> numbers(blocks);
        for (int i = 0; i < 1000; ++i)
            numbers.push_back(i);
        std::map<int, int, std::less<>, allocator<std::pair<const int, int>, checked<inner>>>
            squares(blocks);
        for (int i = 0; i < 100; ++i)
            squares[i] = i * i;
    }
    pmr_resource<checked_multipool> resource;
    std::pmr::list<std::pmr::string> lines(&resource);
    lines.emplace_back("longer than what fits into a string itself");
    arena<checked<>> on_checked_chunks;
    on_checked_chunks.make<int>(1);
    EXPECT_TRUE(faults.empty());
}

TEST(checked, records_the_call_stacks_of_allocation_and_free)
{
    std::size_t calls = 0;
    auto const count = [&](const fault& f) {
        for (const faulty_block& b : f.blocks)
            calls += (b.allocated.calls.size() > 1) + 2 * (b.freed.calls.size() > 1);
    };
    checked<multipool<>, checked_options{.frames = 8}> blocks({"blocks", count});
    void* const block = blocks.allocate({40});
    blocks.deallocate(block, {40});
    EXPECT_EQ(calls, 0);
    blocks.deallocate(block, {40});
    EXPECT_EQ(calls, 3);
}

TEST(checked, can_be_called_by_many_threads)
{
    checked<multipool<>, checked_options{.shared = true}> blocks("blocks");
    in_threads(4, [&](std::size_t number) {
        seeded choose(number);
        model mine;
        for (std::size_t i = rounds(4000); i > 0; --i) {
            if (choose(2) == 0) {
                layout const l(choose(200));
                mine.add(blocks.allocate(l), l);
            } else if (!mine.empty()) {
                void* const block = mine[choose(mine.count())];
                blocks.deallocate(block, mine.remove(block));
            }
            if (choose(200) == 0)
                blocks.verify();
        }
        while (!mine.empty()) {
            void* const block = mine[0];
            blocks.deallocate(block, mine.remove(block));
        }
    });
}

/// Runs a correct random program in which sometimes a byte outside of a block is changed. Exactly
/// these changes must be found.
TEST(checked, finds_exactly_the_planted_bugs_in_random_programs)
{
    for (std::size_t seed = 1; seed <= 20; ++seed) {
        seeded choose(seed);
        doing = "seed " + std::to_string(seed);
        collected_faults faults;
        counting_source heap;
        checked<ref<counting_source>> chunks({"chunks", faults}, std::in_place, heap);
        model right;
        for (int step = 0; step < 3000; ++step) {
            if (choose(5) < 3) {
                layout const l(choose(300), std::size_t{1} << choose(8));
                right.add(chunks.take(l).data, l);
                continue;
            }
            if (right.empty())
                continue;
            auto* const block = static_cast<std::byte*>(right[choose(right.count())]);
            layout const l = right.layout_at(block);
            std::size_t const far = choose(16);
            switch (choose(10)) {
            case 0:
                flip(block + l.bytes + far);
                chunks.verify();
                require(faults.were(fault_kind::overrun, block, block + l.bytes + far), "overrun");
                break;
            case 1:
                flip(block - 1 - far);
                chunks.verify();
                require(faults.were(fault_kind::underrun, block, block - 1 - far), "underrun");
                break;
            case 2:
                right.remove(block);
                chunks.give({block, l.bytes, l.align});
                chunks.give({block, l.bytes, l.align});
                require(faults.were(fault_kind::double_free, block, block), "double free");
                if (l.bytes == 0)
                    break;
                flip(block + far % l.bytes);
                chunks.verify();
                require(faults.were(fault_kind::write_after_free, block, block + far % l.bytes),
                        "write after free");
                break;
            default:
                right.remove(block);
                chunks.give({block, l.bytes, l.align});
            }
            require(faults.empty(), "no fault, no report");
        }
        right.verify();
        while (!right.empty()) {
            void* const block = right[0];
            layout const l = right.remove(block);
            chunks.give({block, l.bytes, l.align});
        }
    }
    doing.clear();
}

} // namespace
