// Reads and writes files in the format of spec/file_arena.md with system calls, without mapping
// them. If a function returns false, errno contains the reason.
#pragma once

#include "file_format.hpp"

namespace mallard::os {

bool read_pages(int file, void* to, std::uint64_t place, std::size_t count = 1) noexcept;
bool write_pages(int file, const void* from, std::uint64_t place, std::size_t count = 1) noexcept;

/// Reads one of the two copies of the header. `copy` is 0 or 1. If the file is too short, the
/// result is zeroed.
file_header read_header(int file, std::uint64_t copy) noexcept;
file_header header_of(const file_state& state) noexcept;

/// Returns the first page in `from..to` that cannot be read or does not match its checksum, or `to`
/// if there is no such page.
std::uint64_t find_damaged(int file, std::uint64_t from, std::uint64_t to) noexcept;

/// Adds the contributions of the pages `from..to` to the digest.
bool add_to_digest(int file, std::uint64_t from, std::uint64_t to, std::uint64_t& digest) noexcept;

/// Reads the checksums of a group. The file must contain the group.
bool read_checksums(int file, file_group& group) noexcept;

/// Appends a record and its changed pages to the journal. `data` is the group's first page.
bool append_record(int file, const file_group& group, const std::byte* data,
                   file_state& state) noexcept;

/// Calls `f(group, place)` for each record of the journal until a call returns false. `place` is
/// the position of the record's first changed page.
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

/// Returns whether the journal matches the checksum in the header.
bool journal_is_whole(int file, const file_state& state) noexcept;

/// Copies the pages of the journal to their places. May be called repeatedly until the next commit.
bool apply_journal(int file, const file_state& state) noexcept;

} // namespace mallard::os
