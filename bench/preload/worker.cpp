#include <bench/preload/worker.hpp>

#include <bench/preload/process.hpp>

#include <array>
#include <memory>

namespace mallard::bench {
namespace {

class worker {
public:
    /// Starts a worker process. Each round returns `figures` numbers.
    worker(preload const& with, task const& what, std::size_t figures, effort how)
        : process_(worker_command(what, figures, how), with.library)
    {
    }

    /// Sends requests and does not wait for the answers. The worker does one request after the
    /// other.
    void ask(std::string_view requests) const { process_.write(requests); }

    void answer(std::span<double> out)
    {
        if (!process_.read(std::as_writable_bytes(out)))
            throw cannot_run("its process ended with " + described(process_.wait()));
    }

private:
    process process_;
};

struct kib {
    double peak = 0;
    double now = 0;
};

kib memory_of(worker& w)
{
    std::array<double, 2> answer{};
    w.answer(answer);
    return {answer[0], answer[1]};
}

round_function prepare(preload const& with, load const& l, effort how)
{
    insist_on(with);
    std::string const request(1, request::round);
    if (l.fresh) {
        return [&with, l, how, request](std::span<double> out) {
            worker w(with, l.what, out.size(), how);
            w.ask(request);
            w.answer(out);
        };
    }
    return [w = std::make_shared<worker>(with, l.what, l.figures.size(), how),
            request](std::span<double> out) {
        w->ask(request);
        w->answer(out);
    };
}

// Sends all requests together, so that several workers can run at the same time.
pending_result start_alone(preload const& with, load const& l, effort how)
{
    auto const w = std::make_shared<worker>(with, l.what, l.figures.size(), how);
    w->ask(std::string{request::round, request::memory, request::finish, request::memory});
    return [w, count = l.figures.size()]() -> child_result {
        try {
            std::vector<double> ignored(count);
            w->answer(ignored);
            double const peak = memory_of(*w).peak;
            return {.peak_kib = peak, .after_kib = memory_of(*w).now};
        } catch (cannot_run const& reason) {
            return {.why = reason.what()};
        }
    };
}

pending_result start_weighing(preload const& with, load const& l, effort how)
{
    auto const w = std::make_shared<worker>(with, l.what, 0, how);
    w->ask(std::string(how.is_smoke() ? 1 : l.passes, request::round));
    w->ask({&request::memory, 1});
    if (!l.stays)
        w->ask({&request::finish, 1});
    w->ask(std::string{request::memory, request::rest, request::memory});
    return [w]() -> child_result {
        try {
            double const peak = memory_of(*w).peak;
            double const after = memory_of(*w).now;
            return {.figures = {peak, after, memory_of(*w).now}};
        } catch (cannot_run const& reason) {
            return {.why = reason.what()};
        }
    };
}

experiment experiment_of(load const& l, effort how, bool weighs)
{
    experiment e{.asks = l.asks,
                 .figures = l.figures,
                 .entrants = {},
                 .in_brief = l.in_brief,
                 .weight = l.weight};
    for (preload const& with : preloads()) {
        e.entrants.push_back({.name = [&with] { return with.name; },
                              .prepare = [&with, l, how] { return prepare(with, l, how); },
                              .start_alone = [&with, l, how, weighs]() -> pending_result {
                                  if (!with.why.empty())
                                      return [&with] { return child_result{.why = with.why}; };
                                  return weighs ? start_weighing(with, l, how)
                                                : start_alone(with, l, how);
                              }});
    }
    return e;
}

} // namespace

std::vector<std::string> worker_command(task const& t, std::size_t figures, effort how)
{
    std::vector<std::string> words{program_folder() + "/mallard-bench-worker", std::string(t.job)};
    for (std::size_t const number : {t.bytes, t.most, t.count, t.threads, t.variant, t.times,
                                     figures, static_cast<std::size_t>(how.kind)})
        words.push_back(std::to_string(number));
    return words;
}

void insist_on(preload const& with)
{
    if (!with.why.empty())
        throw cannot_run(with.why);
}

experiment timed(load const& l, effort how)
{
    return experiment_of(l, how, false);
}

experiment weighed(load const& l, effort how)
{
    experiment e = experiment_of(l, how, true);
    e.fresh_process = true;
    e.at_once = l.what.threads > 1000 ? 1 : how.is_brief() ? 5 : 2;
    e.with_memory = false;
    e.once = how.is_smoke() || how.is_brief();
    e.rounds = 3;
    return e;
}

} // namespace mallard::bench
