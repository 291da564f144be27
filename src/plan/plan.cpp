#include "plan.hpp"

#include "../os/memory.hpp"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace mallard::plan {
namespace {

constexpr unsigned char magic[8] = {0x89, 'M', 'P', 'L', 'A', 'N', '\r', '\n'};
constexpr std::size_t file_bytes_max = std::size_t{256} << 20;

std::uint64_t checksum(std::span<const std::byte> file) noexcept
{
    std::uint64_t sum = 0;
    auto const add = [&](std::size_t begin, std::size_t end) noexcept {
        for (; begin != end; begin += 8) {
            std::uint64_t word;
            std::memcpy(&word, file.data() + begin, 8);
            sum = mallard_replay_mix(sum, word);
        }
    };
    add(sizeof(mallard_plan_header), file.size());
    add(0, offsetof(mallard_plan_header, checksum));
    return sum;
}

/// Reads arrays from the memory of a file, one after the other.
struct parts {
    const std::byte* at;
    template <class T>
    std::span<const T> take(std::uint32_t count) noexcept
    {
        auto const* const first = reinterpret_cast<const T*>(at);
        at += count * sizeof(T);
        return {first, count};
    }
};

bool is_answer(plan const& p, std::uint32_t answer) noexcept
{
    return answer < p.rules.size() || answer == mallard_plan_malloc;
}

bool is_by_stack(std::uint32_t answer) noexcept
{
    return answer > mallard_plan_by_stack + 1U &&
           answer - mallard_plan_by_stack <= mallard_plan_frames_max;
}

bool is_before(mallard_plan_place const& a, mallard_plan_place const& b) noexcept
{
    return a.module != b.module ? a.module < b.module : a.address < b.address;
}

/// Returns whether the range `b` may follow `a`. Ranges are sorted by module and begin. If two
/// ranges have the same begin, the larger range comes first.
bool may_follow(mallard_plan_range const& a, mallard_plan_range const& b) noexcept
{
    if (a.module != b.module)
        return a.module < b.module;
    return a.begin != b.begin ? a.begin < b.begin : a.end >= b.end;
}

template <class T, class Test>
bool holds_for_neighbours(std::span<const T> of, Test test) noexcept
{
    for (std::size_t i = 1; i < of.size(); ++i)
        if (!test(of[i - 1], of[i]))
            return false;
    return true;
}

template <class T, class Test>
bool holds_for_all(std::span<const T> of, Test test) noexcept
{
    for (T const& one : of)
        if (!test(one))
            return false;
    return true;
}

bool is_consistent(plan const& p, std::uint32_t text_bytes) noexcept
{
    auto const is_text = [=](mallard_plan_text of) noexcept {
        return of.at <= text_bytes && of.bytes <= text_bytes - of.at;
    };
    auto const is_module = [&](std::uint32_t module) noexcept { return module < p.modules.size(); };
    return holds_for_all(p.modules,
                         [=](mallard_plan_module const& m) {
                             return is_text(m.name) && m.is_program <= 1 &&
                                    m.build_id_bytes <= mallard_plan_build_id_max;
                         }) &&
           holds_for_all(p.rules,
                         [=](mallard_plan_rule const& r) {
                             return is_text(r.name) && r.allocator >= mallard_plan_pool &&
                                    r.allocator <= mallard_plan_multipool_over_arena &&
                                    r.block_bytes != 0 && r.block_bytes <= mallard_plan_block_max;
                         }) &&
           holds_for_all(p.callers,
                         [&](mallard_plan_place const& c) {
                             return is_module(c.module) &&
                                    (is_answer(p, c.answer) || is_by_stack(c.answer));
                         }) &&
           holds_for_neighbours(p.callers, is_before) &&
           holds_for_all(p.stacks,
                         [&](mallard_plan_stack const& s) {
                             return s.frames != 0 && s.frames <= mallard_plan_frames_max &&
                                    s.first <= p.frames.size() &&
                                    s.frames <= p.frames.size() - s.first && is_answer(p, s.answer);
                         }) &&
           holds_for_all(p.frames,
                         [&](mallard_plan_place const& f) { return is_module(f.module); }) &&
           holds_for_all(p.ranges,
                         [&](mallard_plan_range const& r) {
                             return is_module(r.module) && r.begin < r.end &&
                                    r.rule < p.rules.size();
                         }) &&
           holds_for_neighbours(p.ranges, may_follow);
}

} // namespace

const char* read_plan(std::span<const std::byte> file, plan& into) noexcept
{
    mallard_plan_header h;
    if (file.size() < sizeof h || std::memcmp(file.data(), magic, sizeof magic) != 0)
        return "is not a compiled plan; help: mallard plan make";
    std::memcpy(&h, file.data(), sizeof h);
    if (h.byte_order != mallard_plan_byte_order)
        return "is of a machine with another byte order; help: mallard plan make on this machine";
    if (h.version != mallard_plan_version)
        return "is of another version of Mallard; help: mallard plan make of this version";
    bool const has_counts_in_range =
        h.modules <= mallard_plan_modules_max && h.rules >= 1 &&
        h.rules <= mallard_plan_rules_max && h.callers <= mallard_plan_entries_max &&
        h.stacks <= mallard_plan_entries_max && h.frames <= mallard_plan_entries_max &&
        h.ranges <= mallard_plan_entries_max && h.text_bytes <= file_bytes_max &&
        h.text_bytes % 8 == 0;
    if (!has_counts_in_range)
        return "is corrupt; help: mallard plan make";
    std::size_t const bytes = sizeof h + h.modules * sizeof(mallard_plan_module) +
                              h.rules * sizeof(mallard_plan_rule) +
                              (std::size_t{h.callers} + h.frames) * sizeof(mallard_plan_place) +
                              h.stacks * sizeof(mallard_plan_stack) +
                              h.ranges * sizeof(mallard_plan_range) + h.text_bytes;
    if (file.size() < bytes)
        return "is truncated; help: mallard plan make";
    if (file.size() != bytes || checksum(file) != h.checksum)
        return "is corrupt; help: mallard plan make";
    parts rest{file.data() + sizeof h};
    into.modules = rest.take<mallard_plan_module>(h.modules);
    into.rules = rest.take<mallard_plan_rule>(h.rules);
    into.callers = rest.take<mallard_plan_place>(h.callers);
    into.stacks = rest.take<mallard_plan_stack>(h.stacks);
    into.frames = rest.take<mallard_plan_place>(h.frames);
    into.ranges = rest.take<mallard_plan_range>(h.ranges);
    into.text = reinterpret_cast<const char*>(rest.at);
    return is_consistent(into, h.text_bytes) ? nullptr : "is corrupt; help: mallard plan make";
}

namespace {

/// Reads a whole file into memory. Returns null if the file has fewer than `bytes` bytes, or if
/// there is no memory.
std::byte* read_file(int file, std::size_t bytes) noexcept
{
    std::byte* const at = os::map(bytes);
    if (at == nullptr)
        return nullptr;
    for (std::size_t done = 0; done < bytes;) {
        ssize_t const part = ::read(file, at + done, bytes - done);
        if (part <= 0 && !(part < 0 && errno == EINTR)) {
            os::unmap(at, bytes);
            return nullptr;
        }
        done += part > 0 ? static_cast<std::size_t>(part) : 0;
    }
    return at;
}

} // namespace

// The plan is copied instead of mapped, because another process may change the file while the
// program runs.
const char* open_plan(const char* path, plan& into) noexcept
{
    // Without O_NONBLOCK, `open` on a named pipe would wait for a writer.
    int const file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return "cannot be opened; help: ls -l, to see whether this user can read the file";
    struct stat of{};
    std::byte* at = nullptr;
    std::size_t bytes = 0;
    if (::fstat(file, &of) == 0 && S_ISREG(of.st_mode) && of.st_size > 0 &&
        static_cast<std::size_t>(of.st_size) <= file_bytes_max) {
        bytes = static_cast<std::size_t>(of.st_size);
        at = read_file(file, bytes);
    }
    ::close(file);
    if (at == nullptr)
        return "is not a compiled plan; help: mallard plan make";
    const char* const wrong = read_plan({at, bytes}, into);
    if (wrong != nullptr)
        os::unmap(at, bytes);
    return wrong;
}

} // namespace mallard::plan
