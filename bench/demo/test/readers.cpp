// Tests the readers of words, blocks and JSON.
#include <bench/demo/block_reader.hpp>
#include <bench/demo/json_reader.hpp>
#include <bench/demo/words.hpp>

#include <bench/demo/strategy.hpp>

#include <gtest/gtest.h>

#include <random>

namespace {

using namespace mallard::demo;
using heap = strategy<1>;

/// Writes a tree on one line. Each node has its kind, its text, and its child nodes in angle
/// brackets.
std::string line_of(const node<heap>& at)
{
    constexpr std::string_view kinds[] = {"document", "block",   "statement", "word",
                                          "string",   "comment", "sign",      "object",
                                          "array",    "member",  "number",    "literal"};
    std::string line(kinds[static_cast<std::size_t>(at.is)]);
    if (!at.text.empty())
        line += " " + at.text;
    if (at.parts.empty())
        return line;
    line += " <";
    for (const auto& inner : at.parts)
        line += (&inner == &at.parts.front() ? "" : ", ") + line_of(inner);
    return line + ">";
}

std::string blocks(std::string_view text)
{
    return line_of(block_reader<heap>(text, {}).read());
}

std::string json(std::string_view text)
{
    return line_of(json_reader<heap>(text, {}).read());
}

TEST(demo_words, are_read_in_order_with_their_line_numbers)
{
    std::vector<std::pair<std::string, std::uint32_t>> seen;
    for_each_word("one, two_2\n\xc3\xa4rger\n", [&](std::string_view word, std::uint32_t line) {
        seen.emplace_back(word, line);
        return true;
    });
    decltype(seen) const expected = {{"one", 1}, {"two_2", 1}, {"\xc3\xa4rger", 2}};
    EXPECT_EQ(seen, expected);
}

TEST(demo_blocks, are_nested_like_the_brackets_of_the_text)
{
    EXPECT_EQ(blocks("f(a[1]); // done\n\"s\""),
              "document <statement <word f, block ( <statement <word a, block [ <statement <word "
              "1>>>>, sign ;>, "
              "statement <comment // done>, statement <string \"s\">>");
}

TEST(demo_blocks, without_a_closing_bracket_end_with_the_enclosing_block)
{
    EXPECT_EQ(blocks("{ ( a } b"),
              "document <statement <block { <statement <block ( <statement <word a>>>>, word b>>");
}

TEST(demo_blocks, treat_an_unmatched_bracket_as_text)
{
    EXPECT_EQ(blocks(") a"), "document <statement <sign ), word a>>");
}

TEST(demo_blocks, are_not_nested_beyond_the_maximum_depth)
{
    auto const line = blocks(std::string(100'000, '('));
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(line, 'b')), depth_max); // "block"
}

TEST(demo_blocks, lose_nothing_but_white_space_and_closing_brackets)
{
    std::mt19937 random(1);
    auto const all_text = [](auto self, const node<heap>& at) -> std::string {
        std::string text = at.text;
        for (const auto& inner : at.parts)
            text += self(self, inner);
        return text;
    };
    auto const kept = [](std::string text) {
        std::erase_if(text, [](char c) {
            return std::string_view(" \n)]}").find(c) != std::string_view::npos;
        });
        return text;
    };
    for (int i = 0; i < 2'000; ++i) {
        std::string text;
        for (int length = 0; length < 60; ++length)
            text += "ab (){}[]\"\\;/*#\n"[random() % 16];
        EXPECT_EQ(kept(all_text(all_text, block_reader<heap>(text, {}).read())), kept(text))
            << text;
    }
}

TEST(demo_json, is_read_as_a_tree)
{
    EXPECT_EQ(json(R"( {"a": [1, -2.5e+3, true], "b": {}} )"),
              "document <object <member a <array <number 1, number -2.5e+3, literal true>>, member "
              "b <object>>>");
}

TEST(demo_json, decodes_escapes_to_utf8)
{
    EXPECT_EQ(json(R"("\"\\\/\b\f\n\r\t\u0041\u00e4\u20ac\ud83e\udd86")"),
              "document <string \"\\/\b\f\n\r\tA\xc3\xa4\xe2\x82\xac\xf0\x9f\xa6\x86>");
}

TEST(demo_json, names_the_line_of_an_error)
{
    EXPECT_EQ(json_fault("{\n\"a\": 1,\n}"), "not JSON in line 3: a key begins with \"");
    EXPECT_EQ(json_fault("[1 2]"), "not JSON in line 1: expected , or ]");
    EXPECT_EQ(json_fault("\"\\u12x4\""), "not JSON in line 1: four hexadecimal digits follow \\u");
    EXPECT_EQ(json_fault("[1] 2"), "not JSON in line 1: something follows the value");
}

TEST(demo_json, is_rejected_if_invalid)
{
    for (std::string_view const text :
         {"", "[", "{", "{\"a\"", "{\"a\":", "[1,]", "01", "-", "1.", "1e", "nul", "\"", "\"\\q\"",
          "\"\\ud800\"", "\"\\ud800\\u0041\"", "\"a\nb\"", "tru e", "'a'", "]"})
        EXPECT_NE(json_fault(text), "") << text;
    EXPECT_NE(json_fault(std::string(100'000, '[')), "");
}

TEST(demo_json, is_accepted_if_valid)
{
    for (std::string_view const text :
         {"0", "-0.5E-3", "\"\"", "[]", "{}", " null\n", "[[[]]]", "\xef\xbb\xbf{}"})
        EXPECT_EQ(json_fault(text), "") << text;
}

} // namespace
