// Measures blocks that one thread allocates and another frees, and cache lines that two threads
// use.
#include <bench/patterns.hpp>
#include <bench/threads/queue.hpp>
#include <bench/worker/blocks.hpp>
#include <bench/worker/crews.hpp>
#include <bench/worker/job.hpp>

namespace mallard::bench {
namespace {

// Half of the threads allocate blocks, and the other half frees them, as in the benchmark xmalloc.
template <class Queue>
class stream {
public:
    explicit stream(task const& t) : task_(t), team_(std::make_unique<crew>(t.threads)) {}

    void round(effort how, std::span<double> out)
    {
        queue_.open(producers());
        time_crew(*team_, window_ns(task_, how), out,
                  [this](std::size_t i) { return i < producers() ? produce(i) : consume(); });
    }

private:
    std::size_t producers() const { return task_.threads / 2; }

    std::size_t produce(std::size_t seed)
    {
        random_numbers random(seed);
        std::size_t done = 0;
        typename Queue::batch blocks;
        while (!team_->is_over()) {
            for (void*& block : blocks) {
                block = by_malloc::take(task_.bytes + random.below(task_.most - task_.bytes + 1));
                touch_byte(block, 1);
            }
            queue_.push(blocks);
            done += blocks.size();
        }
        queue_.leave();
        return done;
    }

    // Frees blocks. Returns 0, because a block is counted by the thread that allocates it.
    std::size_t consume()
    {
        typename Queue::batch blocks;
        while (queue_.pop(blocks)) {
            for (void* const block : blocks)
                by_malloc::give(block, 0);
        }
        return 0;
    }

    task task_;
    Queue queue_;
    std::unique_ptr<crew> team_;
};

template <class Queue>
round_function hand_over(task const& t, effort how)
{
    return [s = std::make_shared<stream<Queue>>(t), how](std::span<double> out) {
        s->round(how, out);
    };
}

// One thread allocates ten thousand blocks. Then another thread frees all of them.
round_function relay(task const& t, effort how)
{
    struct state {
        explicit state(std::size_t count) : blocks(count), met(2), team(2) {}
        table<void*> blocks;
        gate met;
        crew team;
    };
    auto const s = std::make_shared<state>(how.count(t.count));
    return [s, bytes = t.bytes](std::span<double> out) {
        time_pass(s->team, out, [&](std::size_t i) -> std::size_t {
            if (i == 0) {
                for (void*& block : s->blocks)
                    touch_byte(block = by_malloc::take(bytes), 1);
            }
            s->met.pass();
            if (i == 0)
                return s->blocks.size();
            for (void* const block : s->blocks)
                by_malloc::give(block, bytes);
            return 0;
        });
    };
}

// Every thread writes a hundred times to a small block, then frees it and writes to a new block, as
// in the benchmark cache-scratch. If two threads have blocks in one cache line, each write waits
// for the line. With `handed`, one thread has allocated the first block of each thread.
round_function scratch(task const& t, effort how)
{
    auto const team = std::make_shared<crew>(t.threads);
    bool const handed = t.variant == 1;
    return [team, bytes = t.bytes, handed, how](std::span<double> out) {
        std::array<void*, 64> first{};
        for (std::size_t i = 0; handed && i < team->size(); ++i)
            first[i] = by_malloc::take(bytes);
        time_crew(*team, how, out, [&](std::size_t i) {
            by_malloc::give(first[i], bytes);
            return repeat(*team, [bytes] {
                void* const block = by_malloc::take(bytes);
                for (std::uint64_t write = 0; write < 100; ++write)
                    touch_byte(block, write);
                by_malloc::give(block, bytes);
            });
        });
    };
}

constexpr job jobs[] = {{"threads/hand-over", hand_over<batch_queue>},
                        {"threads/hand-over/singly", hand_over<queue_of_batches<1, 4096>>},
                        {"threads/relay", relay},
                        {"threads/scratch", scratch}};

} // namespace

std::span<const job> share_jobs()
{
    return jobs;
}

} // namespace mallard::bench
