// expected advice: switch
//
// Two threads make messages and two others free them. No allocator that belongs to one thread can
// serve these blocks.
#include "known.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>

struct message {
    std::uint32_t number;
    std::string text;
};
using batch = std::vector<std::unique_ptr<message>>;

/// Passes batches from one thread to another, at most eight at a time.
class channel {
public:
    void put(batch&& full)
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return waiting_.size() < 8; });
        waiting_.push_back(std::move(full));
        changed_.notify_one();
    }

    batch take()
    {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return !waiting_.empty(); });
        batch first = std::move(waiting_.front());
        waiting_.erase(waiting_.begin());
        changed_.notify_one();
        return first;
    }

private:
    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<batch> waiting_;
};

void produce(channel& to, int batches, std::uint32_t seed)
{
    known::random_numbers random(seed);
    for (int i = 0; i < batches; ++i) {
        batch full;
        full.reserve(500);
        for (std::uint32_t n = 0; n < 500; ++n)
            full.push_back(std::make_unique<message>(n, std::string(20 + random.below(200), 'm')));
        to.put(std::move(full));
    }
    to.put({});
}

std::uint64_t consume(channel& from)
{
    std::uint64_t sum = 0;
    for (batch full = from.take(); !full.empty(); full = from.take())
        for (const auto& one : full)
            sum = sum * 31 + one->number + one->text.size();
    return sum;
}

int main(int count, char** arguments)
{
    int const batches = 50 * known::rounds(count, arguments, 60);
    channel channels[2];
    std::uint64_t sums[2] = {};
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < 2; ++i) {
        threads.emplace_back(produce, std::ref(channels[i]), batches, i + 1);
        threads.emplace_back([&channels, &sums, i] { sums[i] = consume(channels[i]); });
    }
    for (auto& thread : threads)
        thread.join();
    known::print(sums[0] * 31 + sums[1]);
}
