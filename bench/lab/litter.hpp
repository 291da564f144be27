// Benchmark V of J. Lakos (ACCU 2017): freed blocks of other parts of a program leave gaps in the
// heap. Structures that are built afterwards are therefore spread over many pages.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace mallard::bench::lab {

/// Makes gaps in the heap: allocates 2^16 blocks of 1 to 1,024 bytes, and frees one in every
/// `freed_of`, chosen at random. The destructor frees the rest. (After G. Bleaney's Benchmark V.)
class litter {
public:
    /// Makes the gaps. Makes none and returns an empty value if `freed_of` is 0.
    static std::optional<litter> make(std::size_t freed_of)
    {
        return freed_of == 0 ? std::nullopt : std::optional<litter>(std::in_place, freed_of);
    }

    explicit litter(std::size_t freed_of) : blocks_(std::size_t{1} << 16)
    {
        std::mt19937 random(12345);
        std::uniform_int_distribution<std::size_t> bytes(1, 1024);
        for (void*& block : blocks_)
            block = ::operator new(bytes(random));
        std::ranges::shuffle(blocks_, random);
        std::size_t const freed = blocks_.size() / freed_of;
        for (std::size_t i = 0; i < freed; ++i)
            ::operator delete(blocks_[i]);
        blocks_.erase(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(freed));
    }
    litter(litter const&) = delete;
    litter& operator=(litter const&) = delete;
    ~litter()
    {
        for (void* const block : blocks_)
            ::operator delete(block);
    }

private:
    std::vector<void*> blocks_;
};

/// Computes the fragmentation F of a structure, as defined by Lakos: the share of its pages that
/// would not be needed if its blocks were contiguous.
///
///     F = 1 - (pages that the bytes of all blocks fill) / (pages that any block touches)
///
/// F is 0 for a structure in one chunk, and near 1 when each small block is alone on a page. Gaps
/// count like the blocks of other structures, because both increase the number of pages that a
/// reader of the structure needs.
class page_census {
public:
    static void see(void* self, void const* block, std::size_t bytes)
    {
        static_cast<page_census*>(self)->add(reinterpret_cast<std::uintptr_t>(block), bytes);
    }

    double spread()
    {
        if (bytes_ == 0)
            return 0;
        std::ranges::sort(pages_);
        auto const repeated = std::ranges::unique(pages_);
        double const touched = static_cast<double>(repeated.begin() - pages_.begin());
        double const needed = static_cast<double>((bytes_ + page_bytes - 1) / page_bytes);
        return std::max(0.0, 1 - needed / touched);
    }

private:
    static constexpr std::size_t page_bytes = 4096;

    void add(std::uintptr_t address, std::size_t bytes)
    {
        bytes_ += bytes;
        for (std::uintptr_t page = address / page_bytes; page * page_bytes < address + bytes;
             ++page) {
            if (pages_.empty() || pages_.back() != page)
                pages_.push_back(page);
        }
    }

    std::vector<std::uintptr_t> pages_;
    std::size_t bytes_ = 0;
};

} // namespace mallard::bench::lab
