// Declares the jobs of a worker. Each source file has a table of its jobs.
#pragma once

#include <bench/worker/task.hpp>

#include <span>

namespace mallard::bench {

/// A job and its name. The function that `prepare` returns owns the allocated blocks, and frees
/// every block when the function is destroyed.
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
