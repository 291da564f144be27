// Reads and writes pages, checksums and the journal of a file in the format of spec/file_arena.md.
#include "file_store_linux.hpp"

#include <algorithm>
#include <cerrno>

#include <unistd.h>

namespace mallard::os {
namespace {

// Pages are copied through a buffer on the stack.
constexpr std::size_t buffer_pages = 8;

struct page_buffer {
    std::byte data[buffer_pages * page_bytes];
};

/// Repeats `f(done)`, which reads or writes from the offset `done` on, until all bytes are
/// transferred.
template <class F>
bool move_all(std::size_t bytes, F f) noexcept
{
    for (std::size_t done = 0; done < bytes;) {
        ssize_t const moved = f(done);
        if (moved > 0) {
            done += static_cast<std::size_t>(moved);
        } else if (moved == 0) {
            errno = EIO; // the file is shorter than expected
            return false;
        } else if (errno != EINTR) {
            return false;
        }
    }
    return true;
}

/// Divides `count` pages into parts that fit into the buffer, and calls `f(first page, pages)` for
/// each part.
template <class F>
bool in_pieces(std::uint64_t count, F f) noexcept
{
    for (std::uint64_t done = 0; done < count; done += buffer_pages)
        if (!f(done, std::min<std::size_t>(buffer_pages, count - done)))
            return false;
    return true;
}

bool copy_pages(int file, std::uint64_t from, std::uint64_t to, std::size_t count) noexcept
{
    page_buffer buffer;
    return in_pieces(count, [&](std::uint64_t done, std::size_t some) {
        return read_pages(file, buffer.data, from + done, some) &&
               write_pages(file, buffer.data, to + done, some);
    });
}

/// Returns the index of the first of `count` pages at `place` that does not match its checksum, or
/// `count` if all pages match.
std::size_t find_wrong(int file, std::uint64_t place, std::uint64_t first_page,
                       const std::uint64_t* checksums, std::size_t count) noexcept
{
    page_buffer buffer;
    std::size_t right = 0;
    in_pieces(count, [&](std::uint64_t done, std::size_t some) {
        if (!read_pages(file, buffer.data, place + done, some))
            return false;
        for (std::size_t i = 0; i < some; ++i, ++right)
            if (checksum(first_page + right, buffer.data + i * page_bytes) != checksums[right])
                return false;
        return true;
    });
    return right;
}

} // namespace

bool read_pages(int file, void* to, std::uint64_t place, std::size_t count) noexcept
{
    auto const data = static_cast<std::byte*>(to);
    return move_all(count * page_bytes, [=](std::size_t done) {
        return ::pread(file, data + done, count * page_bytes - done,
                       static_cast<off_t>(place * page_bytes + done));
    });
}

bool write_pages(int file, const void* from, std::uint64_t place, std::size_t count) noexcept
{
    auto const data = static_cast<const std::byte*>(from);
    return move_all(count * page_bytes, [=](std::size_t done) {
        return ::pwrite(file, data + done, count * page_bytes - done,
                        static_cast<off_t>(place * page_bytes + done));
    });
}

file_header read_header(int file, std::uint64_t copy) noexcept
{
    file_header header{.magic = 0, .version = 0, .bytes_of_a_page = 0};
    read_pages(file, &header, copy);
    return header;
}

file_header header_of(const file_state& state) noexcept
{
    file_header header{.state = state};
    header.check = header.checked();
    return header;
}

bool read_checksums(int file, file_group& group) noexcept
{
    return read_pages(file, &group.checksums, checksums_place(group.first / group_pages));
}

/// Calls `f(group, first, end)` for each group with pages in `from..to`.
template <class F>
static bool for_each_group(int file, std::uint64_t from, std::uint64_t to, F f) noexcept
{
    while (from < to) {
        file_group group{.first = from / group_pages * group_pages};
        std::uint64_t const end = std::min(to, group.first + group_pages);
        if (!read_checksums(file, group) || !f(group, from, end))
            return false;
        from = end;
    }
    return true;
}

std::uint64_t find_damaged(int file, std::uint64_t from, std::uint64_t to) noexcept
{
    std::uint64_t right = from;
    for_each_group(
        file, from, to, [&](const file_group& group, std::uint64_t first, std::uint64_t end) {
            right += find_wrong(file, data_place(first), first,
                                group.checksums.data() + (first - group.first), end - first);
            return right == end;
        });
    return right;
}

bool add_to_digest(int file, std::uint64_t from, std::uint64_t to, std::uint64_t& digest) noexcept
{
    return for_each_group(file, from, to,
                          [&](const file_group& group, std::uint64_t first, std::uint64_t end) {
                              for (std::uint64_t page = first; page < end; ++page)
                                  digest += digest_part(page, group.checksums[page - group.first]);
                              return true;
                          });
}

bool append_record(int file, const file_group& group, const std::byte* data,
                   file_state& state) noexcept
{
    std::uint64_t place = state.journal_begin + state.journal_pages;
    state.journal_pages += group.pages_in_journal();
    state.journal_check = group.checked(state.journal_check);
    if (!write_pages(file, &group, place, file_group::record_pages))
        return false;
    place += file_group::record_pages;
    return group.changed.for_each_run([&](std::size_t first, std::size_t count) {
        bool const written = write_pages(file, data + first * page_bytes, place, count);
        place += count;
        return written;
    });
}

bool journal_is_whole(int file, const file_state& state) noexcept
{
    std::uint64_t check = state.sequence;
    auto const is_right = [&](const file_group& group, std::uint64_t place) {
        check = group.checked(check);
        return group.changed.for_each_run([&](std::size_t first, std::size_t count) {
            std::size_t const right =
                find_wrong(file, place, group.first + first, group.checksums.data() + first, count);
            place += count;
            return right == count;
        });
    };
    return for_each_record(file, state, is_right) && check == state.journal_check;
}

bool apply_journal(int file, const file_state& state) noexcept
{
    return for_each_record(file, state, [&](const file_group& group, std::uint64_t place) {
        // Write the data before the checksums. If the process is killed in between, every new
        // checksum belongs to a page that is already written.
        return group.changed.for_each_run([&](std::size_t first, std::size_t count) {
            std::uint64_t const from = std::exchange(place, place + count);
            return copy_pages(file, from, data_place(group.first + first), count);
        }) && write_pages(file, &group.checksums, checksums_place(group.first / group_pages));
    });
}

} // namespace mallard::os
