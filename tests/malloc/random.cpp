// Random programs with several threads that call every function of the malloc family.
#include "../support/choices.hpp"
#include "../support/threads.hpp"
#include "support.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

namespace {

using namespace mallard::testing;

struct block {
    void* start = nullptr;
    std::size_t bytes = 0, align = 16;
    unsigned seed = 0;
};

/// One thread of a random program. It owns the blocks in `blocks_`. Sometimes it swaps a block with
/// a block of a table that all threads share.
class actor {
public:
    using table = std::vector<std::atomic<block*>>;

    actor(std::uint64_t seed, table& shared) : choose_(seed), shared_(shared) {}

    void run(std::size_t steps)
    {
        while (steps-- > 0)
            step();
        for (block const& b : blocks_)
            free(b);
    }

    static void free(block const& b)
    {
        verify(b);
        std::free(b.start);
    }

private:
    void step()
    {
        switch (choose_(10)) {
        case 0:
            return swap();
        case 1:
            return reallocate();
        case 2:
        case 3:
        case 4:
            return end_one();
        default:
            return begin_one();
        }
    }

    /// Returns a random size. Each order of magnitude is equally likely.
    std::size_t some_size() { return choose_(std::size_t{1} << choose_(choose_(8) ? 14 : 23)); }

    void begin_one()
    {
        if (blocks_.size() == blocks_max)
            return end_one();
        std::size_t const bytes = some_size();
        block b{nullptr, bytes, 16, ++seeds_};
        switch (choose_(8)) {
        case 0:
            b.start = std::calloc(1 + choose_(3), bytes);
            require(is_clear(b.start, bytes), "calloc clears");
            break;
        case 1:
            b.align = std::size_t{16} << choose_(13);
            b.start = ::memalign(b.align, bytes);
            break;
        case 2:
            b.start = ::operator new(bytes);
            break;
        case 3: {
            member const& by = family[choose_(std::size(family))];
            b.align = by.align;
            b.start = by.allocate(bytes);
            break;
        }
        default:
            b.start = std::malloc(bytes);
        }
        require(b.start != nullptr, "there is memory");
        keep(b);
    }

    void keep(block const& b)
    {
        require(is_aligned(b.start, b.align), "blocks are aligned");
        require(::malloc_usable_size(b.start) >= b.bytes, "blocks have their size");
        fill(b.start, b.bytes, b.seed);
        blocks_.push_back(b);
    }

    block take_one()
    {
        std::swap(blocks_[choose_(blocks_.size())], blocks_.back());
        block const b = blocks_.back();
        blocks_.pop_back();
        return b;
    }

    void end_one()
    {
        if (blocks_.empty())
            return;
        block const b = take_one();
        verify(b);
        if (choose_(4) == 0)
            ::operator delete(b.start);
        else
            std::free(b.start);
    }

    void reallocate()
    {
        if (blocks_.empty())
            return;
        block b = take_one();
        verify(b);
        std::size_t const bytes = 1 + (choose_(2) ? some_size() : b.bytes + choose_(b.bytes + 100));
        b.start = std::realloc(b.start, bytes);
        require(b.start != nullptr, "there is memory");
        require(holds(b.start, std::min<std::size_t>({b.bytes, bytes, 4096}), b.seed),
                "it is kept");
        b.bytes = bytes;
        b.align = 16;
        keep(b);
    }

    void swap()
    {
        if (blocks_.empty())
            return;
        block* const theirs = shared_[choose_(shared_.size())].exchange(new block(take_one()));
        if (theirs == nullptr)
            return;
        verify(*theirs);
        blocks_.push_back(*theirs);
        delete theirs;
    }

    static void verify(block const& b)
    {
        require(holds(b.start, b.bytes, b.seed), "a block keeps its bytes");
    }

    static constexpr std::size_t blocks_max = 300;

    seeded choose_;
    table& shared_;
    std::vector<block> blocks_;
    unsigned seeds_ = 0;
};

/// Runs threads that start, end, and exchange blocks.
void run_program(std::uint64_t seed, std::size_t threads, std::size_t steps)
{
    actor::table shared(256);
    for (std::uint64_t generation = 0; generation < 3; ++generation)
        in_threads(threads, [&](std::size_t number) {
            actor(seed * 1000 + generation * 100 + number, shared).run(steps / 3);
        });
    for (auto const& slot : shared)
        if (block* const last = slot.load(); last != nullptr) {
            actor::free(*last);
            delete last;
        }
}

TEST(random_programs, of_one_thread_find_no_error)
{
    for (std::uint64_t seed = 0; seed < repeated(4); ++seed)
        run_program(seed, 1, 20'000);
}

TEST(random_programs, of_four_threads_find_no_error)
{
    for (std::uint64_t seed = 10; seed < 10 + repeated(4); ++seed)
        run_program(seed, 4, 10'000);
}

TEST(random_programs, of_many_threads_find_no_error)
{
    run_program(20, 40, 2'000);
}

/// Disabled, because it takes many minutes. Run it with --gtest_also_run_disabled_tests.
TEST(random_programs, DISABLED_of_many_minutes_find_no_error)
{
    for (std::uint64_t seed = 100; seed < 160; ++seed)
        run_program(seed, 8, 30'000);
}

} // namespace
