// Jobs whose memory is measured instead of their time. The figures are the peak, the memory held
// when all blocks are free, and the memory held a second later.
#include <bench/worker/blocks.hpp>
#include <bench/worker/crews.hpp>
#include <bench/worker/job.hpp>
#include <bench/worker/slots.hpp>

#include <memory>

namespace mallard::bench {
namespace {

constexpr std::size_t mib = 1024 * 1024;

std::size_t total_bytes(task const& t, effort how)
{
    std::size_t const brief = std::min(t.count, std::max<std::size_t>(64, t.count / 8));
    return (how.is_smoke() ? 1 : how.is_brief() ? brief : t.count) * mib;
}

/// Blocks of random sizes, with about `bytes` bytes in total. All their pages are written.
class heap_of_blocks {
public:
    heap_of_blocks(task const& t, std::size_t bytes)
        : least_(t.bytes), range_(std::max(t.most, t.bytes) - t.bytes + 1),
          blocks_(std::max<std::size_t>(1, bytes / (least_ + range_ / 2)))
    {
    }

    void build()
    {
        random_numbers random(5);
        for (void*& block : blocks_) {
            std::size_t const bytes = least_ + random.below(range_);
            block = by_malloc::take(bytes);
            touch_pages(block, bytes);
        }
    }
    void free_all()
    {
        for (void*& block : blocks_)
            by_malloc::give(std::exchange(block, nullptr), 0);
    }

private:
    std::size_t least_;
    std::size_t range_;
    table<void*> blocks_;
};

round_function burst(task const& t, effort how)
{
    auto const all = std::make_shared<heap_of_blocks>(t, total_bytes(t, how));
    return [all](std::span<double>) {
        all->build();
        all->free_all();
    };
}

// Thread 0 allocates blocks and thread 1 frees them. Then thread 0 stays, but is idle.
round_function idle_owner(task const& t, effort how)
{
    struct state {
        state(task const& what, std::size_t bytes) : all(what, bytes), team(2) {}
        heap_of_blocks all;
        crew team;
    };
    auto const s = std::make_shared<state>(t, total_bytes(t, how));
    return [s](std::span<double>) {
        s->team.run([&](std::size_t i) {
            if (i == 0)
                s->all.build();
        });
        s->team.run([&](std::size_t i) {
            if (i == 1)
                s->all.free_all();
        });
    };
}

// Starts threads that each allocate a block and then wait.
round_function idle_threads(task const& t, effort how)
{
    std::size_t const threads = how.is_smoke() ? 8 : t.threads;
    auto const team = std::make_shared<crew>(threads);
    auto const blocks = std::make_shared<table<void*>>(threads);
    return [team, blocks, bytes = t.bytes](std::span<double>) {
        team->run([&](std::size_t i) { touch_byte((*blocks)[i] = by_malloc::take(bytes), i); });
    };
}

// Holds a few blocks at a time, sometimes small and sometimes large, like a program that reads
// files.
round_function swings(task const& t, effort how)
{
    std::size_t const steps = how.is_smoke() ? 2 : how.is_brief() ? 40 : 100;
    return [t, steps](std::span<double>) {
        random_numbers random(9);
        std::array<void*, 4> blocks{};
        for (std::size_t i = 0; i < steps; ++i) {
            void*& block = blocks[i % blocks.size()];
            by_malloc::give(block, 0);
            std::size_t const bytes = t.bytes << random.below(t.count);
            touch_pages(block = by_malloc::take(bytes), bytes);
        }
        for (void* const block : blocks)
            by_malloc::give(block, 0);
    };
}

// Simulates a program that runs for a long time. The sizes of its blocks grow from a few hundred
// bytes to several thousand, and fall again. Some blocks of each phase stay.
round_function fragmentation(task const& t, effort how)
{
    std::size_t const count = how.count(t.count);
    std::size_t const steps = how.is_smoke() ? count : how.is_brief() ? 10 * count : 40 * count;
    return [count, steps](std::span<double>) {
        table<void*> live(count);
        random_numbers random(13);
        for (std::size_t i = 0; i < steps; ++i) {
            // Uses only some of the slots in each phase, so that the blocks in the other slots stay
            // for a long time.
            std::size_t const phase = i * 16 / steps;
            std::size_t const most = std::size_t{128} << (phase % 8);
            void*& block = live[(phase * count / 16 + random.below(count / 2)) % count];
            by_malloc::give(block, 0);
            std::size_t const bytes = 16 + random.below(most);
            touch_pages(block = by_malloc::take(bytes), bytes);
        }
        for (void* const block : live)
            by_malloc::give(block, 0);
    };
}

// Allocates a few thousand small blocks and frees half of them, like a tool that runs for a short
// time.
round_function small(task const& t, effort how)
{
    auto const live = std::make_shared<slots>(how.count(t.count), t.bytes, t.most, 1);
    return [live](std::span<double>) {
        for (std::size_t i = 0; i < 4 * live->size(); ++i)
            live->replace();
    };
}

constexpr job jobs[] = {
    {"rss/burst", burst},
    {"rss/idle-owner", idle_owner},
    {"rss/idle-threads", idle_threads},
    {"rss/swings", swings},
    {"rss/fragmentation", fragmentation},
    {"rss/small", small},
};

} // namespace

std::span<const job> rest_jobs()
{
    return jobs;
}

} // namespace mallard::bench
