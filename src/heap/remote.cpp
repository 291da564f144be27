// Sends and receives remote frees. A batch holds blocks of one slab that belongs to another cache.
// A batch that was pushed onto the inbox of that cache is a message.
#include "remote.hpp"

#include "cached_slabs.hpp"
#include "registry.hpp"

#include "../os/processor.hpp"

#include <algorithm>

namespace mallard::engine {

namespace {

constexpr std::uint32_t batch_blocks_max = 64;
constexpr std::size_t batch_bytes_max = 4096;

/// The last block of a batch records { offset of the first block in the slab : 48 | count : 16 }.
constexpr unsigned count_bits = 16;

/// The record of a batch. In a block of 16 bytes, this word is also `free_block::next`. Without
/// may_alias, a compiler may assume that a number and a pointer are never in one word, and may
/// write the record before the link, as clang 22 does.
using batch_record [[gnu::may_alias]] = std::uint64_t;

/// Returns the word in which the last block of a batch stores the record of the batch, after the
/// link. In a block of 16 bytes, the record overwrites half of the link, so that a double free of
/// that block is not detected until the message is read.
batch_record& record_of(slab& s, void* last) noexcept
{
    auto* const words = static_cast<batch_record*>(last);
    return words[s.shape().bytes > sizeof(free_block) ? 2 : 1];
}

/// Returns the message that follows the message `last` in an inbox. Each message is identified by
/// its last block.
void* next_message(const void* last, std::uint64_t key) noexcept
{
    std::uintptr_t const next = static_cast<const free_block*>(last)->guarded ^ mark_for(last, key);
    if (next >> os::address_bits != 0) [[unlikely]]
        stop_at_damaged_list(last);
    return reinterpret_cast<void*>(next);
}

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
    to.policy->after_message(to, bytes);
}

[[gnu::noinline]] void send(remote_batch& batch) noexcept
{
    slab& s = *std::exchange(batch.to, nullptr);
    auto const offset = static_cast<std::uint64_t>(static_cast<std::byte*>(batch.first) - s.start);
    record_of(s, batch.last) = (offset << count_bits | batch.count) ^ mark_for(batch.last, the_key);
    push_to_inbox(s, batch.last, std::size_t{batch.count} * s.shape().bytes);
}

/// Splices the blocks of a message into their slab, or forwards the message if the slab now has
/// another owner.
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
    if (s.index >= span_class_first) // a span of a heap; other spans are not sent
        return give_slab(s);
    link(last, s.free, mark);
    s.free = s.start + offset;
    s.used -= count;
    settle(cache, s);
}

/// Begins a batch for the slab `s`. If this element of the outbox contains a batch of another slab,
/// sends that batch first.
[[gnu::noinline]] void begin_batch(remote_batch& batch, slab& s, void* last) noexcept
{
    if (batch.to != nullptr)
        send(batch);
    std::size_t const most = batch_bytes_max / s.shape().bytes;
    batch = {.to = &s, .last = last};
    batch.most = static_cast<std::uint32_t>(std::clamp<std::size_t>(most, 1, batch_blocks_max));
}

} // namespace

void add_to_batch(thread_cache& cache, slab& s, void* block) noexcept
{
    std::uintptr_t const number = reinterpret_cast<std::uintptr_t>(&s) / sizeof(slab);
    remote_batch& batch = cache.outbox[number % remote_batch_count];
    if (batch.to != &s) [[unlikely]]
        begin_batch(batch, s, block);
    link(block, batch.first, mark_for(block, cache.key));
    batch.first = block;
    if (++batch.count == batch.most) [[unlikely]]
        send(batch);
}

void send_batches(thread_cache& cache) noexcept
{
    for (remote_batch& batch : cache.outbox)
        if (batch.to != nullptr)
            send(batch);
}

void send_block(slab& s, void* block) noexcept
{
    link(block, nullptr, mark_for(block, the_key));
    remote_batch batch{.to = &s, .first = block, .last = block, .count = 1};
    send(batch);
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
