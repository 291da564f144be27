// What is done with a file of spec/file_arena.md, whoever has it mapped. False: errno
// says why not.
#pragma once

#include "file_format.hpp"

namespace mallard::os {

bool read_pages(int file, void* to, std::uint64_t place, std::size_t count = 1) noexcept;
bool write_pages(int file, const void* from, std::uint64_t place, std::size_t count = 1) noexcept;

/// Zeros where the file is too short for it.
file_header read_header(int file, std::uint64_t copy) noexcept;
file_header header_of(const file_state& state) noexcept;

/// The first of the pages `from..to` that is not as committed, or cannot be read; else `to`.
std::uint64_t find_damaged(int file, std::uint64_t from, std::uint64_t to) noexcept;

/// Adds what the pages `from..to` have in the digest.
bool add_to_digest(int file, std::uint64_t from, std::uint64_t to, std::uint64_t& digest) noexcept;

/// Of a group that has some.
bool read_checksums(int file, file_group& group) noexcept;

/// Appends a record to the journal; `data` is the first page of the group.
bool append_record(int file, const file_group& group, const std::byte* data,
                   file_state& state) noexcept;

/// Calls `f(group, place)` for each record of the journal, with the place of its first
/// changed page, until one is false.
template <class F>
bool for_each_record(int file, const file_state& state, F f) noexcept
{
    std::uint64_t at = 0;
    while (at < state.journal_pages) {
        file_group group;
        if (!read_pages(file, &group, state.journal_begin + at, file_group::record_pages) ||
            !f(group, state.journal_begin + at + file_group::record_pages))
            return false;
        at += group.pages_in_journal();
    }
    return at == state.journal_pages;
}

/// Whether the journal is as it was when the header was written.
bool journal_is_whole(int file, const file_state& state) noexcept;

/// Copies the pages of the journal to where they belong. Can be repeated at any time
/// before the next commit.
bool apply_journal(int file, const file_state& state) noexcept;

} // namespace mallard::os
