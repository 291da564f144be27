// The contenders of the threads suite, with blocks of 64 bytes. The constructor of a contender
// receives the maximum number of blocks that a thread will hold. Only hand-written lower bounds use
// that number.
#pragma once

#include <bench/contenders/foonathan.hpp>
#include <bench/contenders/heaps.hpp>
#include <bench/contenders/limits.hpp>
#include <bench/contenders/threads.hpp>
#include <bench/entrants.hpp>

namespace mallard::bench {

inline constexpr std::size_t block_bytes = 64;

using none_contender = pool_of_mode<sync::none>::of<block_bytes>;
using cached_contender = pool_of_mode<sync::thread_cached>::of<block_bytes>;

using shared_contenders = contender_list<
    heap_blocks<glibc_tag>::of<block_bytes>, heap_blocks<mimalloc_tag>::of<block_bytes>,
    heap_blocks<jemalloc_tag>::of<block_bytes>, heap_blocks<gperftools_tag>::of<block_bytes>,
    std_sync_pool_blocks<block_bytes>, locked<std_pool_blocks<block_bytes>>,
    locked<boost_pool<block_bytes>>, boost_lockfree_pool<block_bytes>,
    foonathan_locked_pool<block_bytes>, pool_of_mode<sync::mutex>::of<block_bytes>,
    pool_of_mode<sync::mutex, reuse::lifo>::of<block_bytes>,
    pool_of_mode<sync::lock_free>::of<block_bytes>, cached_contender>;

using all_contenders = shared_contenders::with<none_contender>;

/// Contenders for blocks of any size.
using any_size_contenders =
    contender_list<heap<glibc_tag>, heap<mimalloc_tag>, heap<jemalloc_tag>, heap<gperftools_tag>,
                   std_sync_pool, multipool_of_mode<sync::mutex>,
                   multipool_of_mode<sync::thread_cached>>;

/// Makes entrants for all contenders and for those in `More`. The pool for one thread takes part
/// with one thread, or with one pool for each thread. In other cases its result has the reason
/// instead of a figure.
template <class... More, class Body>
std::vector<entrant> entrants_for(demand wanted, Body body)
{
    if (wanted.threads > 1 && !wanted.crosses)
        return entrants_of(shared_contenders::with<one_a_thread<none_contender>, More...>{}, wanted,
                           body);
    return entrants_of(all_contenders::with<More...>{}, wanted, body);
}

/// Adds the number of threads to a case name, as "/T4".
inline std::string threads_name(std::string const& what, std::size_t threads)
{
    return what + "/T" + std::to_string(threads);
}

/// Returns the figures of most cases: the wall time and the CPU time of one operation. Wall time is
/// divided by the operations of all threads together.
inline std::vector<figure> costs(std::string const& case_name, std::size_t threads,
                                 const char* variant = "")
{
    int const count = static_cast<int>(threads);
    return {{case_name, "ns_per_op", variant, count}, {case_name, "cpu_ns_per_op", variant, count}};
}

// Each of these functions returns the experiments of one source file of the suite.
std::vector<experiment> threads_flow(effort);
std::vector<experiment> threads_report002(effort);
std::vector<experiment> threads_corrected(effort);
std::vector<experiment> threads_hand_over(effort);
std::vector<experiment> threads_random(effort);
std::vector<experiment> threads_remote(effort);
std::vector<experiment> threads_bursts(effort);
std::vector<experiment> threads_churn(effort);

} // namespace mallard::bench
