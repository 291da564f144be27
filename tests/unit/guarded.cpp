#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>
#include <mallard/debug/checked.hpp>
#include <mallard/debug/guarded.hpp>
#include <mallard/multipool.hpp>
#include <mallard/sync.hpp>

#include "../support/asan.hpp"
#include "../support/choices.hpp"
#include "../support/faults.hpp"
#include "../support/model.hpp"
#include "../support/sources.hpp"
#include "../support/threads.hpp"
#include "pages.hpp"

#include <list>

namespace {

using namespace mallard;
using namespace mallard::testing;

using guarded_multipool = guarded<multipool<>>;
static_assert(block_allocator<guarded_multipool> && resettable<guarded_multipool>);
static_assert(chunk_source<guarded<>>);

constexpr guarded_options before{.side = guard_at::begin};
constexpr guarded_options sampled{.one_in = 100};
constexpr guarded_options small{.quarantine = 4 * page_bytes, .blocks_max = 4};

void touch(const void* p)
{
    *static_cast<volatile char*>(const_cast<void*>(p)) = 1;
}

template <class A>
std::byte* some(A& from, layout l)
{
    return static_cast<std::byte*>(from.allocate(l));
}

TEST(guarded, places_aligned_blocks_of_any_size_at_the_end_of_a_page)
{
    guarded_multipool blocks("blocks");
    for (std::size_t const bytes : {0, 1, 13, 4096, 5000, 100000}) {
        for (std::size_t align = 1; align <= 4 * page_bytes; align *= 2) {
            std::byte* const block = some(blocks, {bytes, align});
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % align, 0);
            std::size_t const slack = guarded_multipool::slack({bytes, align});
            EXPECT_LT(slack, align);
            std::byte* const end = block + std::max(bytes, std::size_t{1}) + slack;
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(end) % page_bytes, 0);
            std::memset(block, 1, bytes);
            blocks.deallocate(block, {bytes, align});
        }
    }
    EXPECT_EQ(blocks.unguarded(), 0);
}

TEST(guarded, faults_at_the_first_byte_beyond_a_block)
{
    guarded_multipool blocks;
    std::byte* const block = some(blocks, {100, 4});
    touch(block + 99);
    EXPECT_DEATH(touch(block + 100), "");
    blocks.deallocate(block, {100, 4});
}

TEST(guarded, can_fault_at_the_first_byte_before_a_block)
{
    guarded<multipool<>, before> blocks;
    std::byte* const block = some(blocks, {100, 4});
    touch(block);
    EXPECT_DEATH(touch(block - 1), "");
    blocks.deallocate(block, {100, 4});
}

TEST(guarded, faults_at_an_access_to_a_freed_block)
{
    guarded_multipool blocks;
    std::byte* const block = some(blocks, {10000});
    blocks.deallocate(block, {10000});
    EXPECT_DEATH(touch(block), "");
    EXPECT_DEATH(touch(block + 9999), "");
}

TEST(guarded, faults_at_an_access_to_a_block_freed_by_reset)
{
    guarded_multipool blocks;
    std::byte* const block = some(blocks, {100});
    blocks.reset();
    EXPECT_EQ(blocks.blocks(), 0);
    EXPECT_DEATH(touch(block), "");
}

TEST(guarded, finds_writes_into_the_gap_at_the_free)
{
    collected_faults faults;
    guarded_multipool blocks({"blocks", faults});
    std::byte* const block = some(blocks, {100, 16}); // leaves 12 bytes of slack
    flip(block + 100);
    blocks.deallocate(block, {100, 16});
    EXPECT_TRUE(faults.were(fault_kind::overrun, block, block + 100));
    std::byte* const other = some(blocks, {100, 16});
    flip(other - 1);
    blocks.verify();
    EXPECT_TRUE(faults.were(fault_kind::underrun, other, other - 1));
    blocks.deallocate(other, {100, 16});
    EXPECT_TRUE(faults.empty());
}

TEST(guarded, finds_bad_frees)
{
    collected_faults faults;
    guarded_multipool blocks({"blocks", faults});
    std::byte* const block = some(blocks, {100});
    blocks.deallocate(block + 1, {99});
    EXPECT_TRUE(faults.were(fault_kind::interior_free, block));
    blocks.deallocate(block, {99});
    EXPECT_TRUE(faults.were(fault_kind::wrong_layout, block));
    blocks.deallocate(block, {100});
    EXPECT_TRUE(faults.were(fault_kind::double_free, block));
}

TEST(guarded, explains_which_block_an_address_belongs_to)
{
    collected_faults faults;
    guarded_multipool blocks({"blocks", faults});
    std::byte* const first = some(blocks, {page_bytes, 1});
    std::byte* const second = some(blocks, {page_bytes, 1});
    EXPECT_TRUE(blocks.explain(first + page_bytes));
    EXPECT_TRUE(faults.were(fault_kind::touch_outside, first, first + page_bytes));
    EXPECT_TRUE(blocks.explain(second + page_bytes + 8));
    EXPECT_TRUE(faults.were(fault_kind::touch_outside, second));
    blocks.deallocate(second, {page_bytes, 1});
    EXPECT_TRUE(blocks.explain(second + 7));
    EXPECT_TRUE(faults.were(fault_kind::touch_after_free, second));
    int stranger = 0;
    EXPECT_FALSE(blocks.explain(&stranger));
    blocks.deallocate(first, {page_bytes, 1});
}

TEST(guarded, returns_the_memory_of_freed_blocks_immediately)
{
    guarded<> chunks;
    std::size_t const before_all = mapped_pages();
    chunk const c = chunks.take({mib});
    std::memset(c.data, 1, c.bytes);
    EXPECT_EQ(resident_pages(begin(c), mib), mib / page_bytes);
    chunks.give(c);
    EXPECT_EQ(resident_pages(begin(c), mib), 0);
    static_cast<void>(before_all);
}

TEST(guarded, reuses_addresses_when_the_quarantine_is_full)
{
    guarded<multipool<>, small> blocks;
    void* const first = blocks.allocate({8});
    blocks.deallocate(first, {8});
    int rounds_until_again = 0;
    void* block = nullptr;
    for (; block != first && rounds_until_again < 10; ++rounds_until_again) {
        block = blocks.allocate({8});
        blocks.deallocate(block, {8});
    }
    EXPECT_EQ(rounds_until_again, 5); // because four blocks were in quarantine
}

TEST(guarded, does_not_guard_more_than_blocks_max_and_reports_why)
{
    counting_source heap;
    guarded<ref<counting_source>, small> chunks("chunks", std::in_place, heap);
    std::vector<chunk> taken(6);
    for (chunk& c : taken)
        c = chunks.take({100});
    EXPECT_EQ(chunks.blocks(), 4);
    EXPECT_EQ(chunks.unguarded(), 2);
    EXPECT_EQ(heap.live().size(), 2);
    EXPECT_TRUE(says(chunks.last_failure(), "blocks_max"));
    for (chunk const c : taken)
        chunks.give(c);
    EXPECT_EQ(chunks.blocks(), 0);
    EXPECT_TRUE(heap.live().empty());
}

TEST(guarded, does_not_guard_when_the_system_has_no_memory_and_reports_why)
{
    if (!may_refuse_memory())
        GTEST_SKIP() << refuses_sanitizers;
    EXPECT_EXIT(
        {
            // The chunks come from a buffer, because the heap would fail too under the limit below.
            guarded<buffer<2 * page_bytes>> chunks;
            chunk const guarded_one = chunks.take({100});
            limit(RLIMIT_DATA, page_bytes);
            chunk const c = chunks.try_take({page_bytes});
            limit(RLIMIT_DATA, RLIM_INFINITY);
            bool const passed = c.data != nullptr && !chunks.is_guarded(c.data);
            chunks.give(c);
            chunks.give(guarded_one);
            report(passed && chunks.blocks() == 0 && chunks.unguarded() == 1 &&
                   chunks.last_error() == ENOMEM && says(chunks.last_failure(), "ulimit -d"));
        },
        ::testing::ExitedWithCode(0), "");
}

TEST(guarded, guards_no_block_without_address_space)
{
    if (!may_refuse_memory())
        GTEST_SKIP() << refuses_sanitizers;
    EXPECT_EXIT(
        {
            guarded_multipool blocks;
            auto& below = blocks.upstream();
            below.deallocate(below.allocate({100}), {100}); // takes a chunk before the limit
            limit(RLIMIT_AS, 0);
            void* const block = blocks.allocate({100});
            limit(RLIMIT_AS, RLIM_INFINITY);
            report(blocks.unguarded() == 1 && blocks.upstream().owns(block) &&
                   says(blocks.last_failure(), "ulimit -v"));
        },
        ::testing::ExitedWithCode(0), "");
}

TEST(guarded, survives_when_the_process_has_no_mappings_left)
{
    auto const mappings_max =
        std::strtoull(proc_file("/proc/sys/vm/max_map_count").text, nullptr, 10);
    if (mappings_max > 100000 || !may_refuse_memory())
        GTEST_SKIP() << "too many mappings to use up, or a sanitizer needs some itself";
    constexpr guarded_options unbounded{.blocks_max = SIZE_MAX};
    collected_faults faults;
    guarded<multipool<>, unbounded> blocks({"blocks", faults});
    std::vector<void*> taken;
    while (blocks.unguarded() < 100)
        taken.push_back(blocks.allocate({8}));
    EXPECT_EQ(blocks.last_error(), ENOMEM);
    EXPECT_GT(blocks.blocks(), mappings_max / 4);
    EXPECT_EQ(blocks.blocks() + 100, taken.size());
    for (void* const block : taken)
        blocks.deallocate(block, {8});
    EXPECT_EQ(blocks.blocks(), 0);
    void* const again = blocks.allocate({8});
    EXPECT_EQ(blocks.unguarded(), 100);
    blocks.deallocate(again, {8});
    EXPECT_TRUE(faults.empty());
}

TEST(guarded, guards_a_random_sample_of_allocations_with_the_option_one_in)
{
    guarded<multipool<>, sampled> blocks;
    std::vector<void*> taken(20000);
    for (void*& block : taken)
        block = blocks.allocate({24});
    EXPECT_GT(blocks.blocks(), 150);
    EXPECT_LT(blocks.blocks(), 250);
    EXPECT_EQ(blocks.upstream().stats().blocks_live, taken.size() - blocks.blocks());
    for (void* const block : taken)
        blocks.deallocate(block, {24});
    EXPECT_EQ(blocks.blocks(), 0);
    EXPECT_EQ(blocks.upstream().stats().blocks_live, 0);
}

/// Runs a correct random program. Sometimes the test changes a byte in the gap next to a block.
TEST(guarded, keeps_blocks_intact_and_finds_bugs_in_random_programs)
{
    for (std::size_t seed = 1; seed <= 5; ++seed) {
        seeded choose(seed);
        doing = "seed " + std::to_string(seed);
        collected_faults faults;
        counting_source heap;
        constexpr guarded_options some_of_them{.one_in = 2, .quarantine = 8 * page_bytes};
        guarded<ref<counting_source>, some_of_them> chunks({"chunks", faults}, std::in_place, heap);
        model right;
        for (int step = 0; step < 2000; ++step) {
            layout const asked(choose(6000), std::size_t{1} << choose(14));
            if (choose(5) < 3) {
                right.add(chunks.take(asked).data, asked);
                continue;
            }
            if (right.empty())
                continue;
            auto* const block = static_cast<std::byte*>(right[choose(right.count())]);
            layout const l = right.remove(block);
            std::size_t const slack = decltype(chunks)::slack(l);
            bool const overruns = chunks.is_guarded(block) && slack != 0 && choose(4) == 0;
            if (overruns)
                flip(block + std::max(l.bytes, std::size_t{1}) + choose(slack));
            chunks.give({block, l.bytes, l.align});
            require(overruns ? faults.were(fault_kind::overrun, block) : faults.empty(),
                    "each overrun is found, and nothing else");
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

TEST(guarded, can_be_used_by_containers_and_combined_with_other_adaptors)
{
    collected_faults faults;
    {
        using inner = checked<multipool<>>;
        guarded<inner, guarded_options{.one_in = 3}> blocks({"guarded", faults}, std::in_place,
                                                            fault_reporter("checked", faults));
        std::list<int, allocator<int, decltype(blocks)>> numbers(blocks);
        for (int i = 0; i < 100; ++i)
            numbers.push_back(i);
        checked<guarded_multipool> turned_over("checked");
        turned_over.deallocate(turned_over.allocate({8}), {8});
        arena<guarded<>> on_guarded_chunks;
        on_guarded_chunks.make<int>(1);
    }
    EXPECT_TRUE(faults.empty());
}

TEST(guarded, can_be_called_by_many_threads)
{
    constexpr guarded_options shared{.one_in = 7, .shared = true};
    guarded<multipool<default_heap, multipool_options{.threads = sync::mutex}>, shared> blocks;
    std::mutex lock;
    std::vector<void*> passed_on;
    in_threads(4, [&](std::size_t number) {
        seeded choose(number);
        model mine;
        for (std::size_t i = rounds(4000); i > 0; --i) {
            layout const l(24);
            if (choose(2) == 0) {
                mine.add(blocks.allocate(l), l);
            } else if (!mine.empty()) { // the next thread frees this block
                void* block = mine[choose(mine.count())];
                mine.remove(block);
                {
                    std::lock_guard const alone(lock);
                    passed_on.push_back(block);
                    std::swap(block, passed_on[choose(passed_on.size())]);
                    std::swap(block, passed_on.back());
                    block = passed_on.back();
                    passed_on.pop_back();
                }
                blocks.deallocate(block, l);
            }
        }
        while (!mine.empty()) {
            void* const block = mine[0];
            blocks.deallocate(block, mine.remove(block));
        }
    });
    for (void* const block : passed_on)
        blocks.deallocate(block, {24});
    EXPECT_EQ(blocks.blocks(), 0);
}

} // namespace
