// Parcels, letters and inboxes.
#include "remote.hpp"

#include "misuse.hpp"
#include "park.hpp"

#include <utility>

namespace mallard::engine {
namespace {

constexpr std::uint32_t parcel_blocks_max = 64;
constexpr std::size_t parcel_bytes_max = 4096;

/// What the last block says in place of its mark: { offset of the first : 48 | count : 16 }.
constexpr unsigned count_bits = 16;

constexpr std::size_t bytes_a_visit = std::size_t{1} << 20;

void post(slab& s, void* last, std::size_t bytes) noexcept
{
    front& to = *s.owner.load(std::memory_order_acquire);
    std::atomic<void*>& inbox = to.inbox;
    std::uint64_t const mark = mark_for(last, the_key);
    void* before = inbox.load(std::memory_order_relaxed);
    do
        as_free(last).link = reinterpret_cast<std::uintptr_t>(before) ^ mark;
    while (!inbox.compare_exchange_weak(before, last, std::memory_order_release,
                                        std::memory_order_relaxed));
    // Counts may get lost where several send at once; it is enough to come by now and then.
    std::size_t const waiting = to.waiting.load(std::memory_order_relaxed);
    to.waiting.store(waiting + bytes, std::memory_order_relaxed);
    if (waiting / bytes_a_visit != (waiting + bytes) / bytes_a_visit) [[unlikely]]
        visit_if_idle(to);
}

void send(parcel& p) noexcept
{
    slab& s = *std::exchange(p.to, nullptr);
    auto const offset = static_cast<std::uint64_t>(static_cast<std::byte*>(p.first) - s.start);
    as_free(p.last).mark = (offset << count_bits | p.count) ^ mark_for(p.last, the_key);
    post(s, p.last, std::size_t{p.count} * s.shape().bytes);
}

/// Into its slab; or on to whoever has that by now.
void splice(front& f, void* last) noexcept
{
    slab& s = slab_of(last);
    if (s.owner.load(std::memory_order_relaxed) != &f) [[unlikely]]
        return post(s, last, 0);
    std::uint64_t const mark = mark_for(last, f.key);
    std::uint64_t const record = as_free(last).mark ^ mark;
    std::uint64_t const offset = record >> count_bits;
    auto const count = static_cast<std::uint32_t>(record & ((1u << count_bits) - 1));
    if (offset >= std::size_t{s.granules} * granule_bytes || !s.shape().begins(offset) ||
        count > s.used) [[unlikely]]
        stop_at_damaged_list(last);
    link(last, s.free, mark);
    s.free = s.start + offset;
    s.used -= count;
    settle(f, s);
}

} // namespace

void collect(front& f, slab& s, void* block) noexcept
{
    std::size_t const place = reinterpret_cast<std::uintptr_t>(s.start) / granule_bytes % parcels;
    parcel& p = f.outbox[place];
    if (p.to != &s) {
        if (p.to != nullptr)
            send(p);
        p = {.to = &s, .last = block};
    }
    link(block, p.first, mark_for(block, f.key));
    p.first = block;
    p.count += 1;
    if (p.count == parcel_blocks_max || p.count * s.shape().bytes >= parcel_bytes_max)
        send(p);
}

void send_all(front& f) noexcept
{
    for (parcel& p : f.outbox)
        if (p.to != nullptr)
            send(p);
}

void send_one(slab& s, void* block) noexcept
{
    parcel p{.to = &s, .first = block, .last = block, .count = 1};
    send(p);
}

void read_letters(front& f, std::size_t letters_max) noexcept
{
    if (f.letters == nullptr) {
        if (f.inbox.load(std::memory_order_relaxed) == nullptr)
            return;
        f.letters = f.inbox.exchange(nullptr, std::memory_order_acquire);
        f.waiting.store(0, std::memory_order_relaxed);
    }
    for (; f.letters != nullptr && letters_max != 0; --letters_max) {
        void* const last = f.letters;
        f.letters = next_of(last, f.key);
        splice(f, last);
    }
}

} // namespace mallard::engine
