#include <bench/calibration/programs.hpp>

#include <bench/support/row.hpp>

#include <nlohmann/json.hpp>

#include <cstdio>
#include <cstdlib>
#include <regex>

namespace mallard::bench {
namespace {

using json = nlohmann::ordered_json;

json described(workload const& w)
{
    return {{"name", w.name}, {"asks", w.asks}, {"threads", w.threads}, {"in_brief", w.in_brief}};
}

/// Writes the input of a program, and adds the program's command. If the program is not installed,
/// its line has the reason, `why`, instead of a command.
void add_command(json& line, workload const& w, std::filesystem::path const& parent, double share)
{
    std::string name = w.name;
    std::ranges::replace(name, '/', '-');
    try {
        temporary_folder const folder(parent / name);
        json environment = json::object();
        json command = json::array();
        for (std::string const& word : w.command(folder, share)) {
            std::size_t const sign = word.find('=');
            if (command.empty() && sign != std::string::npos)
                environment[word.substr(0, sign)] = word.substr(sign + 1);
            else
                command.push_back(word);
        }
        line["environment"] = environment;
        line["command"] = command;
        line["load"] = w.load == nullptr ? json(nullptr) : json(w.load(folder, share));
    } catch (cannot_run const& reason) {
        line["why"] = reason.what();
    }
}

int refuse(std::string const& what)
{
    std::fprintf(stderr,
                 "mallard-bench: %s\n"
                 "  nothing was written\n"
                 "  help: `mallard-bench commands FOLDER 0.3 [REGEX]`\n",
                 what.c_str());
    return 2;
}

} // namespace

int print_commands(std::span<char* const> arguments)
{
    double const share = arguments.size() > 1 ? std::atof(arguments[1]) : 0;
    if (!arguments.empty() && !(share > 0 && share <= 1))
        return refuse("commands takes a folder and a share of the work");
    std::regex wanted;
    try {
        wanted = arguments.size() > 2 ? arguments[2] : "";
    } catch (std::regex_error const& error) {
        return refuse(std::string(arguments[2]) + " is not a regular expression: " + error.what());
    }
    provenance const origin = describe_run("", 0, nullptr);
    std::puts(json{{"commit", origin.commit}, {"machine", origin.machine}}.dump().c_str());
    for (workload const& w : calibrated_programs()) {
        if (!std::regex_search(w.name, wanted))
            continue;
        json line = described(w);
        if (!arguments.empty())
            add_command(line, w, std::filesystem::absolute(arguments[0]), share);
        std::puts(line.dump().c_str());
    }
    return 0;
}

} // namespace mallard::bench
