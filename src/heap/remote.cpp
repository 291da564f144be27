// Batches, messages and inboxes.
#include "remote.hpp"

#include "misuse.hpp"
#include "threads.hpp"

#include <algorithm>
#include <utility>

namespace mallard::engine {
namespace {

constexpr std::uint32_t batch_blocks_max = 64;
constexpr std::size_t batch_bytes_max = 4096;

/// What the last block says: { offset of the first : 48 | count : 16 }.
constexpr unsigned count_bits = 16;

/// Beside its link; in place of half of that where there is no room, and then it is not known
/// as free on its way.
std::uint64_t& record_of(slab& s, void* last) noexcept
{
    auto* const words = static_cast<std::uint64_t*>(last);
    return words[s.shape().bytes > sizeof(free_block) ? 2 : 1];
}

/// The last block of the next message.
void* next_message(const void* last, std::uint64_t key) noexcept
{
    std::uintptr_t const next = static_cast<const free_block*>(last)->guarded ^ mark_for(last, key);
    if (next >> 47 != 0) [[unlikely]]
        stop_at_damaged_list(last);
    return reinterpret_cast<void*>(next);
}

constexpr std::size_t bytes_a_visit = std::size_t{1} << 20;

void push_to_inbox(slab& s, void* last, std::size_t bytes) noexcept
{
    thread_cache& to = *s.owner.load(std::memory_order_acquire);
    std::atomic<void*>& inbox = to.inbox;
    std::uint64_t const mark = mark_for(last, the_key);
    void* before = inbox.load(std::memory_order_relaxed);
    std::uint64_t const record = record_of(s, last);
    do {
        link(last, before, mark);
        record_of(s, last) = record;
    } while (!inbox.compare_exchange_weak(before, last, std::memory_order_release,
                                          std::memory_order_relaxed));
    if (is_heaps(to.tag)) // what is free there is nobody else's gain
        return;
    // Counts may get lost where several send at once; it is enough to come by now and then.
    std::size_t const waiting = to.waiting.load(std::memory_order_relaxed);
    to.waiting.store(waiting + bytes, std::memory_order_relaxed);
    if (waiting / bytes_a_visit != (waiting + bytes) / bytes_a_visit) [[unlikely]]
        visit_if_idle(to);
}

[[gnu::noinline]] void send(remote_batch& p) noexcept
{
    slab& s = *std::exchange(p.to, nullptr);
    auto const offset = static_cast<std::uint64_t>(static_cast<std::byte*>(p.first) - s.start);
    record_of(s, p.last) = (offset << count_bits | p.count) ^ mark_for(p.last, the_key);
    push_to_inbox(s, p.last, std::size_t{p.count} * s.shape().bytes);
}

/// Into its slab; or on to whoever has that by now.
void splice(thread_cache& cache, void* last) noexcept
{
    slab& s = slab_of(last);
    if (s.owner.load(std::memory_order_relaxed) != &cache) [[unlikely]]
        return push_to_inbox(s, last, 0);
    std::uint64_t const mark = mark_for(last, cache.key);
    std::uint64_t const record = record_of(s, last) ^ mark;
    std::uint64_t const offset = record >> count_bits;
    auto const count = static_cast<std::uint32_t>(record & ((1u << count_bits) - 1));
    if (offset >= std::size_t{s.slices} * slice_bytes || !s.shape().begins(offset) ||
        count > s.used) [[unlikely]]
        stop_at_damaged_list(last);
    if (s.index >= span_class_first) // of a heap: else nobody sends one
        return give_slab(s);
    link(last, s.free, mark);
    s.free = s.start + offset;
    s.used -= count;
    settle(cache, s);
}

} // namespace

namespace {

/// In place of another, which is sent.
[[gnu::noinline]] void begin_batch(remote_batch& p, slab& s, void* last) noexcept
{
    if (p.to != nullptr)
        send(p);
    std::size_t const most = batch_bytes_max / s.shape().bytes;
    p = {.to = &s, .last = last};
    p.most = static_cast<std::uint32_t>(std::clamp<std::size_t>(most, 1, batch_blocks_max));
}

} // namespace

void add_to_batch(thread_cache& cache, slab& s, void* block) noexcept
{
    remote_batch& p =
        cache.outbox[reinterpret_cast<std::uintptr_t>(&s) / sizeof(slab) % remote_batch_count];
    if (p.to != &s) [[unlikely]]
        begin_batch(p, s, block);
    link(block, p.first, mark_for(block, cache.key));
    p.first = block;
    if (++p.count == p.most) [[unlikely]]
        send(p);
}

void send_batches(thread_cache& cache) noexcept
{
    for (remote_batch& p : cache.outbox)
        if (p.to != nullptr)
            send(p);
}

void send_block(slab& s, void* block) noexcept
{
    link(block, nullptr, mark_for(block, the_key));
    remote_batch p{.to = &s, .first = block, .last = block, .count = 1};
    send(p);
}

void read_messages(thread_cache& cache, std::size_t messages_max) noexcept
{
    for (; messages_max != 0; --messages_max) {
        if (cache.messages == nullptr) {
            if (cache.inbox.load(std::memory_order_relaxed) == nullptr)
                return;
            cache.messages = cache.inbox.exchange(nullptr, std::memory_order_acquire);
            cache.waiting.store(0, std::memory_order_relaxed);
        }
        void* const last = cache.messages;
        cache.messages = next_message(last, cache.key);
        splice(cache, last);
    }
}

} // namespace mallard::engine
