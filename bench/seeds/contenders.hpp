// The contenders of the seeds suite: Mallard's pool in each of its threading modes, the mallocs,
// and the pools of Boost and foonathan.
//
// Also declares the functions that make the experiments, one for each source file.
#pragma once

#include <bench/contenders/boost.hpp>
#include <bench/contenders/foonathan.hpp>
#include <bench/contenders/heaps.hpp>
#include <bench/contenders/threads.hpp>
#include <bench/entrants.hpp>
#include <bench/report000.hpp>

#include <string>

namespace mallard::bench {

/// Adds "pool" to the name of a pool, as in "mallard/pool/none" instead of "mallard/none", because
/// this suite has other kinds of contenders.
template <class Pool>
class named_as_pool : public Pool {
public:
    using Pool::Pool;
    static std::string name()
    {
        return "mallard/pool/" + Pool::name().substr(std::string_view("mallard/").size());
    }
};

template <sync Threads, reuse Order = pool_options{}.order>
using seed_pool =
    named_as_pool<typename pool_of_mode<Threads, Order>::template of<report_block_bytes>>;

using seed_mallocs = contender_list<heap_blocks<glibc_tag>::of<report_block_bytes>,
                                    heap_blocks<mimalloc_tag>::of<report_block_bytes>,
                                    heap_blocks<jemalloc_tag>::of<report_block_bytes>,
                                    heap_blocks<gperftools_tag>::of<report_block_bytes>>;

/// Contenders for one thread.
using seed_contenders = seed_mallocs::with<
    boost_pool<report_block_bytes>, foonathan_pool<fm::node_pool>::of<report_block_bytes>,
    seed_pool<sync::none, reuse::lifo>, seed_pool<sync::none>, seed_pool<sync::mutex>,
    seed_pool<sync::lock_free>, seed_pool<sync::thread_cached>>;

/// Contenders that several threads share.
using shared_seed_contenders =
    seed_mallocs::with<locked<boost_pool<report_block_bytes>>,
                       foonathan_locked_pool<report_block_bytes>, seed_pool<sync::mutex>,
                       seed_pool<sync::lock_free>, seed_pool<sync::thread_cached>>;

/// Returns ". Oversubscribed: 16 threads on 2 processors", or an empty text.
std::string oversubscribed(std::size_t threads);

std::vector<experiment> seeds_pbr(effort);
std::vector<experiment> seeds_pbr_threads(effort);
std::vector<experiment> seeds_pbr_growth(effort);
std::vector<experiment> seeds_fastalloc(effort);
std::vector<experiment> seeds_hakmem(effort);
std::vector<experiment> seeds_hakozuna(effort);

} // namespace mallard::bench
