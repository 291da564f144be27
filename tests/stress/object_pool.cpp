// Objects of one pool that several threads share, watch with weak handles, and pass to each other.
#include "../support/choices.hpp"
#include "../support/threads.hpp"

#include <mallard/object_pool.hpp>
#include <mallard/sync.hpp>

#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr std::size_t workers = 3;
constexpr int alive = 0x5ca1ab1e;

/// An object to which each thread writes its own mark with plain stores. The destructor reads all
/// marks, so ThreadSanitizer checks whether the handles order these accesses.
struct shared_object {
    explicit shared_object(std::atomic<std::size_t>& count) : dead(count) {}
    ~shared_object()
    {
        require(std::exchange(state, 0) == alive, "an object dies once");
        require(std::accumulate(marks.begin(), marks.end(), std::size_t{0}) <= 1'000'000,
                "marks are numbers");
        dead.fetch_add(1, std::memory_order_relaxed);
    }
    void mark(std::size_t number)
    {
        require(state == alive, "an object lives as long as it has a handle");
        marks[number] += 1;
    }

    int state = alive;
    std::array<std::size_t, workers> marks{};
    std::atomic<std::size_t>& dead;
};

template <mallard::sync Threads, check Checks>
struct mode {
    static constexpr growth grow =
        Threads == mallard::sync::lock_free ? growth::none(1 << 22) : growth::fixed(4096);
    using pool = object_pool<shared_object, default_heap,
                             object_pool_options{.counts = counts::shared,
                                                 .chunk = 4096,
                                                 .grow = grow,
                                                 .threads = Threads,
                                                 .checks = Checks}>;
};
using modes =
    ::testing::Types<mode<mallard::sync::mutex, check::off>, mode<sync::lock_free, check::on>,
                     mode<mallard::sync::thread_cached, check::off>,
                     mode<sync::thread_cached, check::on>>;

template <class Mode>
class shared_objects : public ::testing::Test {
protected:
    using pool = typename Mode::pool;
    using arc = typename pool::arc;
    using watcher = typename pool::weak;

    ~shared_objects() override { EXPECT_EQ(objects.stats().blocks_live, 0U); }

    arc make() { return objects.make_arc(dead); }

    /// Makes `count` objects. Each thread gets a handle of each object.
    std::array<std::vector<arc>, workers> handles_for_each_thread(std::size_t count)
    {
        std::array<std::vector<arc>, workers> of;
        for (std::size_t i = 0; i < count; ++i) {
            arc const one = make();
            for (auto& mine : of)
                mine.push_back(one);
        }
        return of;
    }

    std::atomic<std::size_t> dead = 0;
    pool objects;
};
TYPED_TEST_SUITE(shared_objects, modes);

TYPED_TEST(shared_objects, are_destroyed_once_whichever_thread_drops_the_last_handle)
{
    std::size_t const count = rounds(20'000);
    auto of = this->handles_for_each_thread(count);
    in_threads(workers, [&](std::size_t number) {
        seeded choose(number);
        auto& mine = of[number];
        while (!mine.empty()) {
            auto const copy = mine[choose(std::min<std::size_t>(mine.size(), 100))];
            copy->mark(number);
            mine.back()->mark(number);
            mine.pop_back();
        }
    });
    EXPECT_EQ(this->dead, count);
}

TYPED_TEST(shared_objects, cannot_be_locked_by_a_weak_handle_once_the_last_handle_is_dropped)
{
    std::size_t const count = rounds(20'000);
    std::vector<typename TestFixture::arc> owners;
    std::array<std::vector<typename TestFixture::watcher>, workers> watchers;
    for (std::size_t i = 0; i < count; ++i) {
        owners.push_back(this->make());
        for (auto& some : watchers)
            some.push_back(owners.back());
    }
    std::array<std::size_t, workers> found{};
    in_threads(workers, [&](std::size_t number) {
        if (number == 0)
            return owners.clear();
        for (auto& watching : watchers[number]) {
            if (auto const one = watching.lock()) {
                one->mark(number);
                ++found[number];
                EXPECT_FALSE(watching.expired());
            }
            watching.reset(); // this may drop the last handle of the slot
        }
    });
    EXPECT_EQ(this->dead, count);
    EXPECT_EQ(this->objects.stats().blocks_live, count)
        << "the weak handles of thread 0 keep the slots";
    for (auto const& watching : watchers[0])
        EXPECT_FALSE(watching.lock());
}

/// `try_unique` performs no atomic write, yet has to see all writes that other threads made before
/// they dropped their handles.
TYPED_TEST(shared_objects, become_unique_for_one_thread_at_most)
{
    std::size_t const count = rounds(20'000);
    auto of = this->handles_for_each_thread(count);
    std::atomic<std::size_t> boxes = 0;
    in_threads(workers, [&](std::size_t number) {
        for (auto& one : of[number]) {
            one->mark(number);
            if (auto const only = one.try_unique()) {
                require(only->marks[(number + 1) % workers] == 1,
                        "the other threads have dropped their handles");
                ++boxes;
            }
            one.reset();
        }
    });
    EXPECT_LE(boxes, count);
    EXPECT_EQ(this->dead, count);
}

TYPED_TEST(shared_objects, made_by_one_thread_are_destroyed_by_another)
{
    std::array<std::atomic<shared_object*>, 64> between{};
    std::size_t const count = rounds(30'000);
    in_threads(workers, [&](std::size_t number) {
        seeded choose(number);
        for (std::size_t i = 0; i < count; ++i) {
            auto mine = this->objects.make(this->dead);
            mine->mark(number);
            if (auto* const old = between[choose(between.size())].exchange(mine.leak())) {
                auto const others = this->objects.adopt(old);
                others->mark(number);
            }
        }
    });
    for (auto& place : between)
        if (shared_object* const left = place)
            this->objects.destroy(left);
    EXPECT_EQ(this->dead, workers * count);
}

} // namespace
