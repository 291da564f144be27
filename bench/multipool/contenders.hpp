// The contenders of the multipool suite. They are allocators for blocks of any size, and each block
// can be freed separately.
#pragma once

#include <bench/contenders/binding.hpp>
#include <bench/contenders/boost.hpp>
#include <bench/contenders/foonathan.hpp>
#include <bench/contenders/heaps.hpp>
#include <bench/contenders/mallard.hpp>
#include <bench/entrants.hpp>

namespace mallard::bench {

using multipool_contenders = contender_list<
    heap<glibc_tag>, heap<mimalloc_tag>, heap<jemalloc_tag>, heap<gperftools_tag>, std_pool,
    boost_unsync_pool, foonathan_collection, multipool_contender<plain_multipool_tag>,
    multipool_contender<arena_multipool_tag>, multipool_contender<ordered_multipool_tag>,
    multipool_pmr<plain_multipool_tag>, multipool_pmr<arena_multipool_tag>>;

// Each of these functions returns the experiments of one source file of the suite.
std::vector<experiment> multipool_pairs(effort);
std::vector<experiment> multipool_mixed(effort);
std::vector<experiment> multipool_containers(effort);

} // namespace mallard::bench
