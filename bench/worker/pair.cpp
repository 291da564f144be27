// Measures the hot path: one block, or a few blocks, that are allocated and freed immediately.
#include <bench/measure.hpp>
#include <bench/table.hpp>
#include <bench/worker/blocks.hpp>
#include <bench/worker/job.hpp>

#include <memory>

namespace mallard::bench {
namespace {

template <class By>
round_function pair(task const& t, effort how)
{
    return [bytes = t.bytes, timed = batch(how)](std::span<double> out) mutable {
        double const ns = timed.ns_of_one([bytes](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) {
                void* const block = By::take(bytes);
                touch_byte(block, i);
                By::give(block, bytes);
            }
        });
        put_ns_and_cycles(out, ns);
    };
}

// A queue of blocks. Each step frees the oldest block and allocates another.
class queue {
public:
    queue(std::size_t length, std::size_t bytes) : bytes_(bytes), blocks_(length)
    {
        for (void*& block : blocks_)
            block = by_malloc::take(bytes);
    }
    queue(queue&&) = default;
    ~queue()
    {
        for (void* const block : blocks_)
            by_malloc::give(block, bytes_);
    }

    void step(std::size_t number)
    {
        by_malloc::give(blocks_[at_], bytes_);
        blocks_[at_] = by_malloc::take(bytes_);
        touch_byte(blocks_[at_], number);
        at_ = at_ + 1 == blocks_.size() ? 0 : at_ + 1;
    }

private:
    std::size_t bytes_;
    std::size_t at_ = 0;
    table<void*> blocks_;
};

round_function fifo(task const& t, effort how)
{
    auto const q = std::make_shared<queue>(t.count, t.bytes);
    return [q, timed = batch(how)](std::span<double> out) mutable {
        put_ns_and_cycles(out, timed.ns_of_one([&](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i)
                q->step(i);
        }));
    };
}

struct node {
    node* next;
    std::uint64_t values[2];
};

// Makes a linked list in one loop and frees it in another, as a std::list does.
void make_and_unmake_list(std::size_t length)
{
    node* first = nullptr;
    for (std::size_t i = 0; i < length; ++i)
        first = keep(new node{first, {i, i}});
    while (first != nullptr) {
        node* const next = first->next;
        delete keep(first);
        first = next;
    }
}

round_function list(task const& t, effort how)
{
    return [length = how.count(t.count), timed = batch(how)](std::span<double> out) mutable {
        double const ns = timed.ns_of_one([length](std::size_t count) {
            for (std::size_t i = 0; i < count; ++i)
                make_and_unmake_list(length);
        });
        put_ns_and_cycles(out, ns / static_cast<double>(length));
    };
}

constexpr job jobs[] = {
    {"pair/malloc", pair<by_malloc>},
    {"pair/calloc", pair<by_calloc>},
    {"pair/new", pair<by_new>},
    {"pair/sized-delete", pair<by_sized_delete>},
    {"pair/aligned-new", pair<by_aligned_new>},
    {"fifo", fifo},
    {"list", list},
};

} // namespace

std::span<const job> pair_jobs()
{
    return jobs;
}

} // namespace mallard::bench
