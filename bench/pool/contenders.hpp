// The contenders of the pool suite. `Bytes` is the block size. The constructor of a contender
// receives the maximum number of blocks that the case will need. Only the hand-written lower bound
// uses that number.
#pragma once

#include <bench/contenders/boost.hpp>
#include <bench/contenders/foonathan.hpp>
#include <bench/contenders/heaps.hpp>
#include <bench/contenders/limits.hpp>
#include <bench/contenders/mallard.hpp>
#include <bench/entrants.hpp>

namespace mallard::bench {

template <std::size_t Bytes>
using pool_contenders = contender_list<
    typename heap_blocks<glibc_tag>::of<Bytes>, typename heap_blocks<mimalloc_tag>::of<Bytes>,
    typename heap_blocks<jemalloc_tag>::of<Bytes>, typename heap_blocks<gperftools_tag>::of<Bytes>,
    std_pool_blocks<Bytes>, boost_pool<Bytes>, boost_ordered_pool<Bytes>,
    boost_pool_resource_blocks<Bytes>, typename foonathan_pool<fm::node_pool>::of<Bytes>,
    typename foonathan_pool<fm::small_node_pool>::of<Bytes>,
    typename foonathan_pool<fm::array_pool>::of<Bytes>, inline_list<Bytes>,
    typename pool_of_constant<reuse::lifo>::of<Bytes>,
    typename pool_of_runtime<reuse::lifo>::of<Bytes>, typename pool_of_pmr<reuse::lifo>::of<Bytes>,
    typename pool_of_constant<reuse::ordered>::of<Bytes>,
    typename pool_of_runtime<reuse::ordered>::of<Bytes>,
    typename pool_of_constant<reuse::ordered, check::on>::of<Bytes>,
    typename pool_of_pmr<reuse::ordered>::of<Bytes>>;

/// The contenders of cases with very many blocks.
template <std::size_t Bytes>
using many_contenders = typename pool_contenders<Bytes>::template with<
    typename pool_of_huge_pages<reuse::lifo>::template of<Bytes>,
    typename pool_of_huge_pages<reuse::ordered>::template of<Bytes>>;

// Each of these functions returns the experiments of one source file of the suite.
std::vector<experiment> pool_report000(effort);
std::vector<experiment> pool_pairs(effort);
std::vector<experiment> pool_reuse(effort);
std::vector<experiment> pool_growth(effort);
std::vector<experiment> pool_sizes_small(effort);
std::vector<experiment> pool_sizes_large(effort);

} // namespace mallard::bench
