// Declares the suites. A new suite needs a line here and a line in the table of main.cpp.
#pragma once

#include <bench/harness.hpp>

namespace mallard::bench {

std::vector<experiment> pool_suite(effort);
std::vector<experiment> arena_suite(effort);
std::vector<experiment> multipool_suite(effort);
std::vector<experiment> heap_suite(effort);
std::vector<experiment> threads_suite(effort);
std::vector<experiment> typed_suite(effort);
std::vector<experiment> malloc_suite(effort);
std::vector<experiment> programs_suite(effort);
std::vector<experiment> rss_suite(effort);
std::vector<experiment> demo_suite(effort);
std::vector<experiment> trace_suite(effort);
std::vector<experiment> replay_suite(effort);
std::vector<experiment> seeds_suite(effort);
std::vector<experiment> lakos1_suite(effort);
std::vector<experiment> lakos2_suite(effort);
std::vector<experiment> lakos3_suite(effort);
std::vector<experiment> lakos4_suite(effort);
std::vector<experiment> lakos5_suite(effort);

} // namespace mallard::bench
