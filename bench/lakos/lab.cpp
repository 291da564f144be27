#include <bench/lakos/lab.hpp>

#include <bench/contenders/boost.hpp>
#include <bench/contenders/foonathan.hpp>
#include <bench/contenders/std_pmr.hpp>
#include <bench/preload/process.hpp>

#include <memory>
#include <sstream>

namespace mallard::bench {
namespace {

// The time limit of one process. Some cases of Lakos take hours before their first output, because
// 2^25 elements are visited 2,560 times, and each visit is a cache miss.
constexpr int patience_ms = 6 * 60 * 60'000;

// "boost-container-1.74/" gives "boost-container-1.74".
std::string without_last(std::string name)
{
    name.resize(name.rfind('/'));
    return name;
}

std::string name_of_library(std::string_view library)
{
    if (library == "libstdc++")
        return without_last(std_pmr_name(""));
    if (library == "boost")
        return without_last(boost_name("container", "/"));
    if (library == "foonathan")
        return without_last(foonathan_name(""));
    return std::string(library);
}

std::string strategy_of(lab::part who)
{
    return "/AS" + std::to_string(who.strategy);
}

std::string name_of(lab::part who)
{
    std::size_t const slash = who.library.find('/');
    std::string name = name_of_library(who.library.substr(0, slash)) + strategy_of(who);
    if (slash != who.library.npos)
        name.append("+").append(who.library.substr(slash + 1));
    return name;
}

bool is_wanted(preload const& heap)
{
    for (const char* const start : {"glibc", "mimalloc", "jemalloc", "gperftools", "mallard"}) {
        if (heap.name.starts_with(start))
            return true;
    }
    return false;
}

std::vector<player> make_players()
{
    std::vector<player> all;
    preload const* const glibc = &preloads().front();
    lab::part const as1{"heap", 1};
    lab::part const as2{"heap", 2};
    for (preload const& heap : preloads()) {
        if (is_wanted(heap))
            for (lab::part const who : {as1, as2})
                all.push_back({heap.name + strategy_of(who), who, &heap});
    }
    auto const add = [&]<class Memory>(lab::part who) {
        if (who.library != "heap")
            all.push_back({name_of(who), who, glibc});
    };
    lab::cast_all(add);
    return all;
}

/// Parses the output of a `mallard-bench-lab` process: the figures, or the reason why there are
/// none.
child_result heard(std::string const& said, int status, std::size_t figures)
{
    if (status != 0)
        return {.why = "FAIL: its process ended with " + described(status)};
    if (said.starts_with('!'))
        return {.why = said.substr(1, said.find('\n') - 1)};
    child_result result{.figures = std::vector<double>(figures)};
    std::istringstream text(said);
    for (double& figure : result.figures)
        text >> figure;
    return result;
}

pending_result start(player const& who, std::vector<std::string> const& command,
                     std::size_t figures)
{
    if (!who.heap->why.empty())
        return [why = who.heap->why] { return child_result{.why = why}; };
    auto const running = std::make_shared<process>(command, who.heap->library,
                                                   process::complaints::ignored, patience_ms);
    return [running, figures] {
        std::string const said = running->read_all();
        return heard(said, running->wait(), figures);
    };
}

} // namespace

std::vector<player> const& all_players()
{
    static std::vector<player> const all = make_players();
    return all;
}

std::vector<player> without_wink_out()
{
    std::vector<player> all = all_players();
    std::erase_if(all, [](player const& p) { return p.who.winks_out(); });
    return all;
}

player one_player(lab::part who)
{
    return {name_of(who), who, &preloads().front()};
}

experiment in_the_lab(std::string const& asks, std::vector<figure> figures,
                      std::vector<player> const& players, std::string const& benchmark,
                      std::vector<std::size_t> const& numbers)
{
    experiment e{.asks = asks,
                 .figures = std::move(figures),
                 .entrants = {},
                 .fresh_process = true,
                 .with_memory = false};
    for (player const& p : players) {
        std::vector<std::string> command{program_folder() + "/mallard-bench-lab", benchmark,
                                         std::string(p.who.library),
                                         std::to_string(p.who.strategy)};
        for (std::size_t const number : numbers)
            command.push_back(std::to_string(number));
        e.entrants.push_back(
            {.name = [name = p.name] { return name; },
             .prepare = nullptr,
             .start_alone = [p, command,
                             count = e.figures.size()] { return start(p, command, count); }});
    }
    return e;
}

std::string power_of_two(std::size_t exponent)
{
    return "2^" + std::to_string(exponent);
}

} // namespace mallard::bench
