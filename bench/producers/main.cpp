// mallard-bench-producers THREADS STEPS is a program in which half of the threads make messages,
// and the other half reads and frees them. Together the producers make STEPS messages. A message
// has a block for itself and a block of 16 to 1024 bytes for its text. Each producer has a queue to
// one consumer.
//
// The number of allocations does not depend on the order in which the threads run.
#include <bench/barrier.hpp>
#include <bench/patterns.hpp>
#include <bench/threads/queue.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace {

using namespace mallard::bench;

struct message {
    std::size_t bytes;
    void* text;
};

std::atomic<std::size_t> bytes_read = 0;

message* make(random_numbers& random)
{
    auto* const made = static_cast<message*>(std::malloc(sizeof(message)));
    made->bytes = 16 + random.below(1009);
    made->text = std::malloc(made->bytes);
    touch(made->text, made->bytes);
    return made;
}

void produce(batch_queue& queue, std::size_t seed, std::size_t steps)
{
    random_numbers random(seed);
    batch_queue::batch batch{};
    std::size_t filled = 0;
    for (std::size_t i = 0; i < steps; ++i) {
        batch[filled++] = make(random);
        if (filled == batch.size() || i + 1 == steps) {
            queue.push(batch);
            batch.fill(nullptr);
            filled = 0;
        }
    }
    queue.leave();
}

void consume(batch_queue& queue)
{
    std::size_t bytes = 0;
    for (batch_queue::batch batch; queue.pop(batch);) {
        for (void* const block : batch) {
            if (block == nullptr)
                break;
            auto* const got = static_cast<message*>(block);
            bytes += got->bytes;
            std::free(got->text);
            std::free(got);
        }
    }
    bytes_read += bytes;
}

} // namespace

int main(int argc, char** argv)
{
    std::size_t const pairs = argc == 3 ? std::strtoul(argv[1], nullptr, 10) / 2 : 0;
    std::size_t const steps = pairs == 0 ? 0 : std::strtoul(argv[2], nullptr, 10) / pairs;
    if (steps == 0) {
        std::fputs("mallard-bench-producers: two numbers are needed, of threads and of steps\n"
                   "  nothing was done\n"
                   "  help: `mallard-bench-producers 2 1000000`\n",
                   stderr);
        return 2;
    }
    std::vector<std::unique_ptr<batch_queue>> queues;
    std::vector<std::thread> all;
    for (std::size_t i = 0; i < pairs; ++i) {
        batch_queue& queue = *queues.emplace_back(std::make_unique<batch_queue>());
        queue.open(1);
        all.emplace_back(produce, std::ref(queue), i + 1, steps);
        all.emplace_back(consume, std::ref(queue));
    }
    for (std::thread& t : all)
        t.join();
    std::printf("%zu messages, %zu bytes\n", pairs * steps, bytes_read.load());
}
