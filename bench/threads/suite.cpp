// Lists the experiments of the threads suite. The flow cases are first because their time is fixed.
// The others share the remaining time.
#include <bench/suites.hpp>
#include <bench/threads/contenders.hpp>

namespace mallard::bench {

std::vector<experiment> threads_suite(effort how)
{
    std::vector<experiment> all;
    append(all, threads_flow(how));
    append(all, threads_report002(how));
    append(all, threads_corrected(how));
    append(all, threads_hand_over(how));
    append(all, threads_random(how));
    append(all, threads_remote(how));
    append(all, threads_bursts(how));
    append(all, threads_churn(how));
    return all;
}

} // namespace mallard::bench
