#include <bench/keeper.hpp>

#include <nlohmann/json.hpp>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace mallard::bench {
namespace {

std::string key(std::string_view suite, std::string_view case_name, std::string_view variant,
                std::string_view metric, std::string_view contender)
{
    std::string all;
    for (std::string_view const part : {suite, case_name, variant, metric, contender})
        all.append(part).push_back('\n');
    return all;
}

std::string key_of(nlohmann::json const& row)
{
    std::string const variant = row.value("variant", "");
    return key(row.at("suite").get<std::string>(), row.at("case").get<std::string>(), variant,
               row.at("metric").get<std::string>(), row.at("contender").get<std::string>());
}

} // namespace

keeper::keeper(std::string path) : path_(std::move(path))
{
    std::ifstream from(path_);
    std::string line;
    std::size_t whole = 0; // bytes of all complete lines
    for (std::size_t number = 1; std::getline(from, line) && !from.eof(); ++number) {
        try {
            known_.insert(key_of(nlohmann::json::parse(line)));
        } catch (nlohmann::json::exception const&) {
            throw refused("mallard-bench: " + path_ + ":" + std::to_string(number) +
                          " is not a result\n"
                          "  nothing was run, and the file is unchanged\n"
                          "  help: name another file, or remove that line");
        }
        whole += line.size() + 1;
    }
    from.close();
    std::error_code none; // ignored: there may be no file yet
    if (auto const held = std::filesystem::file_size(path_, none); !none && held > whole)
        std::filesystem::resize_file(path_, whole, none);
}

bool keeper::has(std::string_view suite, figure const& f, std::string const& contender) const
{
    return known_.contains(key(suite, f.case_name, f.variant, f.metric, contender));
}

void keeper::add(std::vector<row> const& rows, provenance const& run) const
{
    std::error_code absent;
    auto const before = std::filesystem::file_size(path_, absent);
    std::ofstream to(path_, std::ios::app);
    for (row const& r : rows)
        to << to_json(r, run) << '\n';
    to.close();
    if (to)
        return;
    std::string const reason = std::strerror(errno);
    if (!absent)
        std::filesystem::resize_file(path_, before, absent);
    throw refused(
        "mallard-bench: cannot write to " + path_ + ": " + reason +
        "\n"
        "  the file has the results of all experiments that finished before\n"
        "  help: make room and run the same command again; it skips finished experiments");
}

} // namespace mallard::bench
