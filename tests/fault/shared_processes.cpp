// Tests processes that share a segment, race to create it, and are killed at any moment.
#include <mallard/persist/segment_pool.hpp>

#include "../support/child.hpp"
#include "../support/choices.hpp"
#include "../support/segments.hpp"
#include "../support/threads.hpp"

#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include <sched.h>

namespace {

using namespace mallard::testing;
using mallard::offset_ptr;
using mallard::segment_pool;
using mallard::shared_memory;

using children = std::vector<std::unique_ptr<running_child>>;

template <class F>
children in_processes(std::size_t count, F f)
{
    children all;
    for (std::size_t number = 0; number < count; ++number)
        all.push_back(std::make_unique<running_child>([&] { f(number); }));
    return all;
}

void expect_fine(children& all)
{
    for (auto& child : all)
        EXPECT_EQ(child->end(), "fine");
}

constexpr std::size_t bytes = 1 << 20;

TEST(processes, share_one_segment_when_they_race_to_create_it)
{
    for (std::size_t round = 0; round < repeated(50, 10); ++round) {
        segment_name const name("-race");
        common_number created;
        common_number constructed;
        struct counter {
            explicit counter(std::atomic<int>& count) { ++count; }
            std::atomic<int> users{0};
        };
        auto all = in_processes(4, [&](std::size_t number) {
            if (number == 0)
                *created += bool(shared_memory::create(name, bytes));
            auto segment = required(shared_memory::open_or_create(name, bytes));
            ++segment.root<counter>(*constructed)->users;
        });
        expect_fine(all);
        EXPECT_EQ(*constructed, 1);
        EXPECT_EQ(required(shared_memory::open(name)).root<counter>(*constructed)->users, 4);
    }
}

TEST(processes, see_only_complete_segments_when_they_race_to_create_and_remove)
{
    segment_name const name("-come-and-go");
    auto all = in_processes(4, [&](std::size_t number) {
        for (std::size_t i = 0; i < rounds(500); ++i) {
            if (number == 0) {
                static_cast<void>(shared_memory::remove(name));
            } else {
                auto segment = required(shared_memory::open_or_create(name, bytes));
                require(segment.bytes() == bytes && segment.root<std::array<int, 3>>() != nullptr,
                        "it is whole");
            }
        }
    });
    expect_fine(all);
}

/// A root whose constructor allocates, and then kills the process while `lives` is above 0.
struct fragile {
    fragile(shared_memory& segment, std::atomic<int>& lives)
        : part(static_cast<int*>(segment.allocate({sizeof(int)})))
    {
        if (lives-- > 0)
            ::raise(SIGKILL);
        *part = 7;
    }
    offset_ptr<int> part;
};

TEST(a_root, is_constructed_by_the_next_caller_after_its_constructor_is_killed)
{
    segment_name const name("-killed");
    common_number lives;
    *lives = 3;
    auto segment = required(shared_memory::create(name, bytes));
    children dying; // stay zombies until the end of the test
    for (int i = 0; i < 3; ++i)
        dying.push_back(std::make_unique<running_child>([&] {
            auto own = required(shared_memory::open(name));
            static_cast<void>(own.root<fragile>(own, *lives));
        }));
    while (*lives > 0)
        ::sched_yield();
    auto* const root = segment.root<fragile>(segment, *lives);
    ASSERT_NE(root, nullptr) << segment.last_failure();
    EXPECT_EQ(*root->part, 7);
    for (auto& child : dying)
        EXPECT_EQ(child->end(), "signal 9");
}

TEST(a_root, makes_callers_wait_while_the_process_that_constructs_it_lives)
{
    segment_name const name("-slow");
    common_number started;
    struct slow {
        explicit slow(std::atomic<int>& count)
        {
            ++count;
            wait_until([] { return is_asleep(::getppid()); }, "the other caller waits");
            value = 7;
        }
        int value = 0;
    };
    auto segment = required(shared_memory::create(name, bytes));
    running_child child([&] {
        auto own = required(shared_memory::open(name));
        require(own.root<slow>(*started)->value == 7, "constructed");
    });
    while (*started == 0)
        ::sched_yield();
    EXPECT_EQ(segment.root<slow>(*started)->value, 7);
    EXPECT_EQ(*started, 1);
    EXPECT_EQ(child.end(), "fine");
}

struct message {
    std::uint64_t sequence;
    std::uint64_t check;
    offset_ptr<message> self;
};

/// A queue of block numbers from one process to another.
struct channel {
    explicit channel(shared_memory& segment) : messages(segment, 1000) {}

    void send(std::uint32_t number)
    {
        std::uint64_t const at = sent.load(std::memory_order_relaxed);
        while (at - received.load(std::memory_order_acquire) == slots.size())
            ::sched_yield();
        slots[at % slots.size()] = number;
        sent.store(at + 1, std::memory_order_release);
    }
    std::uint32_t receive()
    {
        std::uint64_t const at = received.load(std::memory_order_relaxed);
        while (sent.load(std::memory_order_acquire) == at)
            ::sched_yield();
        std::uint32_t const number = slots[at % slots.size()];
        received.store(at + 1, std::memory_order_release);
        return number;
    }

    segment_pool<sizeof(message)> messages;
    std::atomic<std::uint64_t> sent{0};
    std::atomic<std::uint64_t> received{0};
    std::array<std::uint32_t, 256> slots{};
};

TEST(a_producer_and_a_consumer, pass_millions_of_blocks_between_different_addresses)
{
    segment_name const name("-channel");
    std::size_t const count = rounds(3'000'000);
    auto segment = required(shared_memory::create(name, bytes));
    auto* const here = segment.root<channel>(segment);
    running_child producer([&] {
        auto own = required(shared_memory::open(name));
        auto* const there = own.root<channel>(own);
        require(there != here, "it is at another address");
        for (std::size_t i = 0; i < count; ++i) {
            void* block = there->messages.try_allocate();
            while (block == nullptr) {
                ::sched_yield();
                block = there->messages.try_allocate();
            }
            auto* const m = ::new (block) message{i, ~i, nullptr};
            m->self = m;
            there->send(there->messages.number_of(m));
        }
    });
    for (std::size_t i = 0; i < count; ++i) {
        auto* const m = static_cast<message*>(here->messages.at(here->receive()));
        require(m->sequence == i && m->check == ~i && m->self.get() == m,
                "the block arrived unchanged");
        here->messages.deallocate(m);
    }
    EXPECT_EQ(producer.end(), "fine");
    EXPECT_EQ(here->messages.stats().blocks_live, 0U);
}

/// A pool, and for each block the process that holds the block. 0 means no process.
struct market {
    static constexpr std::uint32_t blocks_of_all = 1000;

    explicit market(shared_memory& segment) : blocks(segment, blocks_of_all) {}

    std::atomic<std::uint32_t>& owner_of(void* block) { return owners[blocks.number_of(block)]; }

    /// Allocates and frees until the process is killed. If it is killed after it allocated a block
    /// and before it recorded the block, the block is lost.
    void trade(std::uint32_t me)
    {
        seeded choose(me);
        std::deque<void*> mine;
        for (;; ++steps) {
            void* const block =
                mine.size() < 20 && choose(2) == 0 ? blocks.try_allocate() : nullptr;
            if (block != nullptr) {
                require(owner_of(block).exchange(me) == 0, "no other process has the block");
                mine.push_back(block);
            } else if (!mine.empty()) {
                require(owner_of(mine.front()).exchange(0) == me,
                        "no other process took the block");
                blocks.deallocate(mine.front());
                mine.pop_front();
            }
        }
    }

    void free_what_was_of(std::uint32_t dead)
    {
        blocks.for_each([&](void* block) {
            if (owner_of(block) == dead) {
                owner_of(block) = 0;
                blocks.deallocate(block);
            }
        });
    }

    segment_pool<64> blocks;
    std::atomic<std::uint64_t> steps{0};
    std::array<std::atomic<std::uint32_t>, blocks_of_all> owners{};
};

struct trader {
    trader(std::string_view segment, std::uint32_t number)
        : me(number), child([segment, number] {
              auto own = required(shared_memory::open(segment));
              own.root<market>(own)->trade(number);
          })
    {
    }
    std::uint32_t me;
    running_child child;
};

TEST(processes_killed_at_any_moment, delay_no_other_process_and_leak_at_most_one_block_each)
{
    segment_name const name("-market");
    auto segment = required(shared_memory::create(name, bytes));
    auto* const m = segment.root<market>(segment);
    std::array<std::unique_ptr<trader>, 3> traders;
    std::uint32_t kills = 0;
    seeded choose(7);
    auto const kill = [&](std::unique_ptr<trader>& victim) {
        victim->child.stop();
        EXPECT_EQ(victim->child.end(), "signal 9")
            << "no process saw a block with two owners before";
        m->free_what_was_of(victim->me);
        victim.reset();
        ++kills;
    };
    std::uint32_t number = 0;
    while (kills < rounds(200)) {
        for (auto& t : traders)
            if (t == nullptr)
                t = std::make_unique<trader>(name, ++number);
        std::uint64_t const end = m->steps + choose(10'000);
        wait_until([&] { return m->steps >= end; }, "processes trade until one is killed");
        kill(traders[choose(traders.size())]);
        std::uint64_t const before = m->steps;
        wait_until([&] { return m->steps != before; }, "the others go on after a kill");
    }
    for (auto& t : traders)
        if (t != nullptr)
            kill(t);

    std::set<void*> free;
    while (void* const block = m->blocks.try_allocate()) {
        EXPECT_EQ(m->owner_of(block), 0U);
        EXPECT_TRUE(free.insert(block).second) << "a block is free once";
    }
    EXPECT_LE(market::blocks_of_all - free.size(), kills);
    RecordProperty("lost", static_cast<int>(market::blocks_of_all - free.size()));
}

} // namespace
