#include <bench/trace/recorders.hpp>

#include <nlohmann/json.hpp>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

namespace mallard::bench {
namespace {

/// Splits a command into its NAME=VALUE words and the rest, which becomes the program.
recording_command split(words const& command)
{
    auto const first = std::ranges::find_if(
        command, [](std::string const& word) { return word.find('=') == std::string::npos; });
    return {{command.begin(), first}, {first, command.end()}};
}

void append(words& all, words const& more)
{
    all.insert(all.end(), more.begin(), more.end());
}

double difference(double recorded, std::uint64_t made)
{
    return std::abs(recorded - static_cast<double>(made));
}

std::string build_folder()
{
    return std::filesystem::path(program_folder()).parent_path().parent_path();
}

class nothing final : public recorder {
public:
    std::string name() const override { return "limit/bare"; }
    void insist() const override {}
    recording_command record(words const& program, std::string const&) const override
    {
        return split(program);
    }
    words first_table(words const&, std::string const&) const override { return {}; }
    std::optional<double> lost(call_counts const&, std::string const&) const override { return {}; }
    std::string lacks() const override { return "it records nothing"; }
};

class mallards final : public recorder {
public:
    explicit mallards(words const& options) : options_(options) {}

    std::string name() const override { return "mallard/record"; }
    void insist() const override
    {
        if (access(command_.c_str(), X_OK) != 0)
            throw cannot_run("there is no " + command_ +
                             "; help: install cargo and start this by ./x bench");
        process asked({command_, "record", "--help"}, "", process::complaints::ignored);
        asked.read_all();
        if (asked.wait() != 0)
            throw cannot_run("this `mallard` has no command `record`");
    }
    recording_command record(words const& program, std::string const& folder) const override
    {
        recording_command all = split(program);
        append(all.before,
               {"MALLARD_RECORDER=" + library_, command_, "record", "-q", "-o", folder + "/run"});
        append(all.before, options_);
        all.before.emplace_back("--");
        return all;
    }
    words first_table(words const&, std::string const& folder) const override
    {
        return {command_, "sites", folder + "/run.mallard"};
    }
    std::optional<double> lost(call_counts const& made, std::string const& folder) const override
    {
        double const recorded = manifest(folder)["counts"]["events"].get<double>();
        return difference(recorded, made.allocations + made.frees);
    }
    double admitted(std::string const& folder) const override
    {
        double sum = 0;
        for (nlohmann::json const& of_one_cause : manifest(folder)["losses"])
            sum += of_one_cause.get<double>();
        return sum;
    }
    bool is_silent() const override { return true; }

private:
    static nlohmann::json manifest(std::string const& folder)
    {
        std::ifstream file(folder + "/run.mallard/manifest.json");
        nlohmann::json read = nlohmann::json::parse(file, nullptr, false);
        if (!read.contains("counts") || !read.contains("losses"))
            throw cannot_run("`mallard record` wrote no manifest with counts and losses");
        return read;
    }

    std::string const command_ = mallard_command();
    std::string const library_ = build_folder() + "/bench/src/record/libmallard-record.so";
    words options_;
};

class heaptracks final : public recorder {
public:
    explicit heaptracks(symbols how) : raw_(how == symbols::left_out) {}

    std::string name() const override { return raw_ ? "heaptrack-1.4.0/raw" : "heaptrack-1.4.0"; }
    void insist() const override
    {
        program_path("heaptrack", "heaptrack");
        program_path("zstd", "zstd"); // otherwise heaptrack compresses by gzip
    }
    recording_command record(words const& program, std::string const& folder) const override
    {
        recording_command all = split(program);
        all.before.push_back(program_path("heaptrack", "heaptrack"));
        if (raw_)
            all.before.emplace_back("-r");
        append(all.before, {"-o", folder + "/run"});
        return all;
    }
    words first_table(words const&, std::string const& folder) const override
    {
        if (raw_)
            return {};
        return {program_path("heaptrack_print", "heaptrack"), folder + "/run.zst"};
    }
    std::optional<double> lost(call_counts const& made, std::string const& folder) const override
    {
        // A line that begins with + is a call of an allocation function.
        std::string const file = folder + (raw_ ? "/run.raw.zst" : "/run.zst");
        std::string const told =
            running_program({"/bin/sh", "-c", "zstd -dc " + file + " | grep -c ^+"}, "")
                .wait()
                .output;
        return difference(std::stod(told), made.allocations);
    }
    std::string lacks() const override
    {
        return raw_ ? "it has no table of sites before it looked up symbols" : "";
    }

private:
    bool raw_;
};

class heap_profilers final : public recorder {
public:
    std::string name() const override { return "gperftools-2.10/heap-profiler"; }
    void insist() const override { program_path("google-pprof", "google-perftools"); }
    bool is_slow() const override { return true; }
    recording_command record(words const& program, std::string const& folder) const override
    {
        recording_command all = split(program);
        append(all.before, {"LD_PRELOAD=libtcmalloc.so.4", "HEAPPROFILE=" + folder + "/run"});
        return all;
    }
    words first_table(words const& program, std::string const& folder) const override
    {
        return {program_path("google-pprof", "google-perftools"), "--text", "--alloc_space",
                split(program).program.front(), last_profile(folder)};
    }
    std::optional<double> lost(call_counts const& made, std::string const& folder) const override
    {
        // The first line has the number of live blocks and, in brackets, of all allocated blocks.
        std::unique_ptr<std::FILE, int (*)(std::FILE*)> const file(
            std::fopen(last_profile(folder).c_str(), "r"), std::fclose);
        double recorded = 0;
        if (file == nullptr ||
            std::fscanf(file.get(), "heap profile: %*d: %*d [ %lf:", &recorded) != 1)
            throw cannot_run("its profile has no number of blocks");
        return difference(recorded, made.allocations);
    }

private:
    // The profiler writes a profile after each GiB that was allocated, and one at the end. The
    // names of the profiles contain numbers of four digits, so the last profile has the name that
    // sorts last.
    static std::string last_profile(std::string const& folder)
    {
        std::string last;
        for (auto const& entry : std::filesystem::directory_iterator(folder))
            last = std::max(last, entry.path().string());
        if (last.empty())
            throw cannot_run("it wrote no profile");
        return last;
    }
};

class memrays final : public recorder {
public:
    std::string name() const override { return "memray-1.20.0"; }
    void insist() const override
    {
        if (access(python_.c_str(), X_OK) != 0)
            throw cannot_run("memray is not installed; help: connect to a network and start this "
                             "by ./x bench");
    }
    recording_command record(words const& program, std::string const& folder) const override
    {
        recording_command all = split(program);
        words const script(all.program.begin() + 1, all.program.end()); // without python3
        all.program = {python_, "-m", "memray", "run", "-o", folder + "/run"};
        append(all.program, script);
        return all;
    }
    words first_table(words const&, std::string const& folder) const override
    {
        return {python_, "-m", "memray", "summary", folder + "/run"};
    }
    std::optional<double> lost(call_counts const&, std::string const&) const override { return {}; }
    std::string lacks() const override
    {
        return "memray is a part of the process, and its own allocations are recorded too";
    }

private:
    std::string const python_ = program_folder() + "/peers/memray/bin/python";
};

} // namespace

std::string mallard_command()
{
    return build_folder() + "/cargo/release/mallard";
}

recorder const& bare()
{
    static nothing const it;
    return it;
}

std::unique_ptr<recorder> mallard_record(words const& options)
{
    return std::make_unique<mallards>(options);
}

std::unique_ptr<recorder> heaptrack(symbols how)
{
    return std::make_unique<heaptracks>(how);
}

std::unique_ptr<recorder> heap_profiler()
{
    return std::make_unique<heap_profilers>();
}

std::unique_ptr<recorder> memray()
{
    return std::make_unique<memrays>();
}

} // namespace mallard::bench
