#include "chunk.hpp"

#include "../os/memory.hpp"
#include "../os/processor.hpp"
#include "short_lock.hpp"

#include <new>

namespace mallard::plan {

constinit chunk_range all_chunks{0, 0};

namespace {

// The range begins in the middle of free addresses. These addresses are not reserved, so that the
// range does not use up the program's limits on addresses and on locked memory (`ulimit -v`,
// `ulimit -l`). The system places other mappings at one end of the free addresses. If these
// mappings ever reach the range, the range cannot grow any more.
constexpr std::size_t place_min = std::size_t{4} << 20;
/// The number of bytes by which the range grows.
constexpr std::size_t step = std::size_t{1} << 20;
/// The number of free chunks below which a chunk retains its memory when it is freed.
constexpr std::size_t kept_max = 64;

constinit short_lock free_lock; ///< protects the two variables below
constinit chunk* free_chunks = nullptr;
constinit std::byte* fresh = nullptr; ///< the first chunk that was never allocated

/// Free chunks that are not in `free_chunks` yet. A thread that frees a chunk pushes it here, and
/// needs no lock.
constinit std::atomic<chunk*> given{nullptr};
constinit std::atomic<std::size_t> free_count{0};

std::byte* end_of_range() noexcept
{
    return reinterpret_cast<std::byte*>(all_chunks.begin +
                                        all_chunks.bytes.load(std::memory_order_relaxed));
}

std::byte* take_fresh() noexcept
{
    if (fresh == end_of_range()) {
        if (os::map_at(fresh, step) != os::growth::made)
            return nullptr;
        all_chunks.bytes.fetch_add(step, std::memory_order_relaxed);
    }
    std::byte* const at = fresh;
    fresh += chunk_bytes;
    return at;
}

} // namespace

bool place_chunks(std::size_t bytes_max) noexcept
{
    for (std::size_t bytes = bytes_max; bytes >= place_min; bytes /= 2)
        if (std::byte* const at = os::reserve(bytes, step)) {
            os::unmap(at, bytes);
            fresh = at + bytes / 2;
            all_chunks.begin = reinterpret_cast<std::uintptr_t>(fresh);
            return true;
        }
    return false;
}

chunk* take_chunk(chunk_use const& use) noexcept
{
    if (!free_lock.try_take())
        return nullptr;
    if (free_chunks == nullptr)
        free_chunks = given.exchange(nullptr, std::memory_order_acquire);
    void* taken = free_chunks;
    if (taken != nullptr) {
        free_chunks = free_chunks->next;
        free_count.fetch_sub(1, std::memory_order_relaxed);
    } else {
        taken = take_fresh();
    }
    // Write the header before the lock is released, so that the child of a fork sees the header of
    // every chunk that has blocks.
    chunk* const result = taken != nullptr ? ::new (taken) chunk{use} : nullptr;
    free_lock.give();
    return result;
}

void give_chunk(chunk& c) noexcept
{
    // The page of the header retains its memory, because the header links the list of free chunks.
    if (free_count.load(std::memory_order_relaxed) >= kept_max)
        static_cast<void>(os::purge(reinterpret_cast<std::byte*>(&c) + os::page_bytes_max,
                                    chunk_bytes - os::page_bytes_max));
    free_count.fetch_add(1, std::memory_order_relaxed);
    chunk* first = given.load(std::memory_order_relaxed);
    do
        c.next = first;
    while (!given.compare_exchange_weak(first, &c, std::memory_order_release,
                                        std::memory_order_relaxed));
}

// Other threads may free chunks during a fork, because they need no lock for that. The system
// copies the memory page by page, so the child may see such a chunk as the first of `given`, but
// with an old value of `next`. Therefore the child uses only the chunks that were freed before the
// fork.
void lock_chunks() noexcept
{
    if (!free_lock.lock_for_fork())
        return;
    chunk* c = given.exchange(nullptr, std::memory_order_acquire);
    while (c != nullptr) {
        chunk* const after = c->next;
        c->next = free_chunks;
        free_chunks = c;
        c = after;
    }
}

void unlock_chunks(bool is_child) noexcept
{
    if (is_child) {
        given.store(nullptr, std::memory_order_relaxed);
        if (!free_lock.is_mine()) { // another thread may have been changing both
            free_chunks = nullptr;
            fresh = end_of_range();
        }
    }
    free_lock.unlock_after_fork(is_child);
}

} // namespace mallard::plan
