// Blocks can fill nine tenths of a memory limit, at every block size and in every kind of pool.
#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <mallard/object_pool.hpp>
#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace mallard;

constexpr std::size_t mib = std::size_t{1} << 20;

/// A source over the heap that records its peak of bytes in use. It rejects requests above 1 TiB,
/// for which the heap of AddressSanitizer would abort.
class heap_of_peak {
public:
    chunk try_take(layout l) noexcept
    {
        if (l.bytes > std::size_t{1} << 40)
            return {};
        chunk const taken = heap_.try_take(l);
        bytes_ += taken.bytes;
        peak_ = std::max(peak_, bytes_);
        return taken;
    }
    void give(chunk c) noexcept
    {
        bytes_ -= c.bytes;
        heap_.give(c);
    }
    std::size_t peak() const { return peak_; }

private:
    default_heap heap_;
    std::size_t bytes_ = 0, peak_ = 0;
};

/// Returns the limits for a test of blocks of `block` bytes. Some have room for a few blocks,
/// others do not depend on the block size.
std::vector<std::size_t> limits_for(std::size_t block)
{
    std::vector<std::size_t> limits;
    for (std::size_t const blocks : {1, 2, 3, 5, 8, 9, 10, 15, 16, 17, 24, 33, 50, 100})
        limits.push_back(blocks * block * 10 / 9 + 1);
    for (std::size_t bytes = 8192; bytes <= 4 * mib; bytes = bytes * 7 / 4)
        limits.push_back(bytes);
    // Remove limits below 8 KiB, where the chunk header takes too large a part of the limit, and
    // limits above the maximum, where a test takes too long.
    std::erase_if(limits, [&](std::size_t limit) {
        return limit < 8192 || limit < block || limit > std::max(4 * mib, 40 * block) ||
               limit / block > 30'000;
    });
    return limits;
}

/// Returns the documented bookkeeping of a pool for each block, in eighths of a byte: one bit in
/// each bitmap. A lock-free pool needs a link of 4 bytes instead.
constexpr std::size_t eighths_beside(const pool_options& o)
{
    std::size_t const bits = 1 + (o.checks == check::on) + (o.threads == sync::thread_cached);
    return o.threads == sync::lock_free ? 8 * 4 : bits;
}

/// Returns the number of blocks that nine tenths of the limit must hold, with their bookkeeping.
constexpr std::size_t blocks_promised(const pool_options& o, std::size_t block, std::size_t limit)
{
    return limit / 10 * 9 * 8 / (block * 8 + eighths_beside(o));
}

/// Allocates until the pool is exhausted, and writes to both ends of each block.
template <class Allocate>
std::vector<void*> fill(Allocate allocate, std::size_t bytes)
{
    std::vector<void*> blocks;
    while (void* const block = allocate()) {
        static_cast<char*>(block)[0] = static_cast<char*>(block)[bytes - 1] = 1;
        blocks.push_back(block);
    }
    return blocks;
}

template <pool_options Options>
void sweep_blocks()
{
    constexpr pool_options options = [] {
        pool_options o = Options;
        o.grow = growth::at_run_time();
        return o;
    }();
    for (std::size_t const block :
         {1,      3,      8,       16,      24,        48,        64,       100,    200,
          256,    500,    512,     513,     520,       600,       1000,     1024,   2000,
          2500,   4000,   4096,    5000,    8192,      10'000,    16'000,   16'384, 20'000,
          33'000, 65'536, 100'000, 200'000, 1'000'000, 1'048'576, 3'000'000}) {
        for (std::size_t const limit : limits_for(block)) {
            heap_of_peak heap;
            growth const rule = options.threads == sync::lock_free
                                    ? growth::none(limit)
                                    : growth{.first = 65'536, .limit = limit};
            pool<ref<heap_of_peak>, options> blocks(block, 0, heap, rule);
            std::size_t const bytes = blocks.block_bytes();
            std::size_t const promised = blocks_promised(options, bytes, limit);
            auto const take = [&] { return fill([&] { return blocks.try_allocate(); }, block); };
            std::vector<void*> live = take();
            ASSERT_GE(live.size(), promised) << block << " bytes, limit " << limit;
            if (Options.threads != sync::thread_cached) { // thread caches may exceed the limit
                ASSERT_LE(heap.peak(), limit) << block << " bytes, limit " << limit;
            }
            if (limit > 100'000)
                continue;
            for (void* const b : live)
                ASSERT_EQ(blocks.classify(b), validity::valid);
            for (void* const b : live)
                blocks.deallocate(b);
            live = take();
            ASSERT_GE(live.size(), promised) << "once more: " << block << ", limit " << limit;
            blocks.deallocate_batch(live);
            blocks.trim();
            ASSERT_GE(take().size(), promised) << "after trim: " << block << ", limit " << limit;
        }
    }
}

TEST(memory_limit, leaves_nine_tenths_for_blocks_of_an_ordered_pool)
{
    sweep_blocks<pool_options{}>();
}
TEST(memory_limit, leaves_nine_tenths_for_blocks_of_a_lifo_pool)
{
    sweep_blocks<pool_options{.order = reuse::lifo}>();
}
TEST(memory_limit, leaves_nine_tenths_for_blocks_of_a_fifo_pool)
{
    sweep_blocks<pool_options{.order = reuse::fifo}>();
}
TEST(memory_limit, leaves_nine_tenths_for_blocks_of_a_checked_pool)
{
    sweep_blocks<pool_options{.checks = check::on}>();
}
TEST(memory_limit, leaves_nine_tenths_for_blocks_of_a_pool_with_an_owner)
{
    sweep_blocks<pool_options{.order = reuse::lifo, .owned = true}>();
}
TEST(memory_limit, leaves_nine_tenths_for_blocks_of_a_pool_with_small_chunks)
{
    sweep_blocks<pool_options{.chunk = 4096}>();
}
TEST(memory_limit, leaves_nine_tenths_for_blocks_of_a_pool_with_a_mutex)
{
    sweep_blocks<pool_options{.threads = sync::mutex}>();
}
TEST(memory_limit, leaves_nine_tenths_for_blocks_of_a_lock_free_pool)
{
    sweep_blocks<pool_options{.threads = sync::lock_free}>();
}
TEST(memory_limit, leaves_nine_tenths_for_blocks_of_a_checked_lock_free_pool)
{
    sweep_blocks<pool_options{.threads = sync::lock_free, .checks = check::on}>();
}
TEST(memory_limit, leaves_nine_tenths_for_blocks_of_a_thread_cached_pool)
{
    sweep_blocks<pool_options{.threads = sync::thread_cached}>();
}
TEST(memory_limit, leaves_nine_tenths_for_blocks_of_a_checked_thread_cached_pool)
{
    sweep_blocks<pool_options{.threads = sync::thread_cached, .checks = check::on}>();
}

// --- objects, whose limit is in the type of their pool

template <std::size_t Bytes>
struct object {
    char content[Bytes];
};

template <std::size_t Bytes, object_pool_options Options>
void expect_objects()
{
    heap_of_peak heap;
    object_pool<object<Bytes>, ref<heap_of_peak>, Options> objects{ref(heap)};
    std::size_t count = 0;
    for (; auto made = objects.try_make(); ++count)
        static_cast<void>(made.leak());
    // A slot holds the object, the counts of the object's handles (8 bytes), and, in a pool of one
    // chunk, a pointer to the pool.
    std::size_t const slot =
        Bytes + 8 * (Options.counts != counts::none) + 8 * Options.grow.is_single();
    constexpr pool_options slots = Options.of_slots(Bytes, 1);
    std::size_t const limit =
        Options.grow.limit; // clang 16 reads the wrong object through a reference
    EXPECT_GE(count, blocks_promised(slots, slot, limit)) << Bytes << " bytes, limit " << limit;
    if (Options.threads != sync::thread_cached) {
        EXPECT_LE(heap.peak(), limit);
    }
}

template <std::size_t Bytes, object_pool_options Options>
void sweep_limits_of_objects()
{
    [&]<std::size_t... Limit>(std::index_sequence<Limit...>) {
        auto const with = [](std::size_t limit) {
            object_pool_options o = Options;
            o.grow.limit = limit;
            return o;
        };
        (expect_objects<Bytes, with(std::max(Limit, Bytes * 10 / 9 + 1))>(), ...);
    }(std::index_sequence<8192, 100'000, 1'048'576, 3'000'000>());
}

template <object_pool_options Options>
void sweep_objects()
{
    sweep_limits_of_objects<24, Options>();
    sweep_limits_of_objects<600, Options>();
    sweep_limits_of_objects<10'000, Options>();
    sweep_limits_of_objects<200'000, Options>();
}

TEST(memory_limit, leaves_nine_tenths_for_objects_of_an_object_pool)
{
    sweep_objects<object_pool_options{}>();
    sweep_objects<object_pool_options{.order = reuse::lifo}>();
    sweep_objects<object_pool_options{.counts = counts::local, .checks = check::on}>();
    sweep_objects<object_pool_options{.counts = counts::shared, .threads = sync::thread_cached}>();
}

// --- one class of a multipool

template <multipool_options Options>
void sweep_classes()
{
    constexpr multipool_options options = [] {
        multipool_options o = Options;
        o.grow = growth::at_run_time();
        return o;
    }();
    for (std::size_t const bytes : {8, 24, 100, 1000, 5000, 10'000, 32'768})
        for (std::size_t const limit : limits_for(bytes)) {
            if (limit > mib)
                continue;
            multipool<default_heap, options> sizes({},
                                                   growth{.first = 2048, .num = 4, .limit = limit});
            layout const l(bytes, 8);
            std::size_t const count = fill([&] { return sizes.try_allocate(l); }, bytes).size();
            std::size_t const block = size_class::bytes(size_class::of(l));
            ASSERT_GE(count, blocks_promised(options.of_each_pool(), block, limit))
                << bytes << " bytes, limit " << limit;
        }
}

TEST(memory_limit, leaves_nine_tenths_for_one_size_class_of_a_multipool)
{
    sweep_classes<multipool_options{}>();
    sweep_classes<multipool_options{.order = reuse::ordered}>();
    sweep_classes<multipool_options{.order = reuse::fifo, .checks = check::on}>();
    sweep_classes<multipool_options{.threads = sync::mutex}>();
    sweep_classes<multipool_options{.threads = sync::thread_cached}>();
}

// --- an arena

TEST(memory_limit, leaves_nine_tenths_for_blocks_of_an_arena)
{
    growth const rules[] = {{.first = 1024, .max = 16 * mib, .num = 4},
                            {},
                            growth::fixed(8192),
                            growth::linear(4096, 4096)};
    for (growth rule : rules)
        for (std::size_t const align : {1, 8, 16, 64})
            for (std::size_t const bytes :
                 {1, 24, 100, 520, 600, 1000, 3000, 10'000, 33'000, 200'000})
                for (std::size_t const limit : limits_for(bytes)) {
                    rule.limit = limit;
                    heap_of_peak heap;
                    arena<ref<heap_of_peak>, arena_options{.grow = growth::at_run_time()}> all(
                        rule, heap);
                    std::size_t const each = align_up(bytes, align);
                    std::size_t const count =
                        fill([&] { return all.try_allocate({bytes, align}); }, bytes).size();
                    ASSERT_GE(count, limit / 10 * 9 / each)
                        << bytes << " bytes at " << align << ", limit " << limit;
                    ASSERT_LE(heap.peak(), limit);
                }
}

// --- without a limit

template <pool_options Options>
void expect_first_blocks()
{
    for (std::size_t const block : {mib, 16 * mib, std::size_t{1} << 30}) {
        pool<default_heap, Options> blocks(block);
        char* const first = static_cast<char*>(blocks.allocate());
        EXPECT_LE(blocks.stats().bytes_taken, block + block / 16) << block;
        first[0] = first[block - 1] = 1;
        void* const second = blocks.allocate();
        EXPECT_LE(blocks.stats().bytes_taken, 2 * (block + block / 16)) << block;
        EXPECT_TRUE(blocks.owns(first + block - 1));
        blocks.deallocate(first);
        blocks.deallocate(second);
    }
}

TEST(the_first_block_of_a_pool, takes_little_more_memory_than_the_block_itself)
{
    expect_first_blocks<pool_options{}>();
    expect_first_blocks<pool_options{.order = reuse::lifo}>();
    expect_first_blocks<pool_options{.order = reuse::fifo, .owned = true}>();
    expect_first_blocks<pool_options{.checks = check::on}>();
    expect_first_blocks<pool_options{.threads = sync::mutex}>();
    expect_first_blocks<pool_options{.threads = sync::thread_cached}>();
}

template <pool_options Options>
void expect_refusals()
{
    for (std::size_t const bytes : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4, SIZE_MAX / 8 + 1})
        for (std::size_t const align : {std::size_t{0}, std::size_t{1} << 40, SIZE_MAX / 2 + 1}) {
            pool<heap_of_peak, Options> blocks(bytes, align);
            EXPECT_EQ(blocks.try_allocate(), nullptr) << bytes;
            EXPECT_THROW(static_cast<void>(blocks.allocate()), std::bad_alloc);
            EXPECT_EQ(blocks.stats().blocks_live, 0u);
        }
}

TEST(a_pool_of_blocks_of_an_absurd_size, fails_in_every_mode)
{
    expect_refusals<pool_options{}>();
    expect_refusals<pool_options{.order = reuse::lifo}>();
    expect_refusals<pool_options{.order = reuse::lifo, .owned = true}>();
    expect_refusals<pool_options{.grow = growth::none(65536)}>();
    expect_refusals<pool_options{.grow = {.limit = 65536}}>();
    expect_refusals<pool_options{.threads = sync::mutex}>();
    expect_refusals<pool_options{.grow = growth::none(65536), .threads = sync::lock_free}>();
    expect_refusals<pool_options{
        .grow = growth::none(65536), .threads = sync::lock_free, .checks = check::on}>();
    expect_refusals<pool_options{.threads = sync::thread_cached}>();
}

} // namespace
