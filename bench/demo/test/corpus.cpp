// Tests which text is collected, in which order, and which part of it is saved.
#include <bench/demo/corpus.hpp>
#include <bench/demo/error.hpp>
#include <bench/demo/test/expect.hpp>
#include <bench/demo/test/folder.hpp>

#include <gtest/gtest.h>

namespace {

using namespace mallard::demo;

constexpr std::size_t plenty = 1 << 20;

collection below(std::vector<std::string> roots, std::size_t bytes_max = plenty)
{
    return collect(roots, bytes_max);
}

std::string text_of(const collection& taken)
{
    std::string text;
    for (const auto& f : taken.files)
        text += f.text;
    return text;
}

template <class F>
std::string failure_of(F f)
{
    try {
        f();
    } catch (const failure& error) {
        return error.what();
    }
    return "no failure";
}

TEST(demo_corpus, reads_a_directory_in_sorted_order)
{
    folder const in;
    in.file("b.txt", "2");
    in.file("a/z.txt", "1");
    in.file("c.txt", "3");
    auto const taken = below({in.path()});
    EXPECT_EQ(text_of(taken), "123");
    EXPECT_EQ(taken.bytes(), 3);
}

TEST(demo_corpus, skips_empty_and_binary_files)
{
    folder const in;
    in.file("empty.txt", "");
    in.file("binary", std::string("a\0b", 3));
    in.file("c", "c");
    EXPECT_EQ(text_of(below({in.path()})), "c");
}

TEST(demo_corpus, does_not_follow_links)
{
    folder const in;
    in.file("a.txt", "a");
    std::filesystem::create_symlink(".", in.path() + "/loop");
    EXPECT_EQ(below({in.path()}).files.size(), 1);
}

TEST(demo_corpus, reads_valid_json_as_json_and_invalid_json_as_text)
{
    folder const in;
    in.file("a.json", "[1]");
    in.file("b.json", "[1\n");
    auto const taken = below({in.path()});
    ASSERT_EQ(taken.files.size(), 2);
    EXPECT_EQ(taken.files[0].is, format::json);
    EXPECT_EQ(taken.files[1].is, format::text);
}

TEST(demo_corpus, truncates_text_beyond_the_limit_at_the_end_of_a_line)
{
    folder const in;
    in.file("a", "one\ntwo\nthree\n");
    in.file("b", "four\n");
    EXPECT_EQ(text_of(below({in.path()}, 18)), "one\ntwo\n");
}

TEST(demo_corpus, uses_at_most_half_of_the_text_from_one_root_directory)
{
    folder const in;
    in.file("first/a", "one\ntwo\nthree\n");
    in.file("second/b", "four\n");
    EXPECT_EQ(text_of(below({in.path() + "/first", in.path() + "/second"}, 18)),
              "one\ntwo\nfour\n");
}

TEST(demo_corpus, ignores_a_root_directory_that_does_not_exist)
{
    folder const in;
    in.file("a", "a");
    EXPECT_EQ(text_of(below({in.path() + "/none", in.path()})), "a");
}

TEST(demo_corpus, reports_in_three_lines_that_there_is_no_text)
{
    folder const in;
    in.file("empty.txt", "");
    EXPECT_TRUE(matches(failure_of([&] { below({in.path()}); }),
                        "mallard-bench-demo: there is no text to work on in .*\n"
                        "  nothing was measured\n  help: .*"));
}

TEST(demo_corpus, has_the_same_text_when_it_is_collected_twice)
{
    auto const taken = collect_default(1 << 18);
    EXPECT_GT(taken.bytes(), 1 << 17);
    EXPECT_LE(taken.bytes(), 1 << 18);
    EXPECT_EQ(text_of(collect_default(1 << 18)), text_of(taken));
}

TEST(demo_corpus, is_unchanged_when_it_is_saved_and_opened)
{
    folder const in;
    in.file("a", "text");
    in.file("b.json", "{}");
    auto const file = in.path() + "/saved";
    save(below({in.path()}), file);
    auto const seen = open_saved(file);
    ASSERT_EQ(seen.size(), 2);
    EXPECT_EQ(seen[0].text, "text");
    EXPECT_EQ(seen[1].text, "{}");
    EXPECT_EQ(seen[1].is, format::json);
}

TEST(demo_corpus, rejects_a_file_that_is_not_a_saved_corpus)
{
    folder const in;
    std::string cut(32, '\0');
    cut[0] = 1;
    cut[8] = 100; // a document of 100 bytes, of which 8 are there
    for (const auto& file : {in.path() + "/none", in.file("short", "abc"),
                             in.file("text", "int main() { return 0; }\n"), in.file("cut", cut)})
        EXPECT_TRUE(matches(failure_of([&] { open_saved(file); }),
                            "mallard-bench-demo: the text in .* cannot be used: .*\n"
                            "  nothing was measured\n  help: mallard-bench-demo text .*"))
            << file;
}

} // namespace
