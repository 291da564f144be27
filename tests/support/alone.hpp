// Runs a test again in a new process, for a test that must not run after other tests.
#pragma once

#include "child.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace mallard::testing {

/// Returns whether `alone_in_a_new_process` has started this process, which then runs one test
/// alone.
inline bool is_alone()
{
    return std::getenv("MALLARD_TEST_ALONE") != nullptr;
}

/// Runs the current test in a new process of the same program. fork alone is not enough for a test
/// in whose process no second thread may ever have run, because the C library remembers such a
/// thread, and fork then locks more. The new process prints to stderr, so that stdout lists each
/// test once. Returns "fine", or a description of the failure.
inline std::string alone_in_a_new_process()
{
    auto const* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string const filter =
        std::string("--gtest_filter=") + test->test_suite_name() + "." + test->name();
    return in_a_child([&] {
        ::setenv("MALLARD_TEST_ALONE", "1", 1);
        for (const char* const option : {"GTEST_OUTPUT", "GTEST_TOTAL_SHARDS", "GTEST_SHARD_INDEX"})
            ::unsetenv(option);
        ::dup2(STDERR_FILENO, STDOUT_FILENO);
        ::execl("/proc/self/exe", "test", filter.c_str(), static_cast<char*>(nullptr));
        ::_exit(127);
    });
}

} // namespace mallard::testing
