#include "sampled.hpp"

#include "../os/errno_kept_linux.hpp"

#include <mallard/detail/base/sampling.hpp>

#include <sys/mman.h>

namespace mallard::record {

constinit sampled_blocks sampled;

namespace {

/// Returns the array that `at` points to. If `at` is null, maps a new array first. Returns null if
/// there is no memory.
template <class Array>
Array* find_or_map(std::atomic<Array*>& at, std::size_t count) noexcept
{
    if (Array* const before = at.load(std::memory_order_acquire))
        return before;
    os::errno_kept const kept;
    std::size_t const bytes = count * sizeof(Array);
    void* const mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED)
        return nullptr;
    Array* other = nullptr;
    if (at.compare_exchange_strong(other, static_cast<Array*>(mapped), std::memory_order_acq_rel))
        return static_cast<Array*>(mapped);
    ::munmap(mapped, bytes);
    return other;
}

} // namespace

bool is_chosen(thread_state& t, std::size_t bytes) noexcept
{
    t.left -= static_cast<double>(bytes + (bytes == 0)) * the.sample_rate;
    if (t.left >= 0) [[likely]]
        return false;
    t.left = sampling::draw_distance(t.random);
    return true;
}

bool sampled_blocks::insert(const void* block) noexcept
{
    auto const number = reinterpret_cast<std::uintptr_t>(block) >> leaf_bits;
    if (number >= leaves)
        return false;
    leaf* const root = find_or_map(root_, leaves);
    word* const words = root == nullptr ? nullptr : find_or_map(root[number], leaf_words);
    if (words == nullptr)
        return false;
    words[word_of(block)].fetch_or(bit_of(block), std::memory_order_relaxed);
    return true;
}

} // namespace mallard::record
