// Tests the program that does one measurement. MALLARD_BENCH_DEMO is its path.
#include <bench/demo/cell.hpp>
#include <bench/demo/test/expect.hpp>
#include <bench/demo/test/folder.hpp>

#include <gtest/gtest.h>

#include <sstream>

#include <sys/wait.h>

namespace {

using namespace mallard::demo;

struct said {
    int status = 0;
    std::string out, err;
};

std::string content_of(const std::string& path)
{
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
}

said run(const std::string& arguments)
{
    folder const in;
    auto const out = in.path() + "/out", err = in.path() + "/err";
    auto const command =
        std::string(std::getenv("MALLARD_BENCH_DEMO")) + " " + arguments + " >" + out + " 2>" + err;
    int const status = std::system(command.c_str());
    return {WEXITSTATUS(status), content_of(out), content_of(err)};
}

TEST(demo_command, measures_what_the_workload_does_in_this_process)
{
    folder const in;
    auto const text = in.path() + "/text";
    EXPECT_EQ(run("text " + text).status, 0);
    auto const done = run("phrase-window 7 2 " + text);
    ASSERT_EQ(done.status, 0) << done.err;
    auto const m = from_line(done.out);
    EXPECT_EQ(m.says, workloads()[2].measure(7, 1, open_saved(text)).says);
    EXPECT_GT(m.seconds(), 0);
    EXPECT_GT(m.peak_rss_kib, 0);
    EXPECT_FALSE(m.counts);
}

TEST(demo_command, rejects_invalid_arguments_in_three_lines)
{
    folder const in;
    auto const file = in.file("text", "no saved text");
    for (const auto& arguments :
         {std::string(), "word-index 1 1 " + file, "word-index 15 1 " + file,
          "word-index 1 0 " + file, "word-index 1 1x " + file, "word-index -1 1 " + file,
          "words 1 1 " + file, std::string("text /no/folder/text")}) {
        auto const done = run(arguments);
        EXPECT_EQ(done.status, 2) << arguments;
        EXPECT_EQ(done.out, "") << arguments;
        EXPECT_TRUE(
            matches(done.err, "mallard-bench-demo: .*\n  nothing was measured\n  help: .*\n"))
            << arguments;
    }
}

} // namespace
