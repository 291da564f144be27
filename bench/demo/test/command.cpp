// Tests the command as a user runs it. MALLARD_DEMO is its path.
#include <bench/demo/test/expect.hpp>
#include <bench/demo/test/folder.hpp>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <sstream>
#include <thread>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

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
        std::string(std::getenv("MALLARD_DEMO")) + " " + arguments + " >" + out + " 2>" + err;
    int const status = std::system(command.c_str());
    return {WEXITSTATUS(status), content_of(out), content_of(err)};
}

const std::string tiny =
    "int main() { return answer(42); } // a comment longer than a short string\n";

TEST(demo_command, gives_the_same_answer_under_all_fourteen_strategies)
{
    folder const in;
    auto const done = run(in.file("tiny.cpp", tiny) + " --runs 1");
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_EQ(done.err, "");
    for (const char* const text :
         {"Word index", "Parse tree", "Phrase window", "all 14 agree", "AS14 "})
        EXPECT_TRUE(has(done.out, text));
}

TEST(demo_command, fits_a_terminal_of_a_hundred_columns)
{
    folder const in;
    std::istringstream lines(run(in.file("tiny.cpp", tiny) + " --runs 1").out);
    for (std::string line; std::getline(lines, line);) {
        auto const columns = std::ranges::count_if(line, [](char c) { return (c & 0xc0) != 0x80; });
        EXPECT_LE(columns, 100) << line;
    }
}

TEST(demo_command, prints_rows_of_json_and_the_recommendation_last)
{
    folder const in;
    auto const done = run(in.file("tiny.json", "{\"a\": [1, 2]}") + " --runs 1 --json");
    EXPECT_EQ(done.status, 0) << done.err;
    std::istringstream lines(done.out);
    std::vector<nlohmann::json> rows;
    for (std::string line; std::getline(lines, line);)
        rows.push_back(nlohmann::json::parse(line));
    ASSERT_EQ(rows.size(), 3 * 14 * 3 + 1);
    auto const last = rows.back();
    rows.pop_back();
    for (const auto& row : rows) {
        EXPECT_EQ(row["suite"], "demo");
        EXPECT_EQ(row["runs"], 1);
        EXPECT_TRUE(row["median"].is_number()) << row;
    }
    EXPECT_EQ(rows[18]["contender"], "mallard/AS7");
    ASSERT_EQ(last["recommendation"].size(), 3);
    EXPECT_EQ(last["recommendation"][0]["case"], "word-index");
    EXPECT_EQ(last["recommendation"][0]["strategy"], "AS1") << "one run is too few";
}

TEST(demo_command, rejects_a_missing_file_in_three_lines)
{
    auto const done = run("missing.txt");
    EXPECT_EQ(done.status, 1);
    EXPECT_EQ(done.out, "");
    EXPECT_TRUE(matches(done.err, "mallard-demo: missing.txt: no such file.*\n  .*\n  help: .*\n"));
}

TEST(demo_command, skips_an_empty_file_by_name)
{
    folder const in;
    auto const done = run(in.file("tiny.cpp", tiny) + " " + in.file("empty.txt", "") + " --runs 1");
    EXPECT_EQ(done.status, 0) << done.err;
    EXPECT_TRUE(has(done.out, "empty.txt: skipped, it is empty"));
}

TEST(demo_command, rejects_unknown_arguments_in_three_lines)
{
    for (const char* const arguments : {"--wrong", "--runs 0", "--runs many"}) {
        auto const done = run(arguments);
        EXPECT_EQ(done.status, 2) << arguments;
        EXPECT_TRUE(matches(done.err, "mallard-demo: .*\n  nothing was measured\n  help: .*\n"))
            << arguments;
    }
}

TEST(demo_command, leaves_no_process_behind_when_interrupted)
{
    ::prctl(PR_SET_CHILD_SUBREAPER, 1); // adopts processes that the demo leaves behind
    folder const in;
    auto const file = in.file("tiny.cpp", tiny);
    auto const out = in.path() + "/out";
    pid_t const demo = ::fork();
    if (demo == 0) {
        (void)!std::freopen(out.c_str(), "w", stdout);
        ::execl(std::getenv("MALLARD_DEMO"), "mallard-demo", file.c_str(), "--runs", "1000",
                nullptr);
        ::_exit(127);
    }
    std::this_thread::sleep_for(std::chrono::seconds(2));
    ::kill(demo, SIGINT);
    int status = 0;
    ASSERT_EQ(::waitpid(demo, &status, 0), demo);
    EXPECT_EQ(WEXITSTATUS(status), 130);
    EXPECT_EQ(::waitpid(-1, &status, WNOHANG), -1) << "a cell is still running";
    EXPECT_EQ(errno, ECHILD);
    EXPECT_TRUE(has(content_of(out), "Interrupted: "));
}

} // namespace
