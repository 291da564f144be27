// Tests which text is collected and in which order, and the messages about files that are left out.
#include <bench/demo/corpus.hpp>
#include <bench/demo/error.hpp>
#include <bench/demo/test/expect.hpp>
#include <bench/demo/test/folder.hpp>

#include <gtest/gtest.h>

#include <unistd.h>

namespace {

using namespace mallard::demo;

collection named(std::vector<std::string> names, std::size_t bytes_max = named_bytes_max)
{
    return collect_named(names, bytes_max);
}

std::string failure_of(const std::vector<std::string>& names)
{
    try {
        named(names);
    } catch (const failure& error) {
        return error.what();
    }
    return "no failure";
}

TEST(demo_corpus, takes_a_directory_in_sorted_order)
{
    folder const in;
    in.file("b.txt", "2");
    in.file("a/z.txt", "1");
    in.file("c.txt", "3");
    auto const taken = named({in.path()});
    std::string text;
    for (const auto& f : taken.files)
        text += f.text;
    EXPECT_EQ(text, "123");
    EXPECT_EQ(taken.bytes(), 3);
}

TEST(demo_corpus, reports_the_names_of_empty_and_binary_files)
{
    folder const in;
    auto const taken = named(
        {in.file("empty.txt", ""), in.file("binary", std::string("a\0b", 3)), in.file("c", "c")});
    EXPECT_EQ(taken.files.size(), 1);
    ASSERT_EQ(taken.notes.size(), 2);
    EXPECT_TRUE(taken.notes[0].ends_with("empty.txt: skipped, it is empty"));
    EXPECT_TRUE(taken.notes[1].ends_with("binary: skipped, it is binary"));
}

TEST(demo_corpus, does_not_follow_links)
{
    folder const in;
    in.file("a.txt", "a");
    std::filesystem::create_symlink(".", in.path() + "/loop");
    EXPECT_EQ(named({in.path()}).files.size(), 1);
}

TEST(demo_corpus, reads_valid_json_as_json_and_invalid_json_as_text)
{
    folder const in;
    auto const taken = named({in.file("good.json", "[1]"), in.file("bad.json", "[1\n")});
    EXPECT_EQ(taken.files[0].is, format::json);
    EXPECT_EQ(taken.files[1].is, format::text);
    ASSERT_EQ(taken.notes.size(), 1);
    EXPECT_TRUE(has(taken.notes[0], "read as plain text, not JSON in line 2"));
}

TEST(demo_corpus, cuts_too_much_text_at_the_end_of_a_line)
{
    folder const in;
    in.file("a", "one\ntwo\nthree\n");
    in.file("b", "four\n");
    auto const taken = named({in.path()}, 9);
    ASSERT_EQ(taken.files.size(), 1);
    EXPECT_EQ(taken.files[0].text, "one\ntwo\n");
    ASSERT_EQ(taken.notes.size(), 2);
    EXPECT_TRUE(has(taken.notes[0], "cut after 8 bytes"));
    EXPECT_TRUE(has(taken.notes[1], "left out"));
}

TEST(demo_corpus, says_in_three_lines_that_a_file_is_missing)
{
    EXPECT_TRUE(
        matches(failure_of({"missing.txt"}),
                "mallard-demo: missing.txt: no such file.*\n  nothing was measured\n  help: .*"));
}

TEST(demo_corpus, reports_that_no_text_is_left)
{
    folder const in;
    EXPECT_TRUE(has(failure_of({in.file("empty.txt", "")}), "1 skipped; the first: "));
    EXPECT_TRUE(has(failure_of({"/dev/null"}), "neither a file nor a directory"));
}

TEST(demo_corpus, has_the_same_text_when_it_is_collected_twice)
{
    auto const taken = collect_default(1 << 18);
    EXPECT_GT(taken.bytes(), 1 << 17);
    EXPECT_LE(taken.bytes(), 1 << 18);
    EXPECT_EQ(collect_default(1 << 18).fingerprint(), taken.fingerprint());
}

TEST(demo_corpus, is_unchanged_when_it_is_read_through_its_descriptor)
{
    folder const in;
    auto const taken = named({in.file("a", "text"), in.file("b.json", "{}")});
    int const descriptor = share(taken);
    auto const seen = open_shared(descriptor);
    ASSERT_EQ(seen.size(), 2);
    EXPECT_EQ(seen[0].text, "text");
    EXPECT_EQ(seen[1].text, "{}");
    EXPECT_EQ(seen[1].is, format::json);
    ::close(descriptor);
}

} // namespace
