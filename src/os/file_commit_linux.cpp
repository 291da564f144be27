// Commits memory to the file in steps. Each step is on the disk before the next begins, except that
// the last two steps do not wait for the disk.
//
//     prepare   write new pages at the end of the file, and changed pages to a journal after them
//     publish   write the first header: from here on the commit survives a crash
//     apply     copy the pages of the journal to their places
//     settle    write the second header: from here on the journal is not needed
//     let go    drop the copies in memory, and the journal
#include "file_store_linux.hpp"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace mallard::os {
namespace {

const char* why_not_written(int error) noexcept
{
    switch (error) {
    case ENOSPC:
        return "the disk is full: make room and commit again";
    case EDQUOT:
        return "the quota on this disk is used up: make room and commit again";
    case EFBIG:
        return "the file may not grow further: see `ulimit -f`, and commit again";
    default:
        return "the disk reports an error: see `dmesg`, and commit again";
    }
}

/// Finds the written pages of a private mapping in /proc/self/pagemap. Written pages are anonymous,
/// whether they are in memory or swapped out.
class page_map {
public:
    page_map() noexcept = default;
    page_map(const page_map&) = delete;
    page_map& operator=(const page_map&) = delete;
    ~page_map()
    {
        if (file_ >= 0)
            ::close(file_);
    }

    /// Adds the written pages to `found`. Returns false if the system has no pagemap.
    bool find_written(const std::byte* data, std::size_t count, page_set& found) const noexcept
    {
        constexpr std::uint64_t present = std::uint64_t{1} << 63;
        constexpr std::uint64_t swapped = std::uint64_t{1} << 62;
        constexpr std::uint64_t of_file = std::uint64_t{1} << 61;
        words entry;
        std::size_t const bytes = count * sizeof entry[0];
        auto const at = reinterpret_cast<std::uintptr_t>(data) / page_bytes * sizeof entry[0];
        if (::pread(file_, &entry, bytes, static_cast<off_t>(at)) != static_cast<ssize_t>(bytes))
            return false;
        for (std::size_t page = 0; page < count; ++page)
            if ((entry[page] & (present | swapped)) != 0 && (entry[page] & of_file) == 0)
                found.add(page);
        return true;
    }

private:
    int file_ = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
};

} // namespace

/// Writes either all changes to the file, or no change.
bool file_image::commit() noexcept
{
    if (!is_open())
        return refuse(EBADF, "no file is open: see the error of open()");
    if (!writes())
        return refuse(EROFS, "the file is open for reading only: open with file_access::create");
    if (now_.owner != ::getpid())
        return refuse(EPERM, "the file was opened before a fork: commit in the parent");
    if (!settle())
        return false;
    file_state next = now_.state;
    next.pages = align_up(blocks().used_, page_bytes) / page_bytes;
    if (!prepare(next)) {
        fail(why_not_written(errno));
        cut_off();
        return false;
    }
    if (next.sequence == now_.state.sequence)
        return true;
    now_.state = next;
    now_.step = stage::decided;
    if (settle())
        let_go();
    return now_.step != stage::decided;
}

/// Writes pages to positions that no header refers to yet. If nothing has changed, `next` has the
/// old sequence number afterwards.
bool file_image::prepare(file_state& next) noexcept
{
    file_state const& old = now_.state;
    next.journal_begin = file_end(std::max(old.pages, next.pages));
    next.journal_pages = 0;
    next.journal_check = next.sequence = old.sequence + 1;
    if (next.pages < old.pages) {
        std::uint64_t gone = 0;
        if (!add_to_digest(now_.file, next.pages, old.pages, gone))
            return false;
        next.digest -= gone;
    }
    page_map const map;
    for (std::uint64_t first = 0; first < next.pages; first += group_pages) {
        file_group group{.first = first};
        std::uint64_t const kept = std::min({old.pages, next.pages, first + group_pages});
        std::size_t const count = kept > first ? kept - first : 0;
        if (!map.find_written(page(first), count, group.changed) && !compare(group, count))
            return false;
        if (!store(group, next))
            return false;
    }
    if (next.pages == old.pages && next.journal_pages == 0) {
        next = old;
        return true;
    }
    return sync();
}

/// Finds changed pages by their checksums. Used if the system has no pagemap.
bool file_image::compare(file_group& group, std::size_t count) noexcept
{
    if (count != 0 && !read_checksums(now_.file, group))
        return false;
    for (std::size_t i = 0; i < count; ++i)
        if (checksum(group.first + i, page(group.first + i)) != group.checksums[i])
            group.changed.add(i);
    return true;
}

/// Writes the new pages of a group to their places. If the group has older pages, writes the
/// checksums and the changed pages of the group to the journal.
bool file_image::store(file_group& group, file_state& next) noexcept
{
    std::uint64_t const kept = std::min(now_.state.pages, next.pages);
    std::uint64_t const end = std::min(group.first + group_pages, next.pages);
    std::uint64_t const fresh = std::clamp(kept, group.first, end);
    bool const is_old = group.first < now_.state.pages;
    if (group.changed.count() == 0 && fresh == end)
        return true;
    if (is_old && !read_checksums(now_.file, group))
        return false;
    for (std::uint64_t number = group.first; number < end; ++number) {
        std::size_t const i = number - group.first;
        if (number < fresh && !group.changed.has(i))
            continue;
        if (number < fresh)
            next.digest -= digest_part(number, group.checksums[i]);
        group.checksums[i] = checksum(number, page(number));
        next.digest += digest_part(number, group.checksums[i]);
    }
    if (!write_pages(now_.file, page(fresh), data_place(fresh), end - fresh))
        return false;
    if (is_old)
        return append_record(now_.file, group, page(group.first), next);
    return write_pages(now_.file, &group.checksums, checksums_place(group.first / group_pages));
}

/// Completes a commit whose pages are all in the file, with the steps publish, apply and settle. If
/// a step fails, the next call continues with that step.
bool file_image::settle() noexcept
{
    file_header const header = header_of(now_.state);
    if (now_.step == stage::decided) {
        if (!write_pages(now_.file, &header, 0) || !sync())
            return fail(why_not_written(errno));
        now_.step = stage::published;
    }
    if (now_.step == stage::published) {
        bool const applied =
            now_.state.journal_pages == 0 || (apply_journal(now_.file, now_.state) && sync());
        if (!applied || !write_pages(now_.file, &header, 1))
            return fail(why_not_written(errno));
        now_.step = stage::settled;
    }
    return true;
}

/// Drops the copies of changed pages in memory, since the file contains them now. If a system call
/// fails, the copies stay in memory, and the next commit writes some unchanged pages.
void file_image::let_go() noexcept
{
    for_each_record(now_.file, now_.state, [&](const file_group& group, std::uint64_t) {
        return group.changed.for_each_run([&](std::size_t first, std::size_t count) {
            ::madvise(page(group.first + first), count * page_bytes, MADV_DONTNEED);
            return true;
        });
    });
    std::uint64_t const pages = now_.state.pages;
    // Replace mappings beyond the new end of the file before the file shrinks, because touching
    // these mappings later would raise SIGBUS.
    if (pages < now_.mapped &&
        ::mmap(page(pages), (now_.mapped - pages) * page_bytes, PROT_READ | PROT_WRITE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED)
        now_.mapped = pages;
    map_committed();
    cut_off();
}

/// Truncates the file after the last page. The truncation removes the journal, and pages that were
/// never committed.
void file_image::cut_off() noexcept
{
    auto const bytes = static_cast<off_t>(file_end(now_.state.pages) * page_bytes);
    if (now_.mapped <= now_.state.pages && ::ftruncate(now_.file, bytes) != 0)
        return; // the next commit tries again
}

bool file_image::sync() noexcept
{
    return !now_.options.sync || ::fdatasync(now_.file) == 0;
}

bool file_image::verify() noexcept
{
    if (!is_open())
        return refuse(EBADF, "no file is open: see the error of open()");
    if (now_.step != stage::settled && !settle())
        return false;
    std::uint64_t const wrong = find_damaged(now_.file, 0, now_.state.pages);
    if (wrong == now_.state.pages)
        return true;
    damaged_at_ = data_place(wrong) * page_bytes;
    return refuse(0, "a page of the file is corrupt: damaged_at() returns its place; restore the "
                     "file from a copy");
}

void file_image::reset() noexcept
{
    if (!is_open() || !writes())
        return;
    blocks().used_ = file_blocks::first_offset;
    blocks().root_ = 0;
}

file_statistics file_image::stats() const noexcept
{
    return {.bytes_used = blocks().used_,
            .bytes_committed = now_.state.pages * page_bytes,
            .bytes_max = blocks().limit_,
            .commits = now_.state.sequence};
}

std::byte* file_image::page(std::uint64_t number) const noexcept
{
    return reinterpret_cast<std::byte*>(now_.blocks) + number * page_bytes;
}

bool file_image::fail(const char* why) noexcept
{
    return refuse(errno, why);
}

bool file_image::refuse(int error, const char* why) noexcept
{
    error_ = error;
    failure_ = why;
    return false;
}

} // namespace mallard::os
