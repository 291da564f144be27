// Random programs over stacks of adaptors, compared with a model of each adaptor.
#include "../support/choices.hpp"
#include "../support/length.hpp"
#include "../support/model.hpp"
#include "../support/sources.hpp"

#include <mallard/adapt/by_size.hpp>
#include <mallard/adapt/counted.hpp>
#include <mallard/adapt/failing.hpp>
#include <mallard/adapt/fallback.hpp>
#include <mallard/adapt/limited.hpp>
#include <mallard/adapt/synchronized.hpp>
#include <mallard/arena.hpp>
#include <mallard/multipool.hpp>
#include <mallard/pool.hpp>
#include <mallard/sync.hpp>

#include <gtest/gtest.h>

namespace mallard::testing {
namespace {

constexpr budget most{.bytes = 60'000, .blocks = 300};
constexpr failures rule{.first = 5, .count = 2, .every = 31};

/// A type-erased stack of adaptors.
class stack {
public:
    virtual ~stack() = default;
    virtual void* allocate(layout, bool throws) = 0;
    virtual void deallocate(void*, layout) = 0;
    virtual void reset(bool release) = 0;
    virtual call_counts counts() const = 0;
};

template <class A>
class stack_of final : public stack {
public:
    template <class... Args>
    explicit stack_of(Args&&... args) : a_(std::forward<Args>(args)...)
    {
    }

    void* allocate(layout l, bool throws) override
    {
        void* block = nullptr;
        if (throws)
            ends_in_bad_alloc([&] { block = a_.allocate(l); });
        else
            block = a_.try_allocate(l);
        return block;
    }
    void deallocate(void* block, layout l) override { a_.deallocate(block, l); }
    void reset(bool release) override { release ? a_.release() : a_.reset(); }
    call_counts counts() const override { return *snapshot_of(a_).calls; }

private:
    A a_;
};

/// The model of a stack of adaptors: the counts that the stack must report.
class ledger {
public:
    /// Returns whether the budget and the failure rule allow a call.
    bool admits(layout l)
    {
        if (l.bytes > most.bytes - live_bytes() || live_blocks() == most.blocks)
            return false;
        return !rule(l, calls_++);
    }
    void took(layout l)
    {
        now_.allocations += 1;
        now_.bytes_allocated += l.bytes;
        now_.blocks_peak = std::max(now_.blocks_peak, live_blocks());
        now_.bytes_peak = std::max(now_.bytes_peak, live_bytes());
    }
    void gave(layout l) { now_.frees += 1, now_.bytes_freed += l.bytes; }
    void gave_all() { now_.frees = now_.allocations, now_.bytes_freed = now_.bytes_allocated; }
    void failed() { now_.failures += 1; }
    const call_counts& counts() const { return now_; }

private:
    std::size_t live_bytes() const { return now_.bytes_allocated - now_.bytes_freed; }
    std::size_t live_blocks() const { return now_.allocations - now_.frees; }

    call_counts now_;
    std::size_t calls_ = 0;
};

void run(stack& of, failing_source& source, std::size_t seed)
{
    seeded choose(seed);
    model blocks;
    ledger expected;
    for (int step = 0; step < 3000; ++step) {
        if (std::size_t const what = choose(100); what < 55) {
            layout const l(choose(8) == 0 ? choose(8000) : choose(200),
                           std::size_t{1} << choose(6));
            std::size_t const failures = source.failures();
            bool const admitted = expected.admits(l);
            void* const block = of.allocate(l, choose(2) == 0);
            require(block == nullptr || admitted, "the budget and the rule are respected");
            require(block != nullptr || !admitted || source.failures() != failures,
                    "nothing else is refused but what the source does");
            block == nullptr ? expected.failed() : (expected.took(l), blocks.add(block, l));
        } else if (what < 99 && !blocks.empty()) {
            void* const block = blocks[choose(blocks.count())];
            layout const l = blocks.remove(block);
            of.deallocate(block, l);
            expected.gave(l);
        } else if (what == 99 && choose(8) == 0) {
            blocks.clear();
            of.reset(choose(2) == 0);
            expected.gave_all();
        }
        require(of.counts() == expected.counts(), "the counts are those of the model");
    }
    blocks.verify();
}

using below = counted<ref<failing_source>>;
using bounded_below = limited<ref<failing_source>>;
using few = pool<below, pool_options{.block = 64, .grow = {.first = 4096, .limit = 8192}}>;
using pool_first = fallback<few, multipool<ref<failing_source>>>;
using arena_first = by_size<128, arena<below>, multipool<ref<failing_source>>>;

/// Runs random programs over stacks of adaptors. `make(source)` returns the innermost allocator;
/// `Count` is the outermost adaptor.
template <template <class> class Count, class Make>
void run_stacks(Make make)
{
    using base = std::invoke_result_t<Make&, failing_source&>;
    using all = Count<limited<failing<base>>>;
    for (std::size_t seed = 1; seed <= repeated(6, 2); ++seed) {
        doing = "seed " + std::to_string(seed);
        failing_source source;
        source.fail_every(seed % 2 * 5);
        stack_of<all> of(std::in_place, most, std::in_place, rule, std::in_place, make(source));
        run(of, source, seed);
    }
    doing.clear();
}

template <class A>
using none = counted<A>;
template <class A>
using atomic = counted<A, sync::lock_free>;

TEST(random_adaptors, agree_with_a_model_over_a_multipool)
{
    run_stacks<none>([](auto& s) { return multipool<below>(below(std::in_place, s)); });
}

TEST(random_adaptors, agree_with_a_model_over_an_arena)
{
    run_stacks<atomic>([](auto& s) { return arena<below>(below(std::in_place, s)); });
}

TEST(random_adaptors, agree_with_a_model_over_a_pool_on_a_limited_source)
{
    using bounded_pool = pool<bounded_below>;
    run_stacks<none>([](auto& s) {
        return bounded_pool(48, 0, bounded_below(budget{.bytes = 1 << 20}, std::in_place, s));
    });
}

TEST(random_adaptors, agree_with_a_model_over_a_pool_and_a_multipool_behind_it)
{
    run_stacks<none>([](auto& s) {
        return pool_first(few(below(std::in_place, s)), multipool<ref<failing_source>>(ref{s}));
    });
}

TEST(random_adaptors, agree_with_a_model_over_an_arena_and_a_multipool_by_size)
{
    run_stacks<none>([](auto& s) {
        return arena_first(arena<below>(below(std::in_place, s)),
                           multipool<ref<failing_source>>(ref{s}));
    });
}

TEST(random_adaptors, agree_with_a_model_under_a_lock)
{
    failing_source source;
    using inside = counted<limited<failing<multipool<below>>>>;
    stack_of<synchronized<inside>> of(std::in_place, std::in_place, most, std::in_place, rule,
                                      std::in_place, below(std::in_place, source));
    run(of, source, 1);
}

} // namespace
} // namespace mallard::testing
