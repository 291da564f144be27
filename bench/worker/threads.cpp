// Measures threads that use only their own blocks. In some jobs of this file, blocks outlive the
// threads that allocated them.
#include <bench/worker/blocks.hpp>
#include <bench/worker/crews.hpp>
#include <bench/worker/job.hpp>
#include <bench/worker/slots.hpp>

#include <deque>

namespace mallard::bench {
namespace {

round_function pairs(task const& t, effort how)
{
    auto const team = std::make_shared<crew>(t.threads);
    return [team, bytes = t.bytes, how](std::span<double> out) {
        time_crew(*team, how, out, [&](std::size_t) {
            return repeat(*team, [bytes] {
                void* const block = by_malloc::take(bytes);
                touch_byte(block, 1);
                by_malloc::give(block, bytes);
            });
        });
    };
}

constexpr std::size_t hundred = 100;

void take_and_give_a_hundred(std::size_t bytes)
{
    std::array<void*, hundred> blocks;
    for (void*& block : blocks) {
        block = by_malloc::take(bytes);
        touch_byte(block, 1);
    }
    for (void* const block : blocks)
        by_malloc::give(block, bytes);
}

// Each thread repeatedly allocates a hundred blocks and frees them. `variant` chooses whether an
// allocation and its free count as one step or two.
round_function hundreds(task const& t, effort how)
{
    auto const team = std::make_shared<crew>(t.threads);
    std::size_t const steps = hundred * std::max<std::size_t>(1, t.variant);
    return [team, bytes = t.bytes, steps, how](std::span<double> out) {
        time_crew(*team, how, out, [&](std::size_t) {
            return steps * repeat(*team, [bytes] { take_and_give_a_hundred(bytes); });
        });
    };
}

// Starts threads for a fixed number of repetitions, as in hakmem's report.
round_function hundreds_in_a_life(task const& t, effort how)
{
    std::size_t const times = repetitions(t, how);
    return [t, times](std::span<double> out) {
        time_lives(t.threads, out, [&](std::size_t) {
            for (std::size_t i = 0; i < times; ++i)
                take_and_give_a_hundred(t.bytes);
            return times * hundred * std::max<std::size_t>(1, t.variant);
        });
    };
}

/// A group of threads, and an array of blocks for each of them.
struct many_slots {
    many_slots(task const& t, effort how)
    {
        for (std::size_t i = 0; i < t.threads; ++i)
            of.emplace_back(how.count(t.count), t.bytes, t.most, i + 1);
        team = std::make_unique<crew>(t.threads);
    }
    ~many_slots() { team.reset(); }

    std::deque<slots> of;
    std::unique_ptr<crew> team;
};

round_function replace(task const& t, effort how)
{
    auto const all = std::make_shared<many_slots>(t, how);
    return [all, how](std::span<double> out) {
        time_crew(*all->team, how, out,
                  [&](std::size_t i) { return repeat(*all->team, [&] { all->of[i].replace(); }); });
    };
}

// A thread passes its blocks to a successor and exits, as in the benchmark larson.
round_function larson(task const& t, effort how)
{
    auto const all = std::make_shared<many_slots>(t, how);
    return [all, ns = window_ns(t, how), life = how.count(20'000)](std::span<double> out) {
        time_crew(*all->team, ns, out, [&](std::size_t i) {
            std::size_t done = 0;
            for (; done == 0 || !all->team->is_over(); done += life) {
                std::thread([&] {
                    for (std::size_t step = 0; step < life; ++step)
                        all->of[i].replace();
                }).join();
            }
            return done;
        });
    };
}

constexpr std::size_t life_blocks = 1000; // blocks of a short thread
constexpr std::size_t left_every = 10;    // one block in 10 is left to other threads

/// Blocks that threads leave behind for later threads.
class heirlooms {
public:
    explicit heirlooms(std::size_t threads)
        : left_(threads * life_blocks / left_every), team_(std::make_unique<crew>(threads))
    {
    }
    heirlooms(const heirlooms&) = delete;
    heirlooms& operator=(const heirlooms&) = delete;
    ~heirlooms()
    {
        team_.reset();
        for (void* const block : left_)
            by_malloc::give(block, 0);
    }

    void round(std::size_t lives, std::span<double> out)
    {
        std::atomic<std::size_t> born = 0;
        time_pass(*team_, out, [&](std::size_t) {
            std::size_t done = 0;
            for (std::size_t number = 0; (number = born.fetch_add(1)) < lives; ++done)
                std::thread([this, number] { live(number); }).join();
            return done * life_blocks;
        });
    }

private:
    void live(std::size_t number)
    {
        std::array<void*, life_blocks> taken;
        random_numbers random(number);
        for (void*& block : taken) {
            block = by_malloc::take(16 + random.below(240));
            touch_byte(block, number);
        }
        for (std::size_t i = 0; i < taken.size(); ++i) {
            void* block = taken[i];
            if (i % left_every == 0)
                block = std::atomic_ref(left_[random.below(left_.size())]).exchange(block);
            by_malloc::give(block, 0);
        }
    }

    table<void*> left_;
    std::unique_ptr<crew> team_; // each thread starts short threads in sequence
};

round_function churn(task const& t, effort how)
{
    std::size_t const lives = how.is_smoke() ? 2 * t.threads : how.is_brief() ? 100 : 400;
    return [left = std::make_shared<heirlooms>(t.threads), lives](std::span<double> out) {
        left->round(lives, out);
    };
}

constexpr job jobs[] = {
    {"threads/pair", pairs},
    {"threads/hundreds", hundreds},
    {"threads/hundreds/lives", hundreds_in_a_life},
    {"threads/replace", replace},
    {"threads/larson", larson},
    {"threads/churn", churn},
};

} // namespace

std::span<const job> thread_jobs()
{
    return jobs;
}

} // namespace mallard::bench
