#include "../support/sources.hpp"

#include <mallard/adapt/by_size.hpp>
#include <mallard/adapt/counted.hpp>
#include <mallard/adapt/fallback.hpp>
#include <mallard/adapt/observed.hpp>
#include <mallard/adapt/synchronized.hpp>
#include <mallard/arena.hpp>
#include <mallard/fixed_pool.hpp>
#include <mallard/multipool.hpp>
#include <mallard/pool.hpp>

#include <gtest/gtest.h>

#include <array>

namespace {

using namespace mallard::testing;
using mallard::arena;
using mallard::block_allocator;
using mallard::borrowed;
using mallard::buffer;
using mallard::by_size;
using mallard::chunk;
using mallard::chunk_source;
using mallard::counted;
using mallard::default_heap;
using mallard::fallback;
using mallard::fixed_pool;
using mallard::layout;
using mallard::multipool;
using mallard::observed;
using mallard::pool;
using mallard::ref;
using mallard::snapshot;
using mallard::synchronized;

// --- fallback

using stack_first = fallback<buffer<256>, ref<counting_source>>;
static_assert(chunk_source<fallback<buffer<256>, default_heap>>);
static_assert(!block_allocator<fallback<buffer<256>, default_heap>>);
static_assert(block_allocator<fallback<pool<>, multipool<>>>);
static_assert(!chunk_source<fallback<pool<>, multipool<>>>);
static_assert(chunk_source<fallback<arena<>, default_heap>>, "of an allocator and a source");
static_assert(mallard::resettable<fallback<pool<>, multipool<>>>);
static_assert(std::is_move_constructible_v<fallback<arena<>, multipool<>>>);

TEST(fallback, uses_the_second_allocator_if_the_first_fails_and_frees_to_the_right_one)
{
    using nodes = counted<fixed_pool<64, 2>>;
    fallback<nodes, counted<multipool<>>> memory;
    std::array<void*, 4> blocks;
    for (void*& block : blocks)
        block = memory.allocate({64, 8});
    EXPECT_GT(memory.first().counts().allocations, 1u) << "there may be room for one more";
    EXPECT_GT(memory.second().counts().allocations, 0u);
    EXPECT_EQ(memory.first().counts().failures, memory.second().counts().allocations);
    for (void* const block : blocks) {
        EXPECT_TRUE(memory.owns(block));
        memory.deallocate(block, {64, 8});
    }
    EXPECT_TRUE(memory.first().counts().is_balanced());
    EXPECT_TRUE(memory.second().counts().is_balanced());
    EXPECT_EQ(memory.stats().blocks_live, 0u);
}

TEST(fallback, throws_the_exception_of_the_second_allocator)
{
    failing_resource upstream;
    upstream.source.fail_from(1);
    fallback<buffer<16>, mallard::pmr_source> source;
    fallback<borrowed, mallard::pmr_source> words(borrowed(), &upstream);
    EXPECT_THROW(static_cast<void>(words.take({100, 1})), refusal);
    EXPECT_EQ(words.try_take({100, 1}).data, nullptr);
}

TEST(fallback, returns_empty_chunks_to_the_source_that_they_are_from)
{
    counting_source heap;
    std::array<std::byte, 32> bytes;
    fallback<borrowed, ref<counting_source>> source(borrowed{std::span(bytes)}, heap);
    chunk const first = source.take({32, 1});
    // The buffer is full. An empty chunk at its end would be outside of the buffer, so the request
    // goes to the heap.
    chunk const none = source.take({0, 1});
    EXPECT_EQ(heap.calls(), 1u);
    source.give(none);
    source.give(first);
    EXPECT_EQ(heap.gives(), 1u);
}

TEST(fallback, lets_a_multipool_use_a_stack_buffer_until_it_is_full)
{
    counting_source heap;
    struct on_stack : fallback<borrowed, ref<counting_source>> {
        using fallback::fallback;
    };
    std::array<std::byte, 4096> bytes;
    multipool<on_stack> memory(on_stack(borrowed{std::span(bytes)}, heap));
    void* const small = memory.allocate({16, 8});
    EXPECT_EQ(heap.calls(), 0u);
    void* const large = memory.allocate({40000, 8});
    EXPECT_EQ(heap.calls(), 1u);
    memory.deallocate(small, {16, 8});
    memory.deallocate(large, {40000, 8});
}

TEST(arena, owns_exactly_its_own_bytes)
{
    std::array<std::byte, 64> bytes;
    arena<> scratch(bytes);
    EXPECT_TRUE(scratch.owns(bytes.data()));
    EXPECT_TRUE(scratch.owns(&bytes.back()));
    EXPECT_FALSE(scratch.owns(bytes.data() + bytes.size()));
    EXPECT_FALSE(arena<>().owns(nullptr));
    auto* const block = static_cast<std::byte*>(scratch.allocate({5000, 1}));
    EXPECT_TRUE(scratch.owns(block) && scratch.owns(block + 4999));
    scratch.reset();
    EXPECT_TRUE(scratch.owns(block)) << "its memory, in use or not";
    scratch.release();
    EXPECT_FALSE(scratch.owns(block));
}

// --- by_size

TEST(by_size, selects_the_allocator_by_size_when_allocating_and_freeing)
{
    by_size<64, counted<arena<>>, counted<multipool<>>> memory;
    void* const small = memory.allocate({64, 16});
    void* const large = memory.try_allocate({65, 16});
    EXPECT_EQ(memory.first().counts().bytes_live(), 64);
    EXPECT_EQ(memory.second().counts().bytes_live(), 65);
    EXPECT_TRUE(memory.owns(small) && memory.owns(large));
    memory.deallocate(large, {65, 16});
    memory.deallocate(small, {64, 16});
    EXPECT_TRUE(memory.first().counts().is_balanced());
    EXPECT_TRUE(memory.second().counts().is_balanced());
    static_cast<void>(memory.allocate({0, 1}));
    static_cast<void>(memory.allocate({1000, 1}));
    memory.reset();
    memory.trim();
    memory.release();
    EXPECT_TRUE(memory.first().counts().is_balanced());
    EXPECT_TRUE(memory.second().counts().is_balanced());
}

TEST(by_size, fails_without_trying_the_allocator_of_the_other_sizes)
{
    by_size<64, arena<mallard::null>, multipool<>> memory;
    EXPECT_EQ(memory.try_allocate({64, 1}), nullptr);
    EXPECT_THROW(static_cast<void>(memory.allocate({64, 1})), std::bad_alloc);
    EXPECT_NE(memory.try_allocate({65, 1}), nullptr);
    memory.release();
}

// --- synchronized

struct watched_mutex {
    static inline int depth = 0, locks = 0;
    static void lock() { require(++depth == 1, "a lock is taken once"), ++locks; }
    static void unlock() { --depth; }
};

/// Verifies that the lock is held in every call.
struct locked_only : counted<arena<>> {
    void* allocate(layout l) { return held(), counted::allocate(l); }
    void* try_allocate(layout l) noexcept { return held(), counted::try_allocate(l); }
    void deallocate(void* p, layout l) noexcept { held(), counted::deallocate(p, l); }
    void reset() noexcept { held(), counted::reset(); }
    void release() noexcept { held(), counted::release(); }
    void trim(std::size_t keep) noexcept { held(), counted::trim(keep); }
    bool owns(const void* p) const noexcept { return held(), counted::owns(p); }
    auto stats() const noexcept { return held(), counted::stats(); }
    auto counts() const noexcept { return held(), counted::counts(); }
    static void held() { require(watched_mutex::depth == 1, "a call is inside the lock"); }
};

TEST(synchronized, holds_its_lock_exactly_during_each_call)
{
    using memory = synchronized<locked_only, watched_mutex>;
    static_assert(mallard::shareable<memory> && mallard::resettable<memory>);
    static_assert(!std::is_move_constructible_v<memory>);
    memory m;
    void* const block = m.allocate({8, 8});
    EXPECT_NE(m.try_allocate({8, 8}), nullptr);
    EXPECT_TRUE(m.owns(block));
    m.deallocate(block, {8, 8});
    EXPECT_EQ(m.counts().blocks_live(), 1);
    EXPECT_GT(m.stats().bytes_taken, 0u);
    m.with([](locked_only& inside) { inside.reset(); });
    m.reset();
    m.trim();
    m.release();
    EXPECT_EQ(watched_mutex::locks, 10);
    EXPECT_EQ(watched_mutex::depth, 0);
}

TEST(synchronized, releases_its_lock_after_an_exception_too)
{
    synchronized<arena<mallard::null>, watched_mutex> memory;
    EXPECT_THROW(static_cast<void>(memory.allocate({8, 8})), std::bad_alloc);
    EXPECT_EQ(watched_mutex::depth, 0);
}

// --- observed

struct diary {
    std::vector<std::string> lines;
    void write(const char* what, std::size_t n) { lines.push_back(what + std::to_string(n)); }
};
struct writer {
    diary* to;
    void grew(chunk c) noexcept { to->write("grew ", c.bytes); }
    void failed(layout l) noexcept { to->write("failed ", l.bytes); }
    void gave(chunk c) noexcept { to->write("gave ", c.bytes); }
    void exhausted(layout l) noexcept { to->write("exhausted ", l.bytes); }
    void destroyed(const snapshot& s) noexcept
    {
        to->write("destroyed ", s.memory ? s.memory->bytes_live : 0);
    }
};
struct only_exhausted {
    int count = 0;
    void exhausted(layout) noexcept { ++count; }
};

TEST(observed, reports_the_events_of_a_source)
{
    diary d;
    {
        failing_source heap;
        observed<ref<failing_source>, writer> source(writer{&d}, std::in_place, heap);
        pool<ref<decltype(source)>> blocks(64, 0, source);
        static_cast<void>(blocks.allocate());
        heap.fail_from(1);
        EXPECT_EQ(blocks.try_allocate(layout{100'000}), nullptr);
        EXPECT_THROW(static_cast<void>(blocks.allocate(layout{100'000})), std::bad_alloc);
    }
    EXPECT_EQ(d.lines,
              (std::vector<std::string>{"grew 512", "grew 65536", "failed 100040", "failed 100040",
                                        "gave 65536", "gave 512", "destroyed 0"}));
}

TEST(observed, reports_exhaustion_and_the_final_state_of_an_allocator)
{
    diary d;
    {
        observed<fixed_pool<64, 1>, writer> memory{writer{&d}};
        while (memory.try_allocate({60, 4}) != nullptr) {}
        EXPECT_THROW(static_cast<void>(memory.allocate({60, 4})), std::bad_alloc);
    }
    EXPECT_EQ(d.lines, (std::vector<std::string>{"exhausted 60", "exhausted 60", "destroyed 64"}));
}

TEST(observed, accepts_an_observer_with_a_single_member_function)
{
    observed<arena<mallard::null>, only_exhausted> memory;
    EXPECT_EQ(memory.try_allocate({1, 1}), nullptr);
    EXPECT_EQ(memory.observer().count, 1);
}

TEST(observed, passes_call_counts_to_the_destroyed_event_if_calls_are_counted)
{
    struct keeper {
        snapshot* last;
        void destroyed(const snapshot& s) noexcept { *last = s; }
    };
    snapshot last;
    {
        observed<counted<arena<>>, keeper> memory(keeper{&last});
        static_cast<void>(memory.allocate({10, 1}));
    }
    ASSERT_TRUE(last.calls && last.memory);
    EXPECT_EQ(last.calls->bytes_live(), 10);
    EXPECT_EQ(last.memory->growths, 1u);
}

} // namespace
