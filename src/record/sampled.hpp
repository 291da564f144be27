// Stores the addresses of the sampled blocks in use. With sampling, only the frees of these blocks
// are recorded.
#pragma once

#include "../os/processor.hpp"
#include "thread.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mallard::record {

/// A set of addresses, with one bit for each 8 bytes of the address space. The bits are in arrays
/// (leaves), each of which is mapped when its first address is inserted. The set needs no lock,
/// because a block has one owner, so no two threads insert or remove the same address at the same
/// time.
class sampled_blocks {
public:
    /// Adds an address. Returns false if there is no memory for the set.
    bool insert(const void* block) noexcept;

    /// Removes an address, and returns whether the set contained the address.
    bool remove(const void* block) noexcept
    {
        word* const in = find(block);
        if (in == nullptr || (in->load(std::memory_order_relaxed) & bit_of(block)) == 0)
            return false;
        in->fetch_and(~bit_of(block), std::memory_order_relaxed);
        return true;
    }

private:
    using word = std::atomic<std::uint64_t>;
    using leaf = std::atomic<word*>;

    static constexpr unsigned leaf_bits = 26; ///< a leaf has the bits of 64 MiB of address space
    static constexpr std::size_t leaves = std::size_t{1} << (os::address_bits - leaf_bits);
    static constexpr std::size_t leaf_words = (std::size_t{1} << leaf_bits) / 8 / 64;

    static std::uint64_t bit_of(const void* block) noexcept
    {
        return std::uint64_t{1} << (reinterpret_cast<std::uintptr_t>(block) / 8 % 64);
    }
    static std::size_t word_of(const void* block) noexcept
    {
        return reinterpret_cast<std::uintptr_t>(block) / 8 / 64 % leaf_words;
    }
    word* find(const void* block) const noexcept
    {
        auto const number = reinterpret_cast<std::uintptr_t>(block) >> leaf_bits;
        leaf* const root = root_.load(std::memory_order_acquire);
        if (root == nullptr || number >= leaves)
            return nullptr;
        word* const words = root[number].load(std::memory_order_acquire);
        return words == nullptr ? nullptr : words + word_of(block);
    }

    std::atomic<leaf*> root_{nullptr};
};

extern constinit sampled_blocks sampled;

/// Counts the bytes of an allocation, and returns whether sampling chooses one of these bytes.
bool is_chosen(thread_state& t, std::size_t bytes) noexcept;

/// Returns whether the allocation of a block is to be recorded. With sampling, adds such a block to
/// the set `sampled`.
[[gnu::always_inline]] inline bool is_wanted(thread_state& t, const void* block,
                                             std::size_t bytes) noexcept
{
    if (!the.samples) [[likely]]
        return true;
    return is_chosen(t, bytes) && (block == nullptr || sampled.insert(block));
}

/// Returns whether the free of a block is to be recorded. With sampling, removes the block from the
/// set `sampled`.
[[gnu::always_inline]] inline bool is_known(const void* block) noexcept
{
    return !the.samples || sampled.remove(block);
}

} // namespace mallard::record
