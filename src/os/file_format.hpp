// The offsets and checksums in the file format of spec/file_arena.md. Offsets and lengths are in
// pages.
#pragma once

#include <mallard/persist/file_arena.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace mallard::os {

inline constexpr std::size_t page_words = page_bytes / sizeof(std::uint64_t);
using words = std::array<std::uint64_t, page_words>; // the words of a page

// ---- places ----

inline constexpr std::size_t group_pages = page_words; // one page contains the checksums of a group
inline constexpr std::uint64_t header_pages = 2;

// The file is a sequence of extents of 1, 1, 2, 4, 8, ... groups. An extent contains the checksums
// of its groups, then their data. So the maximum size of a file need not be known when the file is
// created, and a few mappings cover the file, because each extent needs only one.

constexpr std::uint64_t checksums_place(std::uint64_t group) noexcept
{
    return header_pages + group + group_pages * std::bit_floor(group);
}

constexpr std::uint64_t data_place(std::uint64_t page) noexcept
{
    return header_pages + std::bit_ceil(page / group_pages + 1) + page;
}

/// Returns the index of the first page after the extent that contains `page`.
constexpr std::uint64_t extent_end(std::uint64_t page) noexcept
{
    return group_pages * std::bit_ceil(page / group_pages + 1);
}

/// Returns the length of a file with `pages` pages of data.
constexpr std::uint64_t file_end(std::uint64_t pages) noexcept
{
    return pages == 0 ? header_pages : data_place(pages - 1) + 1;
}

static_assert(checksums_place(0) == 2 && data_place(0) == 3 && data_place(511) == 514);
static_assert(checksums_place(1) == 515 && data_place(512) == 516 && data_place(1023) == 1027);
static_assert(checksums_place(2) == 1028 && checksums_place(3) == 1029 && data_place(1024) == 1030);

// ---- checksums ----

inline constexpr std::uint64_t odd_a = 0x9e3779b97f4a7c15;
inline constexpr std::uint64_t odd_b = 0xd6e8feb86659fd93;

/// Mixes the bits of a word. Every step of the checksum is a bijection, so a change of one word
/// always changes the checksum. A change of several words is missed once in 2^64.
constexpr std::uint64_t mixed(std::uint64_t x) noexcept
{
    x = (x ^ x >> 32) * odd_b;
    x = (x ^ x >> 32) * odd_b;
    return x ^ x >> 32;
}

constexpr std::uint64_t stirred(std::uint64_t lane, std::uint64_t word) noexcept
{
    return std::rotl((lane ^ word) * odd_a, 29);
}

/// Returns the checksum of whole pages. The four lanes are independent, so that the processor can
/// multiply in parallel.
inline std::uint64_t checksum(std::uint64_t seed, const void* pages, std::size_t count = 1) noexcept
{
    std::uint64_t lanes[4] = {seed, seed + odd_a, seed + 2 * odd_a, seed + 3 * odd_a};
    auto const data = static_cast<const std::byte*>(pages);
    for (std::size_t at = 0; at < count * page_bytes; at += sizeof lanes) {
        std::uint64_t word[4]; // copied, since the pages contain objects of any type
        std::memcpy(word, data + at, sizeof word);
        lanes[0] = stirred(lanes[0], word[0]);
        lanes[1] = stirred(lanes[1], word[1]);
        lanes[2] = stirred(lanes[2], word[2]);
        lanes[3] = stirred(lanes[3], word[3]);
    }
    std::uint64_t sum = seed;
    for (std::uint64_t const lane : lanes)
        sum = stirred(sum, lane);
    return mixed(sum);
}

/// Returns the contribution of one page to the digest of the file. The digest is a sum, so that the
/// contribution of a page can be subtracted again.
constexpr std::uint64_t digest_part(std::uint64_t page, std::uint64_t page_check) noexcept
{
    return mixed(page_check ^ mixed(page + 1));
}

// ---- headers ----

struct file_header {
    static constexpr std::uint64_t magic_number = 0x6472616c6c616d7f; // "\x7fmallard"
    static constexpr std::uint32_t version_number = 1;

    std::uint64_t magic = magic_number;
    std::uint32_t version = version_number;
    std::uint32_t bytes_of_a_page = page_bytes;
    file_state state{};
    std::uint64_t zero[502] = {};
    std::uint64_t check = 0;

    friend bool operator==(const file_header&, const file_header&) = default;

    std::uint64_t checked() const noexcept
    {
        file_header copy = *this;
        copy.check = 0;
        return checksum(magic_number, &copy);
    }
};
static_assert(sizeof(file_header) == page_bytes && alignof(file_header) == 8);

// ---- the journal ----

/// A set of pages in one group.
struct page_set {
    std::array<std::uint64_t, group_pages / 64> bits{};

    bool has(std::size_t page) const noexcept { return (bits[page / 64] >> page % 64 & 1) != 0; }
    void add(std::size_t page) noexcept { bits[page / 64] |= std::uint64_t{1} << page % 64; }

    std::size_t count() const noexcept
    {
        std::size_t sum = 0;
        for (std::uint64_t const b : bits)
            sum += static_cast<std::size_t>(std::popcount(b));
        return sum;
    }

    /// Calls `f(first, count)` for each run of adjacent pages, until `f` returns false.
    template <class F>
    bool for_each_run(F f) const
    {
        for (std::size_t page = 0; page < group_pages; ++page) {
            std::size_t const first = page;
            while (page < group_pages && has(page))
                ++page;
            if (page != first && !f(first, page - first))
                return false;
        }
        return true;
    }
};

/// The journal record of a group that a commit has changed. The record contains all checksums of
/// the group after the commit. The changed pages follow the record.
struct file_group {
    std::uint64_t first = 0; // first page of the group
    page_set changed{};
    std::uint64_t zero[page_words - 9] = {};
    words checksums{};

    static constexpr std::size_t record_pages = 2; // length of a record without the changed pages
    std::uint64_t pages_in_journal() const noexcept { return record_pages + changed.count(); }

    /// Returns the checksum of this record. `before` is the checksum of the previous record, so
    /// that the checksum of the last record covers all records.
    std::uint64_t checked(std::uint64_t before) const noexcept
    {
        return checksum(before, this, record_pages);
    }
};
static_assert(sizeof(file_group) == file_group::record_pages * page_bytes);

} // namespace mallard::os
