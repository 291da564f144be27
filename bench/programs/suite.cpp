// The programs suite measures how the choice of a malloc changes the time and memory of whole
// programs.
#include <bench/entrants.hpp>
#include <bench/preload/worker.hpp>
#include <bench/programs/programs.hpp>
#include <bench/suites.hpp>

namespace mallard::bench {

namespace {

program_function command_line(words command)
{
    return [command = std::move(command)](temporary_folder const&, std::string const& library) {
        return running_program(command, library).wait();
    };
}

program_function prepared(program const& p, temporary_folder const& folder, double share)
{
    return p.command == nullptr ? p.prepare(folder, share) : command_line(p.command(folder, share));
}

double share_of(effort how)
{
    return how.is_smoke() ? 0.005 : how.is_brief() ? 0.15 : 1;
}

/// A program and its output under glibc. The program is prepared on first use.
class stage {
public:
    stage(program p, double share) : program_(std::move(p)), share_(share) {}

    void run(preload const& with, std::span<double> out)
    {
        if (!ready_) {
            ready_ = prepared(program_, folder_, share_);
            expected_ = ready_(folder_, "").output;
        }
        run_result const result = ready_(folder_, with.library);
        if (result.output != expected_)
            throw cannot_run("it prints other output than under glibc");
        out[0] = result.wall_seconds;
        out[1] = result.cpu_seconds;
        out[2] = result.peak_kib;
    }

private:
    program program_;
    double share_;
    temporary_folder folder_;
    program_function ready_;
    std::string expected_;
};

experiment whole(program const& p, effort how)
{
    experiment e{
        .asks = p.asks + ". Seconds of wall and of CPU; peak of its largest process",
        .figures = {{p.name, "seconds"}, {p.name, "cpu_seconds"}, {p.name, "peak_rss_kib"}},
        .entrants = {},
        .rounds = 5,
        .with_memory = false,
        .in_brief = p.in_brief};
    // Makes the directory only when the first contender is prepared.
    auto const shared = std::make_shared<std::weak_ptr<stage>>();
    for (preload const& with : preloads()) {
        e.entrants.push_back({.name = [&with] { return with.name; },
                              .prepare = [&with, p, how, shared]() -> round_function {
                                  insist_on(with);
                                  std::shared_ptr<stage> here = shared->lock();
                                  if (here == nullptr)
                                      *shared = here = std::make_shared<stage>(p, share_of(how));
                                  return [&with, here](std::span<double> out) {
                                      here->run(with, out);
                                  };
                              }});
    }
    return e;
}

} // namespace

std::vector<experiment> programs_suite(effort how)
{
    std::vector<program> all = interpreters();
    append(all, tools());
    std::vector<experiment> experiments;
    for (program const& p : all)
        experiments.push_back(whole(p, how));
    return experiments;
}

} // namespace mallard::bench
