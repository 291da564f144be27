// Opens a file arena. Opens, locks, checks and maps the file.
#include "file_store_linux.hpp"

#include <mallard/pages.hpp> // huge_page_bytes

#include <algorithm>
#include <cerrno>
#include <climits>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

// Defined if the program is built with ThreadSanitizer.
extern "C" [[gnu::weak]] void __tsan_init(); // NOLINT(bugprone-reserved-identifier)

namespace mallard::os {
namespace {

const char* why_not_opened(int error, file_access access) noexcept
{
    switch (error) {
    case ENOENT:
        return access == file_access::create
                   ? "a directory of the path does not exist: create it first"
                   : "the file does not exist: check the path, or open with file_access::create";
    case EACCES:
    case EPERM:
        return access == file_access::read
                   ? "the file may not be read: see its permissions with `ls -l`"
                   : "the file may not be written: see its permissions with `ls -l`, or open with "
                     "file_access::read";
    case EROFS:
        return "the file system is read-only: open with file_access::read";
    case EISDIR:
        return "the path is a directory: name a file in it";
    case ENOSPC:
    case EDQUOT:
        return "the disk is full: make room for the new file";
    default:
        return "the system cannot open the file: `man 2 open` explains last_error()";
    }
}

constexpr const char* no_arena = "the file is not a Mallard arena: check the path";
constexpr const char* damaged_header =
    "both headers of the file are corrupt, or its creation was interrupted: restore or delete it";
constexpr const char* damaged = "the file is corrupt: restore it from a copy";

constexpr const char* no_place =
    "no address space is left for the file: lower max_bytes, see `ulimit -v`";
constexpr const char* place_is_taken = "another mapping is at the address of this file: open it "
                                       "before others, lower max_bytes, or set "
                                       "relocate if it has no pointers";

/// Returns the reason why the header cannot be used, or null if the header is usable.
const char* fault_of(const file_header& header) noexcept
{
    if (header.magic == __builtin_bswap64(file_header::magic_number))
        return "the file was created on a machine with the other byte order: create it again here";
    if (header.magic != file_header::magic_number)
        return no_arena;
    if (header.version != file_header::version_number)
        return "the file has another version of the format: open it with the Mallard that created "
               "it";
    if (header.bytes_of_a_page != page_bytes)
        return "the file was created for another page size: create it again here";
    return header.check == header.checked() ? nullptr : damaged_header;
}

/// Writes the directory of a new file to the disk, so that the file still has its name after a
/// crash. Ignores failures, because the system then writes the directory later.
void sync_folder_of(const char* path) noexcept
{
    char folder[PATH_MAX] = ".";
    std::string_view const name = path;
    std::size_t const slash = name.rfind('/');
    if (slash < sizeof folder - 1) { // the name has a slash (otherwise `slash` is npos)
        name.copy(folder, slash + 1);
        folder[slash + 1] = '\0';
    }
    int const file = ::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file >= 0) {
        ::fsync(file);
        ::close(file);
    }
}

/// Advises the system to read the checksums ahead. In each extent, the checksums are contiguous.
void expect_checksums(int file, std::uint64_t pages) noexcept
{
    for (std::uint64_t page = 0; page < pages; page = extent_end(page)) {
        std::uint64_t const end = std::min(pages, extent_end(page));
        std::uint64_t const groups = (end - page + group_pages - 1) / group_pages;
        ::posix_fadvise(file, static_cast<off_t>(checksums_place(page / group_pages) * page_bytes),
                        static_cast<off_t>(groups * page_bytes), POSIX_FADV_WILLNEED);
    }
}

constexpr int access_to_memory = PROT_READ | PROT_WRITE;

// With MAP_NORESERVE, the system does not charge address space that may never be used.
constexpr int reserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

std::byte* map_range(std::uintptr_t where, std::size_t bytes, int flags) noexcept
{
    void* const range =
        ::mmap(reinterpret_cast<void*>(where), bytes, access_to_memory, reserved | flags, -1, 0);
    return range == MAP_FAILED ? nullptr : static_cast<std::byte*>(range);
}

/// The address space in which new files are mapped.
struct address_range {
    std::uintptr_t begin;
    std::uintptr_t gibibytes;
};

/// A range of 48 TiB that neither Linux on x86-64 nor AddressSanitizer uses. The range is above the
/// program's own low mappings, and below the libraries and the stack.
constexpr address_range of_files{0x2000'0000'0000, 0xc000};

/// The range in which ThreadSanitizer on x86-64 lets a program choose the address of a mapping. The
/// first 64 GiB of that range are left out, because a program without PIE uses them itself.
constexpr address_range of_files_under_tsan{0x10'0000'0000, 432};

bool has_tsan() noexcept
{
#if defined(__x86_64__)
    return __tsan_init != nullptr;
#else
    return false;
#endif
}

/// Maps at exactly `where`. Returns null if another mapping is in the way. Kernels before 4.17 map
/// at another address in that case, and such a mapping is removed. The `mmap` of ThreadSanitizer
/// replaces an address outside of its range by 0, so such addresses count as used.
std::byte* map_range_at(std::uintptr_t where, std::size_t bytes) noexcept
{
    constexpr address_range allowed = of_files_under_tsan;
    if (has_tsan() && (where - allowed.begin) >> 30 >= allowed.gibibytes) {
        errno = EEXIST;
        return nullptr;
    }
    std::byte* const range = map_range(where, bytes, MAP_FIXED_NOREPLACE);
    if (range == nullptr || reinterpret_cast<std::uintptr_t>(range) == where)
        return range;
    ::munmap(range, bytes);
    errno = EEXIST;
    return nullptr;
}

/// Returns a random address for a new file.
std::uintptr_t unlikely_address() noexcept
{
    constexpr std::uintptr_t gib = std::uintptr_t{1} << 30;
    address_range const range = has_tsan() ? of_files_under_tsan : of_files;
    std::uintptr_t random = 0;
    if (::getrandom(&random, sizeof random, GRND_NONBLOCK) < 0)
        random = static_cast<std::uintptr_t>(::getpid());
    return range.begin + random % range.gibibytes * gib;
}

} // namespace

constinit file_blocks file_image::no_blocks;

file_image::file_image(file_image&& other) noexcept
    : now_(std::exchange(other.now_, {})), error_(std::exchange(other.error_, 0)),
      failure_(std::exchange(other.failure_, "")), damaged_at_(std::exchange(other.damaged_at_, 0))
{
}

file_image& file_image::operator=(file_image&& other) noexcept
{
    file_image taken(std::move(other)); // moved out first, since `other` may be this object
    std::swap(now_, taken.now_);
    std::swap(error_, taken.error_);
    std::swap(failure_, taken.failure_);
    std::swap(damaged_at_, taken.damaged_at_);
    return *this;
}

bool file_image::open(const char* path, const file_options& options) noexcept
{
    close();
    now_.options = options;
    now_.owner = ::getpid();
    if (open_file(path) && load() && place() && map_committed() && enter_blocks() &&
        write_missing_headers(path) && (!options.verify || verify()))
        return true;
    close();
    return false;
}

void file_image::close() noexcept
{
    if (now_.range != nullptr)
        ::munmap(now_.range, now_.range_bytes);
    if (now_.file >= 0)
        ::close(now_.file);
    now_ = {};
}

bool file_image::open_file(const char* path) noexcept
{
    if (::getpagesize() != page_bytes)
        return refuse(0, "file arenas need pages of 4096 bytes, which this machine does not have");
    file_access const access = now_.options.access;
    int const flags = writes() ? O_RDWR : O_RDONLY;
    int const creates = access == file_access::create ? O_CREAT : 0;
    // Without O_NONBLOCK, opening a named pipe would wait for a process at the other end.
    now_.file = ::open(path, flags | creates | O_CLOEXEC | O_NONBLOCK, 0666);
    if (now_.file < 0)
        return fail(why_not_opened(errno, access));
    struct stat about{};
    if (::fstat(now_.file, &about) != 0 || !S_ISREG(about.st_mode))
        return refuse(EINVAL, "the path is not that of a regular file: use another path");
    if (::flock(now_.file, (writes() ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0)
        return true;
    if (errno != EWOULDBLOCK)
        return fail("this file system cannot lock files: put the file on another file system");
    return fail(
        writes() ? "the file is already open, and a writer needs it exclusively: see `fuser FILE`"
                 : "the file is already open for writing: see `fuser FILE`");
}

/// Completes a commit that a crash interrupted, then checks the file against its header.
bool file_image::load() noexcept
{
    struct stat about{};
    if (::fstat(now_.file, &about) != 0)
        return fail(why_not_opened(errno, now_.options.access));
    if (about.st_size == 0)
        return now_.options.access == file_access::create ||
               refuse(0, "the file is empty: open with file_access::create");
    if (!choose_header())
        return false;
    file_state const& state = now_.state;
    if (static_cast<std::uint64_t>(about.st_size) / page_bytes < file_end(state.pages))
        return refuse(0, "the file is truncated: restore it from a copy");
    if (!recover())
        return false;
    expect_checksums(now_.file, state.pages);
    std::uint64_t digest = 0;
    if (!add_to_digest(now_.file, 0, state.pages, digest))
        return fail("the file cannot be read: see `dmesg`");
    // Check all checksums and the first page. verify() reads the rest.
    std::uint64_t const first = std::min<std::uint64_t>(state.pages, 1);
    return (digest == state.digest && find_damaged(now_.file, 0, first) == first) ||
           refuse(0, damaged);
}

/// Chooses the newer of two valid headers, or the only valid header.
bool file_image::choose_header() noexcept
{
    file_header const first = read_header(now_.file, 0);
    file_header const second = read_header(now_.file, 1);
    const char* const fault = fault_of(first);
    const char* const other_fault = fault_of(second);
    if (fault != nullptr && other_fault != nullptr)
        return refuse(0, fault == no_arena ? other_fault : fault);
    bool const use_second = fault != nullptr || (other_fault == nullptr &&
                                                 second.state.sequence > first.state.sequence);
    now_.state = (use_second ? second : first).state;
    return true;
}

/// Completes an interrupted commit from its journal. After a complete commit both headers are
/// equal, and nothing is left to do. If the headers differ and the journal is corrupt, this
/// function assumes that all pages are in their places already. `load` then verifies the digest.
bool file_image::recover() noexcept
{
    file_state const& state = now_.state;
    if (state.journal_pages == 0 || read_header(now_.file, 0) == read_header(now_.file, 1) ||
        !journal_is_whole(now_.file, state))
        return true;
    if (!writes())
        return refuse(0, "the last commit was interrupted: open the file once for writing");
    if (apply_journal(now_.file, state) && sync())
        return true;
    return fail(
        "the last commit was interrupted, and the disk has no room to complete it: make room");
}

/// Reserves address space. The address is the one at which the file was created, or any address if
/// the file is new or may be relocated.
bool file_image::place() noexcept
{
    // The size of a process's address space. Sums of a few such sizes do not overflow.
    constexpr std::size_t most = std::size_t{1} << 47;
    std::size_t const asked = writes() ? std::min(now_.options.max_bytes, most) : 0;
    std::size_t const least = std::max<std::size_t>(now_.state.pages, 1) * page_bytes;
    std::size_t const bytes = align_up(std::max(asked, least), page_bytes);
    now_.limit = bytes;
    bool const is_new = now_.state.home == 0;
    std::uintptr_t where = is_new ? unlikely_address() : now_.state.home;
    now_.range = map_range_at(where, bytes);
    now_.range_bytes = bytes;
    if (now_.range == nullptr && !is_new && !now_.options.relocate)
        return fail(errno == EEXIST ? place_is_taken : no_place);
    if (now_.range == nullptr) {
        // Map more than needed, and use an aligned part, so that aligned blocks stay aligned.
        now_.range_bytes = bytes + huge_page_bytes;
        now_.range = map_range(0, now_.range_bytes, 0);
        if (now_.range == nullptr)
            return fail(no_place);
        where = reinterpret_cast<std::uintptr_t>(align_up(now_.range, huge_page_bytes));
        now_.relocated = !is_new;
    }
    now_.state.home = is_new ? where : now_.state.home;
    now_.blocks = reinterpret_cast<file_blocks*>(where);
    return true;
}

/// Maps the committed pages, one extent at a time. These mappings replace earlier mappings at the
/// same addresses.
bool file_image::map_committed() noexcept
{
    std::uint64_t const to = now_.state.pages;
    while (now_.mapped < to) {
        std::uint64_t const from = now_.mapped;
        std::uint64_t const end = std::min(to, extent_end(from));
        // MAP_NORESERVE, because few of these pages will ever be copied.
        if (::mmap(page(from), (end - from) * page_bytes, access_to_memory,
                   MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, now_.file,
                   static_cast<off_t>(data_place(from) * page_bytes)) == MAP_FAILED)
            return fail("the file cannot be mapped: see /proc/sys/vm/max_map_count");
        now_.mapped = end;
    }
    return true;
}

/// Prepares the object `file_blocks`, which is at the start of page 0. If the file was opened only
/// for reading, makes the pages read-only, and sets the limit to 0, so that the process cannot
/// allocate.
bool file_image::enter_blocks() noexcept
{
    file_blocks& b = now_.state.pages == 0 ? *std::construct_at(now_.blocks) : *now_.blocks;
    if (now_.state.pages == 0)
        b.used_ = file_blocks::first_offset;
    std::size_t const limit = writes() ? now_.limit : 0;
    if (b.limit_ != limit)
        b.limit_ = limit; // no write if the limit is equal, so that the page is not copied
    return writes() || ::mprotect(now_.range, now_.range_bytes, PROT_READ) == 0 ||
           fail("the file cannot be mapped: see /proc/sys/vm/max_map_count");
}

/// Writes both headers of a new file, or a header that a crash or a bad sector has destroyed.
bool file_image::write_missing_headers(const char* path) noexcept
{
    if (!writes())
        return true;
    file_header const header = header_of(now_.state);
    for (std::uint64_t const copy : {0U, 1U})
        if (read_header(now_.file, copy) != header && !write_pages(now_.file, &header, copy))
            return fail(why_not_opened(errno, now_.options.access));
    cut_off();
    if (now_.state.sequence == 0 && now_.options.sync) {
        if (!sync())
            return fail("the disk reports an error: see `dmesg`");
        sync_folder_of(path);
    }
    return true;
}

} // namespace mallard::os
