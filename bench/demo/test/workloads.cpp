// Tests that every strategy gives the same answer as a simple model.
#include <bench/demo/cell.hpp>
#include <bench/demo/strategies.hpp>
#include <bench/demo/words.hpp>

#include <gtest/gtest.h>

#include <map>
#include <set>

namespace {

using namespace mallard::demo;

const std::string source = [] {
    std::string text;
    for (int i = 0; i < 4'000; ++i)
        text += "int function_number_" + std::to_string(i * i % 1'999) + "(char* a[" +
                std::to_string(i) +
                "]) { return; } // a comment that is longer than a short string\n";
    return text;
}();
const std::string values = [] {
    std::string text = "[0";
    for (int i = 0; i < 1'000; ++i)
        text += ",{\"key of some length " + std::to_string(i) + "\":[" + std::to_string(i) +
                ",\"\\u00e4\",null]}";
    return text + "]";
}();
const std::vector<document> text = {{source, format::text}, {values, format::json}};

TEST(demo_workloads, give_the_same_answer_under_every_strategy)
{
    for (const auto& workload : workloads()) {
        auto const expected = workload.measure(counted::number, 1, text).says;
        EXPECT_NE(expected.checksum, 0);
        for (const auto& strategy : strategies())
            EXPECT_EQ(workload.measure(strategy.number, 1, text).says, expected)
                << workload.words.name << " under " << strategy.words;
    }
}

TEST(demo_workloads, free_all_memory)
{
    for (const auto& workload : workloads()) {
        auto const m = workload.measure(counted::number, 1, text);
        ASSERT_TRUE(m.counts) << workload.words.name;
        EXPECT_EQ(m.counts->allocations, m.counts->frees) << workload.words.name;
        EXPECT_EQ(m.counts->bytes_in_use, 0) << workload.words.name;
        EXPECT_LE(m.counts->bytes_at_peak, m.counts->bytes_total) << workload.words.name;
    }
}

TEST(demo_workloads, index_all_words_of_the_text)
{
    std::set<std::string_view> different;
    std::uint64_t count = 0;
    for (const auto& d : text)
        for_each_word(d.text, [&](std::string_view word, std::uint32_t) {
            different.insert(word);
            ++count;
            return true;
        });
    auto const says = workloads()[0].measure(1, 1, text).says;
    EXPECT_EQ(says.read, count);
    EXPECT_EQ(says.made, different.size());
}

TEST(demo_workloads, find_every_member_of_json)
{
    std::vector<document> const one = {text[1]};
    auto const says = workloads()[1].measure(1, 1, one).says;
    EXPECT_EQ(says.made, 1 + 1 + 1 + 1'000 * 6);
    EXPECT_EQ(says.found % 1'000, 0);
}

TEST(demo_workloads, use_memory_only_for_the_phrases_in_the_window)
{
    auto const m = workloads()[2].measure(counted::number, 1, text);
    EXPECT_LT(m.counts->bytes_at_peak, m.counts->bytes_total / 2);
}

TEST(demo_workloads, give_the_same_answer_in_every_round)
{
    for (const auto& workload : workloads())
        EXPECT_EQ(workload.measure(8, 3, text).says, workload.measure(8, 1, text).says);
}

TEST(demo_workloads, accept_text_without_words)
{
    std::vector<document> const nothing = {{"+-\n", format::text}};
    for (const auto& workload : workloads())
        for (const auto& strategy : strategies())
            EXPECT_EQ(workload.measure(strategy.number, 1, nothing).says,
                      workload.measure(counted::number, 1, nothing).says);
}

TEST(demo_cell, is_unchanged_by_printing_and_parsing)
{
    auto const m = workloads()[0].measure(counted::number, 1, text);
    auto const again = from_line(to_line(m));
    EXPECT_EQ(again.says, m.says);
    EXPECT_EQ(again.build, m.build);
    EXPECT_EQ(again.peak_rss_kib, m.peak_rss_kib);
    EXPECT_EQ(again.counts->bytes_total, m.counts->bytes_total);
}

} // namespace
