#include "stream.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mallard::replay {
namespace {

constexpr unsigned char magic[8] = {0x89, 'M', 'R', 'E', 'P', 'L', 'Y', '\n'};
constexpr const char* make_again = "make the op stream again from its trace: mallard replay NAME";
constexpr std::size_t header_words = offsetof(mallard_replay_header, checksum) / 8;

static_assert(sizeof(mallard_replay_header) == 80 && sizeof(mallard_replay_thread) == 32);
static_assert(sizeof(mallard_replay_target) == 24 && sizeof(mallard_replay_op) == 16);

} // namespace

stream::stream(const char* path) noexcept : path_(path), file_(::open(path, O_RDONLY | O_CLOEXEC))
{
    struct stat of{};
    if (file_ < 0 || ::fstat(file_, &of) != 0)
        fail(status_unreadable, "nothing was replayed", "ls -l FILE", "cannot open %s: %s", path,
             std::strerror(errno));
    if (!S_ISREG(of.st_mode))
        fail(status_unreadable, "nothing was replayed", make_again, "%s is not a file", path);
    auto const bytes = static_cast<std::uint64_t>(of.st_size);
    if (bytes < sizeof header_)
        damaged("the file ends at byte %ju, and a header has 80 bytes", std::uintmax_t{bytes});
    read(&header_, sizeof header_, 0);
    check_header(bytes);
    threads_ = table<mallard_replay_thread>(header_.threads, "the table of threads");
    targets_ = table<mallard_replay_target>(header_.targets, "the table of targets");
    read(threads_.data(), header_.threads * sizeof threads_[0], sizeof header_);
    read(targets_.data(), header_.targets * sizeof targets_[0],
         sizeof header_ + header_.threads * sizeof threads_[0]);
    check_threads(bytes);
    check_targets();
    check_sum(bytes);
}

void stream::read(void* into, std::size_t bytes, std::uint64_t offset) const noexcept
{
    auto* to = static_cast<std::byte*>(into);
    while (bytes != 0) {
        ssize_t const got = ::pread(file_, to, bytes, static_cast<off_t>(offset));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            fail(status_refused, "the replay is not complete", "dmesg", "cannot read %s: %s", path_,
                 std::strerror(errno));
        if (got == 0)
            damaged("the file ends at byte %ju", std::uintmax_t{offset});
        to += got;
        offset += static_cast<std::uint64_t>(got);
        bytes -= static_cast<std::size_t>(got);
    }
}

void stream::damaged(const char* format, ...) const noexcept
{
    va_list arguments;
    va_start(arguments, format); // no va_end, because the process ends
    refuse("", " is not a valid op stream", format, arguments);
}

void stream::lacks_edge(const char* format, ...) const noexcept
{
    va_list arguments;
    va_start(arguments, format);
    refuse("an edge is missing in ", "", format, arguments);
}

void stream::refuse(const char* before, const char* after, const char* format,
                    va_list arguments) const noexcept
{
    char what[384];
    std::vsnprintf(what, sizeof what, format, arguments);
    fail(status_unreadable, "nothing was replayed, and the file is unchanged", make_again,
         "%s%.100s%s: %s", before, path_, after, what);
}

void stream::check_header(std::uint64_t bytes) const noexcept
{
    mallard_replay_header const& h = header_;
    if (std::memcmp(h.magic, magic, sizeof magic) != 0)
        damaged("the first bytes are those of another format");
    if (h.byte_order != mallard_replay_byte_order)
        damaged("another machine, with another byte order, has written the file");
    if (h.version != mallard_replay_version)
        damaged("the format has version %u, and this replayer reads version %u", h.version,
                unsigned{mallard_replay_version});
    if (h.header_bytes != sizeof h || h.op_bytes != sizeof(op) || bytes % 8 != 0)
        damaged("the sizes in the header are invalid");
    if (h.threads == 0 || h.targets == 0 || h.targets > mallard_replay_targets_max)
        damaged("the numbers of threads and targets in the header are %u and %u", h.threads,
                h.targets);
    std::uint64_t const tables =
        sizeof h + h.threads * sizeof threads_[0] + h.targets * sizeof targets_[0];
    if (tables > bytes || h.ops != (bytes - tables) / sizeof(op))
        damaged("the size of the file, %ju bytes, does not fit its header: threads %u, ops %ju",
                std::uintmax_t{bytes}, h.threads, std::uintmax_t{h.ops});
    // `mallard replay`, which writes op streams, uses at most one group of slots for each op. So a
    // corrupt header cannot cause much larger tables than the ops of the file need.
    if (h.slots / mallard_replay_slots_of_op > h.ops || h.blocks_peak > h.ops || h.calls > h.ops)
        damaged("the header has more slots, blocks or calls than its ops can use");
}

void stream::check_threads(std::uint64_t bytes) const noexcept
{
    std::uint64_t const tables = sizeof header_ + header_.threads * sizeof threads_[0] +
                                 header_.targets * sizeof targets_[0];
    std::uint64_t ops = 0;
    for (mallard_replay_thread const& t : threads_) {
        if (t.offset % 8 != 0 || t.offset < tables || t.offset > bytes || t.ops == 0 ||
            t.ops > (bytes - t.offset) / sizeof(op))
            damaged("thread %zu has ops outside of the file",
                    static_cast<std::size_t>(&t - threads_.data()));
        ops += t.ops; // cannot wrap: there are 2^32 threads at most, and a file has 2^63 bytes
        if (ops > header_.ops)
            break;
    }
    if (ops != header_.ops)
        damaged("the ops of the threads are %ju or more, and the header says %ju",
                std::uintmax_t{ops}, std::uintmax_t{header_.ops});
}

void stream::check_targets() const noexcept
{
    for (std::size_t i = 0; i < targets_.count(); ++i) {
        mallard_replay_target const& t = targets_[i];
        bool const is_malloc = t.allocator == mallard_replay_malloc;
        if (is_malloc != (i == 0) || t.allocator > mallard_replay_multipool_over_arena ||
            t.is_shared > 1 || t.rule > rule_max || (t.rule == 0) != (i == 0) ||
            t.first_chunk > std::uint64_t{1} << 40)
            damaged("target %zu has no valid description", i);
    }
}

void stream::check_sum(std::uint64_t bytes) const noexcept
{
    constexpr std::size_t piece = std::size_t{1} << 16;
    table<std::uint64_t> const words(piece / 8, "a piece of the file");
    std::uint64_t sum = 0;
    for (std::uint64_t at = sizeof header_; at < bytes; at += piece) {
        auto const count = static_cast<std::size_t>(bytes - at < piece ? bytes - at : piece);
        read(words.data(), count, at);
        for (std::size_t i = 0; i < count / 8; ++i)
            sum = mallard_replay_mix(sum, words[i]);
    }
    std::uint64_t own[header_words];
    std::memcpy(own, &header_, sizeof own);
    for (std::uint64_t const word : own)
        sum = mallard_replay_mix(sum, word);
    if (sum != header_.checksum)
        damaged("the checksum does not match");
}

window windows::take() noexcept
{
    std::lock_guard const held(lock_);
    if (idle_ != nullptr) {
        idle_window* const taken = std::exchange(idle_, idle_->next);
        return {reinterpret_cast<op*>(taken)};
    }
    std::size_t const bytes = bytes_ + page_bytes;
    std::byte* const at = map_or_fail(bytes, "the ops of a thread");
    touch_own(at, bytes);
    mapped_ += bytes;
    return {reinterpret_cast<op*>(at)};
}

void windows::give(window idle) noexcept
{
    std::lock_guard const held(lock_);
    idle_ = new (static_cast<void*>(idle.ops)) idle_window{idle_};
}

} // namespace mallard::replay
