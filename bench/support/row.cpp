#include <bench/support/row.hpp>

#include <nlohmann/json.hpp>

#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <memory>

namespace mallard::bench {
namespace {

std::string first_line_of(const char* command)
{
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> const pipe(popen(command, "r"), pclose);
    std::array<char, 256> line{};
    if (pipe == nullptr || std::fgets(line.data(), line.size(), pipe.get()) == nullptr)
        return {};
    std::string text(line.data());
    while (!text.empty() && text.back() == '\n')
        text.pop_back();
    return text;
}

std::string commit()
{
    std::string const hash = first_line_of("git rev-parse --short HEAD 2>/dev/null");
    if (hash.empty() || hash == "HEAD")
        return "unknown";
    bool const dirty = !first_line_of("git status --porcelain -uno 2>/dev/null").empty();
    return dirty ? hash + "-dirty" : hash;
}

std::string processor()
{
    std::ifstream cpuinfo("/proc/cpuinfo");
    for (std::string line; std::getline(cpuinfo, line);) {
        if (line.starts_with("model name"))
            return line.substr(line.find(':') + 2);
    }
    return "unknown processor";
}

std::string cache(const char* name, int parameter)
{
    long const bytes = sysconf(parameter);
    return bytes <= 0 ? "" : std::string(", ") + name + " " + std::to_string(bytes >> 10) + " KiB";
}

std::string machine()
{
    utsname os{};
    uname(&os);
    std::string const version = __VERSION__; // the text of clang begins with its name
    std::string const compiler = version.starts_with("1") ? "g++ " + version : version;
    return processor() + ", " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + " CPUs" +
           cache("L1d", _SC_LEVEL1_DCACHE_SIZE) + cache("L2", _SC_LEVEL2_CACHE_SIZE) +
           cache("L3", _SC_LEVEL3_CACHE_SIZE) + ", " + os.sysname + " " + os.release + " " +
           os.machine + ", " + compiler;
}

double rounded(double value)
{
    // Writes four significant digits, because more digits would be noise, and people read the
    // results.
    if (value == 0 || !std::isfinite(value))
        return value;
    double const scale = std::pow(10.0, 3.0 - std::floor(std::log10(std::abs(value))));
    return std::round(value * scale) / scale;
}

} // namespace

provenance describe_run(std::string_view launcher, int argc, const char* const* argv)
{
    provenance p{commit(), machine(), std::string(launcher)};
    for (int i = 1; i < argc; ++i)
        p.command.append(" ").append(argv[i]);
    return p;
}

std::string to_json(row const& r, provenance const& p)
{
    nlohmann::ordered_json json{{"suite", r.suite},
                                {"case", r.case_name},
                                {"contender", r.contender},
                                {"threads", r.threads},
                                {"metric", r.metric}};
    if (r.figure) {
        json["median"] = rounded(r.figure->median);
        json["low"] = rounded(r.figure->low);
        json["high"] = rounded(r.figure->high);
        json["runs"] = r.figure->runs;
    } else {
        json["median"] = json["low"] = json["high"] = nullptr;
        json["runs"] = 0;
    }
    json["commit"] = p.commit;
    json["machine"] = p.machine;
    json["command"] = p.command;
    if (!r.variant.empty())
        json["variant"] = r.variant;
    if (!r.why.empty())
        json["why"] = r.why;
    return json.dump();
}

} // namespace mallard::bench
