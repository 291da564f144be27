#include "report.hpp"

#include <algorithm>
#include <cstdio>

#include <dlfcn.h>

namespace mallard::replay {
namespace {

using number = unsigned long long;

/// Prints a JSON string.
void print_text(const char* text) noexcept
{
    std::putchar('"');
    for (; *text != '\0'; ++text) {
        auto const c = static_cast<unsigned char>(*text);
        if (c == '"' || c == '\\')
            std::putchar('\\');
        if (c < 0x20)
            std::printf("\\u%04x", c);
        else
            std::putchar(c);
    }
    std::putchar('"');
}

/// Returns the path of the file whose malloc serves the process.
const char* malloc_in_force() noexcept
{
    Dl_info found{};
    void* const malloc = ::dlsym(RTLD_DEFAULT, "malloc");
    if (malloc == nullptr || ::dladdr(malloc, &found) == 0 || found.dli_fname == nullptr)
        return "";
    return found.dli_fname;
}

const char* name_of(mode of) noexcept
{
    switch (of) {
    case mode::play:
        return "play";
    case mode::no_op:
        return "no-op";
    case mode::hash:
        return "hash";
    case mode::account:
        return "account";
    case mode::check:
        return "check";
    case mode::virtual_call:
        return "virtual-call";
    }
    return "";
}

const char* name_of(touch of) noexcept
{
    return of == touch::none ? "none" : of == touch::page ? "page" : "all";
}

void print_stream(stream const& of, mode in) noexcept
{
    mallard_replay_header const& h = of.header();
    std::printf("{\"format\":%u,\"mode\":\"%s\",\"ops\":%llu,\"calls\":%llu,\"threads\":%u,"
                "\"targets\":%u,\"slots\":%llu,",
                h.version, name_of(in), number{h.ops}, number{h.calls}, h.threads, h.targets,
                number{h.slots});
}

void print_counts(const char* name, std::size_t index, call_counts const& of) noexcept
{
    std::printf("{\"%s\":%zu,\"peak_bytes\":%zu,\"bytes\":%td,\"chunks\":%zu", name, index,
                of.bytes_peak, of.bytes_live(), of.allocations);
}

/// Prints the bytes in chunks of the local targets, for all targets together, for each rule, and
/// for each target. If `counted` is not null, also prints the bytes that the program requested.
void print_counted(local_targets const& targets, account const* counted) noexcept
{
    std::printf("\"counted\":{\"peak_bytes\":%zu,\"bytes\":%td,\"rules\":[",
                targets.all().bytes_peak, targets.all().bytes_live());
    for (std::size_t rule = 1; rule <= targets.last_rule(); ++rule) {
        std::printf(rule == 1 ? "" : ",");
        print_counts("rule", rule, targets.of_rule(rule));
        std::printf("}");
    }
    std::printf("],\"targets\":[");
    for (std::size_t target = 1; target < targets.count(); ++target) {
        std::printf(target == 1 ? "" : ",");
        print_counts("target", target, targets[target].counts());
        std::printf(",\"rule\":%u", targets[target].description().rule);
        if (counted != nullptr)
            std::printf(",\"requested_peak_bytes\":%llu,\"requested_bytes\":%llu",
                        number{counted->requested(target).peak},
                        number{counted->requested(target).now});
        std::printf("}");
    }
    std::printf("]}");
}

double seconds(std::uint64_t ns) noexcept
{
    return static_cast<double>(ns) / 1e9;
}

void print_times(play_result const& r) noexcept
{
    // Nearly all of the time for reading ops is spent in the kernel, so this time is also
    // subtracted from the system time. The kernel measures the system time less exactly than the
    // CPU time.
    std::uint64_t const cpu = r.used.cpu_ns - std::min(r.used.cpu_ns, r.off.cpu_ns);
    std::uint64_t const system =
        std::min(cpu, r.used.system_ns - std::min(r.used.system_ns, r.off.cpu_ns));
    std::printf("\"seconds\":%.9f,\"cpu_seconds\":%.9f,\"user_seconds\":%.9f,"
                "\"system_seconds\":%.9f,\"reading_seconds\":%.9f,\"reading_cpu_seconds\":%.9f,",
                seconds(r.used.wall_ns - std::min(r.used.wall_ns, r.off_wall_max)), seconds(cpu),
                seconds(cpu - system), seconds(system), seconds(r.off.wall_ns),
                seconds(r.off.cpu_ns));
}

void print_memory(play_result const& r) noexcept
{
    std::printf("\"start_rss_kib\":%llu,\"peak_rss_kib\":%llu,\"after_rss_kib\":%llu,"
                "\"own_kib\":%llu,\"minor_faults\":%llu,\"major_faults\":%llu,",
                number{r.start_rss_kib}, number{r.peak_rss_kib}, number{r.after_rss_kib},
                number{r.own_bytes / 1024}, number{r.used.minor_faults},
                number{r.used.major_faults});
}

void print_shape(const char* name, call_cost const& cost, const char* end) noexcept
{
    std::printf("\"%s\":{\"direct_ns\":%.3f,\"virtual_ns\":%.3f,\"difference_ns\":%.3f}%s", name,
                cost.direct_ns, cost.virtual_ns, cost.virtual_ns - cost.direct_ns, end);
}

} // namespace

void print(stream const& of, options const& chosen, play const& played, play_result const& result,
           litter_left const& litter) noexcept
{
    print_stream(of, chosen.mode);
    print_times(result);
    print_memory(result);
    std::printf("\"failures\":%llu,\"successes\":%llu,\"touch\":\"%s\",\"pace\":%g,"
                "\"litter\":{\"share\":%g,\"made\":%llu,\"left\":%llu,\"bytes\":%llu},",
                number{result.failures}, number{result.successes}, name_of(chosen.touch),
                chosen.pace, chosen.litter, number{litter.made}, number{litter.left},
                number{litter.bytes});
    std::printf("\"allocator\":");
    print_text(malloc_in_force());
    std::printf(",");
    print_counted(played.targets(), nullptr);
    if (chosen.mode == mode::hash) {
        std::printf(",\"hashes\":[");
        for (std::size_t i = 0; i < of.threads().count(); ++i)
            std::printf("%s\"%016llx\"", i == 0 ? "" : ",", number{played.hash_of(i)});
        std::printf("]");
    }
    std::printf("}\n");
}

void print(stream const& of, account const& counted) noexcept
{
    print_stream(of, mode::account);
    std::printf("\"failures\":%llu,\"requested_peak_bytes\":%llu,\"requested_bytes\":%llu,",
                number{counted.failures()}, number{counted.requested(0).peak},
                number{counted.requested(0).now});
    print_counted(counted.targets(), &counted);
    std::printf("}\n");
}

void print_checked(stream const& of, std::size_t orders) noexcept
{
    print_stream(of, mode::check);
    std::printf("\"orders\":%zu}\n", orders);
}

void print(virtual_call_cost const& cost) noexcept
{
    std::printf("{\"format\":%u,\"mode\":\"virtual-call\",", unsigned{mallard_replay_version});
    print_shape("one_target", cost.one_target, ",");
    print_shape("alternating", cost.alternating, ",");
    print_shape("cold", cost.cold, "}\n");
}

} // namespace mallard::replay
