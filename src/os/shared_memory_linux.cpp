// Shared memory on Linux consists of files in /dev/shm, as with `shm_open`, and of nameless files
// from memfd_create. A file is complete before another process can open it, because O_TMPFILE
// creates the file without a name, and linkat adds the name in one atomic step.
#include <mallard/persist/shared_memory.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mallard {

/// Owns a file descriptor and closes it, unless it was released.
class shared_memory::file {
public:
    explicit file(int number) noexcept : number_(number) {}
    file(const file&) = delete;
    file& operator=(const file&) = delete;
    ~file()
    {
        if (is_open())
            ::close(number_);
    }
    bool is_open() const noexcept { return number_ >= 0; }
    int number() const noexcept { return number_; }
    int release() noexcept { return std::exchange(number_, -1); }

private:
    int number_;
};

namespace {

constexpr std::size_t segment_bytes_max = std::size_t{1} << 47; // a checked_number has 48 bits
constexpr std::size_t segment_align = std::size_t{1} << 21;

constexpr char folder[] = "/dev/shm";
constexpr std::size_t name_max = 255;

constexpr system_error bad_name{
    EINVAL, "a name needs 1 to 255 characters, and no slash except at the start"};
constexpr system_error no_bytes{EINVAL, "a segment needs a size of at least one byte"};
constexpr system_error too_many_bytes{ENOMEM, "the request is larger than any address space"};
constexpr system_error file_limit{
    EFBIG, "the limit of this process on the size of files is reached: see `ulimit -f`"};
constexpr system_error no_memory{
    ENOMEM,
    "the system does not have so much memory for this process: see `free -m` and `ulimit -v`"};
constexpr system_error is_another_file{
    EBADMSG, "this is not a segment of Mallard, or a stray write corrupted its header: remove it"};
constexpr system_error is_another_version{
    EBADMSG,
    "another version of Mallard created this segment, or a stray write corrupted it: let all "
    "processes use one version, and remove it"};
constexpr system_error is_truncated{
    EBADMSG, "the segment was truncated to less than the size in its header: remove it"};

constexpr system_error is_no_descriptor{
    EBADF, "this is not a file descriptor, or too many files are open: see `ulimit -n`"};

/// The path of a segment in /dev/shm. Empty if the name is not valid.
struct path {
    char text[sizeof folder + name_max + 1] = "";

    explicit path(std::string_view name) noexcept
    {
        if (name.starts_with('/'))
            name.remove_prefix(1);
        if (name.empty() || name.size() > name_max || name == "." || name == ".." ||
            name.find('/') != name.npos || name.find('\0') != name.npos)
            return;
        std::snprintf(text, sizeof text, "%s/%.*s", folder, static_cast<int>(name.size()),
                      name.data());
    }
    bool is_valid() const noexcept { return text[0] != '\0'; }
};

/// Returns an explanation of an errno from a file in /dev/shm. The result contains the errno,
/// because callers compare it with EEXIST and ENOENT.
system_error failure_of_file(int error) noexcept
{
    switch (error) {
    case EEXIST:
        return {error, "a segment of this name exists: open it, or remove it first"};
    case ENOENT:
        return {error, "no segment has this name: create it first"};
    case EACCES:
    case EPERM:
        return {error, "the segment belongs to another user, who may create it with another mode"};
    case ELOOP:
    case EISDIR:
    case ENXIO:
        return {error, "the file of this name in /dev/shm is not a segment: choose another name"};
    case EMFILE:
    case ENFILE:
        return {error, "too many files are open: see `ulimit -n`"};
    default:
        return {error, "/dev/shm cannot be used: see `mount` and `ls -ld /dev/shm`"};
    }
}

system_error failure_of_new_file(int error) noexcept
{
    if (error == ENOENT || error == EOPNOTSUPP || error == EROFS)
        return {error, "there is no /dev/shm of type tmpfs, or no /proc: mount them"};
    if (error == EACCES || error == EPERM)
        return {error, "this process may not write to /dev/shm: see `ls -ld /dev/shm`"};
    return failure_of_file(error);
}

/// Allocates the memory of the file now, so that no later access raises SIGBUS for lack of memory.
system_error set_aside(int descriptor, std::size_t bytes) noexcept
{
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    if (bytes > limit.rlim_cur)
        return file_limit; // posix_fallocate would send SIGXFSZ
    int error = EINTR;
    while (error == EINTR)
        error = ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
    if (error == ENOSPC)
        return {error, "/dev/shm is full: see `df /dev/shm`, and remove what nobody uses there"};
    return error == 0 ? system_error{} : system_error{error, no_memory.why};
}

/// Returns whether the system would supply this amount of memory. posix_fallocate on a tmpfs
/// without a size limit would allocate memory until the system kills a process. A shared anonymous
/// mapping succeeds or fails as a whole, so this function tries such a mapping first.
bool may_have(std::size_t bytes) noexcept
{
    void* const tried =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return tried != MAP_FAILED && ::munmap(tried, bytes) == 0;
}

/// Maps a segment at a multiple of 2 MiB, so that aligned blocks are aligned in each process.
void* map(int descriptor, std::size_t bytes) noexcept
{
    std::size_t const room = bytes + segment_align;
    void* const place = ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED)
        return nullptr;
    auto const begin = static_cast<std::byte*>(place);
    std::byte* const data = align_up(begin, segment_align);
    void* const mapped =
        ::mmap(data, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor, 0);
    int const error = errno;
    if (data != begin)
        ::munmap(begin, static_cast<std::size_t>(data - begin));
    ::munmap(data + bytes, static_cast<std::size_t>(begin + segment_align - data));
    if (mapped != MAP_FAILED)
        return mapped;
    ::munmap(data, bytes);
    errno = error;
    return nullptr;
}

system_error failure_of_map(int error) noexcept
{
    if (error == EACCES)
        return {error, "the descriptor is read-only: open the file with O_RDWR"};
    return {error, "there is no address space for the segment, or too many mappings: see "
                   "`ulimit -v` and /proc/sys/vm/max_map_count"};
}

std::uint64_t checksum_of(const segment_header& h) noexcept
{
    return hash_of(h.bytes, hash_of(h.version, hash_of(h.magic, hash_of("segment"))));
}

system_error fault_of(const segment_header& h, std::size_t bytes) noexcept
{
    if (h.magic != segment_header::magic_of_all)
        return is_another_file;
    if (h.version != segment_header::version_of_this)
        return is_another_version;
    if (h.checksum != checksum_of(h))
        return is_another_file;
    if (h.bytes != bytes)
        return is_truncated;
    if (!h.is_offset(h.cursor, bytes))
        return is_another_file;
    return {};
}

} // namespace

shared_memory shared_memory::create(std::string_view name, std::size_t bytes,
                                    unsigned mode) noexcept
{
    path const to(name);
    if (!to.is_valid())
        return shared_memory(bad_name);
    file nameless(::open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, static_cast<mode_t>(mode)));
    if (!nameless.is_open())
        return shared_memory(failure_of_new_file(errno));
    shared_memory made = make(nameless, bytes);
    if (!made)
        return made;
    char from[64];
    std::snprintf(from, sizeof from, "/proc/self/fd/%d", made.descriptor_);
    if (::linkat(AT_FDCWD, from, AT_FDCWD, to.text, AT_SYMLINK_FOLLOW) == 0)
        return made;
    return shared_memory(errno == EEXIST ? failure_of_file(errno) : failure_of_new_file(errno));
}

shared_memory shared_memory::open(std::string_view name) noexcept
{
    path const from(name);
    if (!from.is_valid())
        return shared_memory(bad_name);
    file opened(::open(from.text, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    return opened.is_open() ? find(opened) : shared_memory(failure_of_file(errno));
}

shared_memory shared_memory::open_or_create(std::string_view name, std::size_t bytes,
                                            unsigned mode) noexcept
{
    for (;;) { // repeat, since other processes may create or remove the segment
        shared_memory there = open(name);
        if (there || there.last_error() != ENOENT)
            return there;
        shared_memory made = create(name, bytes, mode);
        if (made || made.last_error() != EEXIST)
            return made;
    }
}

system_error shared_memory::remove(std::string_view name) noexcept
{
    path const gone(name);
    if (!gone.is_valid())
        return bad_name;
    return ::unlink(gone.text) == 0 ? system_error{} : failure_of_file(errno);
}

shared_memory shared_memory::anonymous(std::size_t bytes) noexcept
{
    file nameless(::memfd_create("mallard", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!nameless.is_open())
        return shared_memory(failure_of_file(errno));
    shared_memory made = make(nameless, bytes);
    if (made)
        ::fcntl(made.descriptor_, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    return made;
}

shared_memory shared_memory::attach(int descriptor) noexcept
{
    file own(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
    return own.is_open() ? find(own) : shared_memory(is_no_descriptor);
}

/// Creates a segment in an empty file.
shared_memory shared_memory::make(file& from, std::size_t bytes) noexcept
{
    if (bytes == 0)
        return shared_memory(no_bytes);
    if (bytes > segment_bytes_max)
        return shared_memory(too_many_bytes);
    bytes = align_up(bytes, page_bytes);
    if (!may_have(bytes))
        return shared_memory(no_memory);
    if (system_error const why = set_aside(from.number(), bytes))
        return shared_memory(why);
    void* const data = map(from.number(), bytes);
    if (data == nullptr)
        return shared_memory(failure_of_map(errno));
    auto* const h = ::new (data) segment_header;
    h->magic = segment_header::magic_of_all;
    h->version = segment_header::version_of_this;
    h->bytes = bytes;
    h->checksum = checksum_of(*h);
    h->cursor = checked_number::of(sizeof(segment_header));
    return {from.release(), h, bytes};
}

/// Maps and checks the segment in an existing file.
shared_memory shared_memory::find(file& in) noexcept
{
    struct stat s{};
    if (::fstat(in.number(), &s) != 0 || !S_ISREG(s.st_mode))
        return shared_memory(is_another_file);
    auto const bytes = static_cast<std::size_t>(s.st_size);
    if (bytes == 0 || bytes % page_bytes != 0)
        return shared_memory(is_truncated);
    void* const data = map(in.number(), bytes);
    if (data == nullptr)
        return shared_memory(failure_of_map(errno));
    auto* const h = static_cast<segment_header*>(data);
    if (system_error const why = fault_of(*h, bytes)) {
        ::munmap(data, bytes);
        return shared_memory(why);
    }
    return {in.release(), h, bytes};
}

shared_memory::shared_memory(shared_memory&& other) noexcept
    : header_(std::exchange(other.header_, &os::no_segment)),
      bytes_(std::exchange(other.bytes_, 0)), descriptor_(std::exchange(other.descriptor_, -1)),
      error_(other.error_.exchange(0)), why_(other.why_.exchange(""))
{
}

shared_memory& shared_memory::operator=(shared_memory&& other) noexcept
{
    if (this != &other) {
        std::destroy_at(this);
        std::construct_at(this, std::move(other));
    }
    return *this;
}

shared_memory::~shared_memory()
{
    if (bytes_ == 0)
        return;
    ::munmap(header_, bytes_);
    ::close(descriptor_);
}

statistics shared_memory::stats() const noexcept
{
    if (bytes_ == 0)
        return {};
    std::size_t const used = std::min<std::size_t>(checked_number::in(header_->cursor), bytes_);
    return {.bytes_live = used - sizeof(segment_header),
            .bytes_idle = bytes_ - used,
            .bytes_taken = bytes_,
            .chunks = 1,
            .growths = 1};
}

std::nullptr_t shared_memory::refuse(system_error why) noexcept
{
    error_ = why.error;
    why_ = why.why;
    return nullptr;
}

} // namespace mallard
