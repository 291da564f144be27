// Measures hakozuna's remote matrix and its mix of sizes, with many threads, random sizes, and a
// given share of blocks that another thread frees.
#include <bench/patterns.hpp>
#include <bench/threads/ring.hpp>
#include <bench/worker/blocks.hpp>
#include <bench/worker/crews.hpp>
#include <bench/worker/job.hpp>

#include <sched.h>

#include <cstring>
#include <deque>
#include <mutex>

namespace mallard::bench {
namespace {

constexpr std::size_t receive_every = 32; // steps between two receives

/// Allocates a block of random size, and writes its first and its last byte.
void* fresh(task const& t, random_numbers& random)
{
    std::size_t const bytes = t.bytes + random.below(t.most - t.bytes + 1);
    void* const block = by_malloc::take(bytes);
    auto* const written = static_cast<volatile unsigned char*>(block);
    written[0] = 0xa5;
    written[bytes - 1] = 0x5a;
    return keep(block);
}

std::size_t another(std::size_t thread, std::size_t threads, random_numbers& random)
{
    return threads == 1 ? 0 : (thread + 1 + random.below(threads - 1)) % threads;
}

// The matrix as hakozuna published it. Each thread is started for a number of steps. Blocks are
// sent to other threads through a vector with a lock. The measured allocator supplies the vector's
// memory. The blocks in the vector are freed while the lock is held.
class through_vectors {
public:
    through_vectors(task const& t, effort how)
        : task_(t), steps_(repetitions(t, how)), boxes_(t.threads), met_(t.threads)
    {
    }

    void round(std::span<double> out)
    {
        time_lives(task_.threads, out, [this](std::size_t i) { return work(i); });
        if (out.size() > 4)
            out[4] = 100 * static_cast<double>(sent_) / static_cast<double>(steps_ * task_.threads);
        sent_ = 0;
    }

private:
    struct alignas(128) box {
        void push(void* block)
        {
            std::lock_guard const hold(mutex);
            blocks.push_back(block);
        }
        void free_all()
        {
            std::lock_guard const hold(mutex);
            for (void* const block : blocks)
                by_malloc::give(block, 0);
            blocks.clear();
        }

        std::mutex mutex;
        std::vector<void*> blocks;
    };

    std::size_t work(std::size_t thread)
    {
        random_numbers random(thread + 1);
        std::size_t sent = 0;
        for (std::size_t i = 0; i < steps_; ++i) {
            if (i % receive_every == 0)
                boxes_[thread].free_all();
            void* const block = fresh(task_, random);
            if (random.below(100) < task_.variant) {
                boxes_[another(thread, task_.threads, random)].push(block);
                ++sent;
            } else {
                by_malloc::give(block, 0);
            }
        }
        met_.pass();
        boxes_[thread].free_all();
        met_.pass();
        for (int i = 0; i < 64; ++i)
            by_malloc::give(fresh(task_, random), 0);
        sent_ += sent;
        return steps_;
    }

    task task_;
    std::size_t steps_;
    std::deque<box> boxes_;
    gate met_;
    std::atomic<std::size_t> sent_ = 0;
};

// The corrected matrix, in which the same threads serve all rounds, and run for a fixed time.
// Blocks are sent to other threads through ring buffers of the benchmark. If all are full, a thread
// yields instead of freeing the block itself, so that the share of remote frees is as specified.
//
// Each thread has `count` live blocks, and each step replaces a random one. If `count` is 0, the
// thread frees each block immediately.
class through_rings {
public:
    explicit through_rings(task const& t) : task_(t), rings_(t.threads * t.threads)
    {
        for (std::size_t i = 0; i < t.threads; ++i)
            own_.emplace_back(t.count);
        team_ = std::make_unique<crew>(t.threads);
    }
    through_rings(const through_rings&) = delete;
    through_rings& operator=(const through_rings&) = delete;
    ~through_rings()
    {
        team_.reset();
        for (std::size_t i = 0; i < own_.size(); ++i) {
            receive(i);
            for (void* const block : own_[i])
                by_malloc::give(block, 0);
        }
    }

    void round(effort how, std::span<double> out)
    {
        std::atomic<std::size_t> steps = 0;
        std::atomic<std::size_t> sent = 0;
        time_crew(*team_, how, out, [&](std::size_t i) {
            counts const c = work(i);
            steps += c.steps;
            sent += c.sent;
            return c.steps;
        });
        rounds_ += 1;
        if (out.size() > 4)
            out[4] = 100 * static_cast<double>(sent) / static_cast<double>(steps);
    }

private:
    struct counts {
        std::size_t steps = 0;
        std::size_t sent = 0;
    };

    ring<32>& ring_of(std::size_t from, std::size_t to) { return rings_[to * own_.size() + from]; }

    void receive(std::size_t thread)
    {
        for (std::size_t from = 0; from < own_.size(); ++from)
            ring_of(from, thread).pop_all([](void* block) { by_malloc::give(block, 0); });
    }

    counts work(std::size_t thread)
    {
        random_numbers random(thread + 1 + rounds_ * own_.size());
        counts c;
        repeat(*team_, [&] {
            if (c.steps++ % receive_every == 0)
                receive(thread);
            void* const block = fresh(task_, random);
            if (random.below(100) >= task_.variant)
                keep_or_give(own_[thread], block, random);
            else if (send(block, thread, random))
                ++c.sent;
        });
        return c;
    }

    static void keep_or_give(table<void*>& own, void* block, random_numbers& random)
    {
        if (own.size() != 0)
            block = std::exchange(own[random.below(own.size())], block);
        by_malloc::give(block, 0);
    }

    // Sends the block to the first thread whose ring buffer is not full, beginning with a random
    // thread. Returns false if the time is over.
    bool send(void* block, std::size_t thread, random_numbers& random)
    {
        std::size_t const first = another(thread, own_.size(), random);
        for (;;) {
            for (std::size_t i = 0; i < own_.size(); ++i) {
                std::size_t const to = (first + i) % own_.size();
                if (to != thread && ring_of(thread, to).push(block))
                    return true;
            }
            if (team_->is_over()) {
                by_malloc::give(block, 0);
                return false;
            }
            receive(thread);
            sched_yield();
        }
    }

    task task_;
    table<ring<32>> rings_;
    std::deque<table<void*>> own_;
    std::size_t rounds_ = 0;
    std::unique_ptr<crew> team_;
};

round_function by_vectors(task const& t, effort how)
{
    return
        [m = std::make_shared<through_vectors>(t, how)](std::span<double> out) { m->round(out); };
}

round_function by_rings(task const& t, effort how)
{
    return [m = std::make_shared<through_rings>(t), how](std::span<double> out) {
        m->round(how, out);
    };
}

// The blocks of one thread. A step replaces a random block, and every 64th step grows it by 16
// bytes instead. A step writes the first 64 bytes of the block.
class working_set {
public:
    working_set(task const& t, effort how, std::size_t thread)
        : task_(t), random_(thread + 1), blocks_(how.count(t.count)), bytes_(blocks_.size())
    {
    }
    working_set(const working_set&) = delete;
    working_set& operator=(const working_set&) = delete;
    ~working_set()
    {
        for (void* const block : blocks_)
            by_malloc::give(block, 0);
    }

    void step()
    {
        std::size_t const at = random_.below(blocks_.size());
        if (++steps_ % 64 == 0) {
            blocks_[at] = insist(std::realloc(blocks_[at], bytes_[at] += 16));
        } else {
            by_malloc::give(blocks_[at], 0);
            bytes_[at] = task_.bytes + random_.below(task_.most - task_.bytes + 1);
            blocks_[at] = by_malloc::take(bytes_[at]);
        }
        std::memset(blocks_[at], 1, std::min<std::size_t>(bytes_[at], 64));
        keep(blocks_[at]);
    }

private:
    task task_;
    random_numbers random_;
    std::size_t steps_ = 0;
    table<void*> blocks_;
    table<std::size_t> bytes_;
};

struct working_sets {
    working_sets(task const& t, effort how)
    {
        for (std::size_t i = 0; i < t.threads; ++i)
            of.emplace_back(t, how, i);
    }
    std::deque<working_set> of;
};

// Runs steps on the blocks of each thread. If the task specifies `times`, new threads are started
// for that number of steps. Otherwise the same threads serve all rounds.
round_function mixed(task const& t, effort how)
{
    auto const sets = std::make_shared<working_sets>(t, how);
    if (t.times != 0) {
        return [sets, t, steps = repetitions(t, how)](std::span<double> out) {
            time_lives(t.threads, out, [&](std::size_t i) {
                for (std::size_t step = 0; step < steps; ++step)
                    sets->of[i].step();
                return steps;
            });
        };
    }
    auto const team = std::make_shared<crew>(t.threads);
    return [sets, team, how](std::span<double> out) {
        time_crew(*team, how, out,
                  [&](std::size_t i) { return repeat(*team, [&] { sets->of[i].step(); }); });
    };
}

constexpr job jobs[] = {
    {"matrix/vectors", by_vectors}, {"matrix/rings", by_rings}, {"threads/working-set", mixed}};

} // namespace

std::span<const job> matrix_jobs()
{
    return jobs;
}

} // namespace mallard::bench
