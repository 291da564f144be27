// The jobs of a worker, a table for each file of them.
#pragma once

#include <bench/worker/task.hpp>

#include <span>

namespace mallard::bench {

/// What is prepared owns what it allocated: when it goes, every block is freed.
struct job {
    std::string_view name;
    round_function (*prepare)(task const&, effort);
};

std::span<const job> pair_jobs();
std::span<const job> bulk_jobs();
std::span<const job> replace_jobs();
std::span<const job> growth_jobs();
std::span<const job> thread_jobs();
std::span<const job> share_jobs();
std::span<const job> stress_jobs();
std::span<const job> rest_jobs();
std::span<const job> count_jobs();
std::span<const job> matrix_jobs();

} // namespace mallard::bench
