#include "report.hpp"

#include "request.hpp"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

namespace mallard::plan {
namespace {

constexpr int failed_status = 125;

/// A scope in which a write to a pipe without a reader (SIGPIPE) does not end the program.
class without_sigpipe {
public:
    without_sigpipe() noexcept
    {
        sigset_t pending;
        ::sigemptyset(&pipe_);
        ::sigaddset(&pipe_, SIGPIPE);
        ::sigpending(&pending);
        was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
        ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~without_sigpipe()
    {
        timespec const now{};
        if (!was_pending_)
            while (::sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR)
                ;
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    without_sigpipe(without_sigpipe const&) = delete;
    without_sigpipe& operator=(without_sigpipe const&) = delete;

private:
    sigset_t pipe_;
    sigset_t before_;
    bool was_pending_;
};

/// Buffered output to a file descriptor. The destructor writes the rest.
class text {
public:
    text(int descriptor, std::span<char> buffer) noexcept : descriptor_(descriptor), buffer_(buffer)
    {
    }
    ~text() { flush(); }
    text(text const&) = delete;
    text& operator=(text const&) = delete;

    text& operator<<(std::span<const char> s) noexcept
    {
        for (char const c : s)
            add(c);
        return *this;
    }
    text& operator<<(const char* s) noexcept { return *this << std::span(s, std::strlen(s)); }
    text& operator<<(std::uint64_t number) noexcept
    {
        char digits[20];
        std::size_t at = sizeof digits;
        do
            digits[--at] = static_cast<char>('0' + number % 10);
        while ((number /= 10) != 0);
        return *this << std::span<const char>(digits + at, sizeof digits - at);
    }
    /// Writes a string of JSON.
    text& quoted(std::span<const char> s) noexcept
    {
        add('"');
        for (char const c : s) {
            auto const code = static_cast<unsigned char>(c);
            if (c == '"' || c == '\\')
                add('\\');
            if (code >= 0x20)
                add(c);
            else
                *this << "\\u00" << std::span<const char>(&"0123456789abcdef"[code >> 4], 1)
                      << std::span<const char>(&"0123456789abcdef"[code & 15], 1);
        }
        add('"');
        return *this;
    }

private:
    void add(char c) noexcept
    {
        if (length_ == buffer_.size())
            flush();
        buffer_[length_++] = c;
    }
    void flush() noexcept
    {
        without_sigpipe const scope;
        for (std::size_t done = 0; done < length_;) {
            ssize_t const written = ::write(descriptor_, buffer_.data() + done, length_ - done);
            if (written <= 0)
                break;
            done += static_cast<std::size_t>(written);
        }
        length_ = 0;
    }
    int descriptor_;
    std::span<char> buffer_;
    std::size_t length_ = 0;
};

/// The buffer is so large that a report needs a single write, so that the reports of several
/// processes do not mix.
constinit char report_buffer[std::size_t{64} << 10];
constexpr std::size_t line_bytes = 512;

/// The sums of all threads for one rule.
struct sums {
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
    std::uint64_t large = 0;
    std::uint64_t refused = 0;
    std::uint64_t end_ticks = 0;
    std::uint64_t end_frees = 0;
    std::uint64_t end_sequences = 0;
};

sums sums_of(std::size_t rule) noexcept
{
    sums s;
    for (thread_rules* t = all_threads(); t != nullptr; t = t->next_of_all) {
        s.blocks += t->of[rule]->blocks.value();
        s.bytes += t->of[rule]->bytes.value();
        s.large += t->of[rule]->large.value();
        s.refused += t->of[rule]->refused.value();
        s.end_ticks += t->of[rule]->end_of.ticks.value();
        s.end_frees += t->of[rule]->end_of.frees.value();
        s.end_sequences += t->of[rule]->end_of.sequences.value();
    }
    return s;
}

std::uint64_t unknown_blocks() noexcept
{
    std::uint64_t sum = 0;
    for (thread_rules* t = all_threads(); t != nullptr; t = t->next_of_all)
        sum += t->unknown.value();
    return sum;
}

/// The times for which the calling thread has run, and has waited for a CPU, in nanoseconds. The
/// two times are 0 if the system does not supply them.
struct cpu_use {
    std::uint64_t ran = 0;
    std::uint64_t waited = 0;
};

cpu_use cpu_use_of_thread() noexcept
{
    cpu_use use;
    int const file = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return use;
    char line[64]{};
    if (::read(file, line, sizeof line - 1) > 0) {
        char* rest = nullptr;
        use.ran = std::strtoull(line, &rest, 10);
        use.waited = std::strtoull(rest, nullptr, 10);
    }
    ::close(file);
    return use;
}

const char* name_of(std::uint32_t allocator) noexcept
{
    switch (allocator) {
    case mallard_plan_pool:
        return "pool";
    case mallard_plan_multipool:
        return "multipool";
    case mallard_plan_arena:
        return "arena";
    default:
        return "multipool-over-arena";
    }
}

void write_text(text& to, options const& o, plan const& p) noexcept
{
    to << "mallard: plan " << o.plan
       << (o.is_control ? ", control: malloc served all blocks\n" : "\n");
    for (std::size_t i = 0; i < p.rules.size(); ++i) {
        sums const s = sums_of(i);
        to << "  " << name_of(p.rules[i].allocator) << " " << p.text_of(p.rules[i].name) << ": "
           << s.blocks << " blocks, " << s.bytes << " bytes, at most "
           << rules[i].held_peak.load(std::memory_order_relaxed) << " bytes of memory";
        if (s.large != 0)
            to << "; " << s.large
               << " blocks had a size or alignment that is too large for the rule";
        if (s.refused != 0)
            to << "; " << s.refused
               << " blocks came from malloc, because the rule held twice its peak";
        to << "\n";
    }
    to << "  " << unknown_blocks() << " blocks have call stacks that are not in the plan\n";
}

void write_json(text& to, options const& o, plan const& p, const char* program) noexcept
{
    to << "{\"process\":" << static_cast<std::uint64_t>(::getpid()) << ",\"program\":";
    to.quoted({program, std::strlen(program)})
        << ",\"control\":" << (o.is_control ? "true" : "false") << ",\"rules\":[";
    for (std::size_t i = 0; i < p.rules.size(); ++i) {
        sums const s = sums_of(i);
        to << (i == 0 ? "" : ",") << "{\"name\":";
        to.quoted(p.text_of(p.rules[i].name))
            << ",\"allocator\":\"" << name_of(p.rules[i].allocator) << "\",\"blocks\":" << s.blocks
            << ",\"bytes\":" << s.bytes
            << ",\"peak_bytes\":" << rules[i].held_peak.load(std::memory_order_relaxed)
            << ",\"refused\":" << s.refused << ",\"large\":" << s.large;
        if (o.times_ends)
            to << ",\"end_ns\":"
               << static_cast<std::uint64_t>(nanoseconds_per_tick() *
                                             static_cast<double>(s.end_ticks))
               << ",\"end_frees\":" << s.end_frees << ",\"end_sequences\":" << s.end_sequences;
        to << "}";
    }
    to << "],\"unknown_blocks\":" << unknown_blocks();
    if (o.times_ends) {
        cpu_use const use = cpu_use_of_thread();
        cost_of_measuring const cost = measure_cost();
        to << ",\"ran_ns\":" << use.ran << ",\"waited_ns\":" << use.waited
           << ",\"sequence_ps\":" << cost.sequence << ",\"free_ps\":" << cost.free;
    }
    to << "}\n";
}

void end_if_strict(options const& o) noexcept
{
    if (o.is_strict)
        ::_exit(failed_status);
}

} // namespace

void tell_plan_is_off(options const& o, const char* wrong) noexcept
{
    char line[line_bytes];
    text(STDERR_FILENO, line) << "mallard: the plan " << o.plan << " " << wrong
                              << (o.is_strict ? "\n" : "; the program runs without the plan\n");
    end_if_strict(o);
}

void tell_other_build(options const& o, std::span<const char> module) noexcept
{
    char line[line_bytes];
    text(STDERR_FILENO, line) << "mallard: " << module << " is another build than that of the plan "
                              << o.plan
                              << ", whose rules for it are off; help: record the program again\n";
    end_if_strict(o);
}

void write_report(options const& o, plan const& p) noexcept
{
    if (o.stats != form_of_stats::none) {
        text to(STDERR_FILENO, report_buffer);
        if (o.stats == form_of_stats::json)
            write_json(to, o, p, program_invocation_name);
        else
            write_text(to, o, p);
    }
    if (o.report == nullptr)
        return;
    int const file = ::open(o.report, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (file < 0)
        return;
    {
        text to(file, report_buffer);
        write_json(to, o, p, program_invocation_name);
    }
    ::close(file);
}

} // namespace mallard::plan
