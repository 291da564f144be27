// Tests what allocators require of their sources.
#include "../support/sources.hpp"

#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <mallard/object_pool.hpp>
#include <mallard/secondary_map.hpp>
#include <mallard/shared_arena.hpp>
#include <mallard/slot_map.hpp>
#include <mallard/sync.hpp>

#include <gtest/gtest.h>

#include <memory>

namespace {

using namespace mallard::testing;
using namespace mallard;

enum class fault { misaligned, too_small, null_without_an_error };

/// A source whose chunks break the contract.
template <fault Fault>
struct broken_source {
    chunk try_take(layout l) noexcept
    {
        if (Fault == fault::null_without_an_error)
            return {};
        chunk taken = default_heap().try_take({2 * l.bytes, 2 * l.align});
        taken.bytes -= Fault == fault::too_small ? l.bytes + 1 : l.bytes;
        if (Fault == fault::misaligned)
            taken.data = static_cast<std::byte*>(taken.data) + l.align / 2;
        return taken;
    }
    chunk take(layout l) noexcept { return try_take(l); } // should throw instead of returning null
    void give(chunk) noexcept {}
};

constexpr layout small(40, 8), large(100'000, 64);

/// Calls `allocate` with an allocator of each kind over `Source`. Each call makes the first chunk
/// request.
template <class Source, class F>
void for_each_kind(F f)
{
    static constexpr pool_options in_one_step{.block = 48, .grow = growth::none(4096)};
    f([] { (void)arena<Source>().allocate(small); });
    f([] { (void)shared_arena<Source>().allocate(small); });
    f([] { (void)pool<Source>(48).allocate(); });
    f([] { (void)pool<Source>(48).allocate(large); });
    f([] { (void)pool<Source, pool_options{.block = 48, .order = reuse::lifo}>().allocate(); });
    f([] { (void)pool<Source, in_one_step>().allocate(); });
    f([] { (void)pool<Source, pool_options{.block = 48, .threads = sync::mutex}>().allocate(); });
    f([] {
        (void)pool<Source, pool_options{.block = 48, .threads = sync::thread_cached}>().allocate();
    });
    f([] {
        (void)pool<Source, pool_options{.block = 48,
                                        .grow = growth::none(4096),
                                        .threads = sync::lock_free}>()
            .allocate();
    });
    f([] { (void)multipool<Source>().allocate(small); });
    f([] { (void)multipool<Source>().allocate(large); });
    f([] { (void)object_pool<long, Source>().make(7); });
    f([] { slot_map<long, key32, Source>().insert(7); });
    f([] { secondary_map<key32, long, Source>().set(key32(1U << 20 | 1), 7); });
    f([] { (void)arena<ref<Source>>(*std::make_unique<Source>()).allocate(small); });
}

template <fault Fault>
void expect_each_kind_to_stop(const char* message)
{
    for_each_kind<broken_source<Fault>>([=](auto allocate) { EXPECT_DEATH(allocate(), message); });
}

TEST(a_source_that_breaks_its_contract, stops_every_allocator_with_a_message)
{
    expect_each_kind_to_stop<fault::misaligned>(
        "mallard: a source returned a chunk at 0x[0-9a-f]+, not at a multiple of [0-9]+\n"
        "  an allocator requested [0-9]+ bytes at a multiple of [0-9]+; nothing was allocated\n"
        "  help: return both `bytes` and `align` of the layout");
    expect_each_kind_to_stop<fault::too_small>(
        "mallard: a source returned a chunk of [0-9]+ bytes instead of [0-9]+\n");
    expect_each_kind_to_stop<fault::null_without_an_error>(
        "mallard: a source returned no chunk, and threw no exception\n"
        "  an allocator requested [0-9]+ bytes at a multiple of [0-9]+; nothing was allocated\n"
        "  help: throw an exception in `take`");
}

/// Returns the largest alignment that `allocate` requests from its source.
template <class Allocator, class F>
std::size_t alignment_of_chunks(F allocate)
{
    counting_source heap;
    {
        Allocator allocator{ref(heap)};
        allocate(allocator);
    }
    std::size_t most = 0;
    for (layout const l : heap.asked())
        most = std::max(most, l.align);
    return most;
}

// docs/guide/sources.md lists these numbers.
TEST(a_source, receives_only_the_alignments_that_the_guide_lists)
{
    using from = ref<counting_source>;
    auto const allocate = [](auto& memory) { memory.deallocate(memory.allocate(small), small); };
    EXPECT_EQ(alignment_of_chunks<arena<from>>(allocate), 16U);
    EXPECT_EQ((alignment_of_chunks<pool<from, pool_options{.block = 48}>>(allocate)), 65536U);
    EXPECT_EQ((alignment_of_chunks<pool<from, pool_options{.block = 48, .order = reuse::lifo}>>(
                  allocate)),
              8U);
    EXPECT_EQ(
        (alignment_of_chunks<pool<from, pool_options{.block = 48, .grow = growth::none(4096)}>>(
            allocate)),
        8U);
    EXPECT_EQ(alignment_of_chunks<multipool<from>>(allocate), 8U);
    EXPECT_EQ(
        (alignment_of_chunks<multipool<from, multipool_options{.threads = sync::thread_cached}>>(
            allocate)),
        65536U);
    EXPECT_EQ((alignment_of_chunks<object_pool<long, from>>([](auto& all) { (void)all.make(7); })),
              65536U);
    EXPECT_EQ((alignment_of_chunks<slot_map<long, key32, from>>([](auto& all) { all.insert(7); })),
              64U);
}

} // namespace
