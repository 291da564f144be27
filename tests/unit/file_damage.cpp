// Tests files that were corrupted after a commit.
#include <mallard/persist/file_arena.hpp>

#include "../support/files.hpp"
#include "../support/length.hpp"

#include <gtest/gtest.h>
#include <spec_folder.hpp>

#include <array>
#include <bit>

namespace {

using namespace mallard::testing;
using mallard::file_access;
using mallard::file_arena;
using mallard::file_options;

constexpr std::size_t page = 4096;

/// A file with seven pages of data, made in three commits.
struct written_file {
    temporary_folder folder;
    std::string path = folder / "file";
    std::string bytes;
    std::string contents;

    written_file()
    {
        file_arena file;
        for (int commit = 0; commit < 3; ++commit) {
            EXPECT_TRUE(file.open(path.c_str())) << file.last_failure();
            auto* const block = static_cast<char*>(file.allocate({9000, 1}));
            for (int i = 0; i < 9000; ++i)
                block[i] = static_cast<char>(i * (commit + 3));
            EXPECT_TRUE(file.commit());
        }
        bytes = bytes_of(path);
        contents = contents_of(file);
        EXPECT_EQ(bytes.size(), (3 + 7) * page);
    }

    /// Replaces the bytes of the file, and opens the file.
    bool open(file_arena& file, const std::string& other, bool verify = false) const
    {
        file.close();
        write_bytes(path, other);
        return file.open(path.c_str(), {.relocate = true, .verify = verify, .sync = false});
    }
    std::string with(std::size_t at, unsigned char change) const
    {
        std::string changed = bytes;
        changed[at] = static_cast<char>(changed[at] ^ change);
        return changed;
    }
};

TEST(a_corrupt_file, opens_unchanged_when_a_bit_of_one_header_flips)
{
    written_file const given;
    file_arena file;
    for (std::size_t at = 0; at < 2 * page; at += stride(7)) {
        ASSERT_TRUE(given.open(file, given.with(at, static_cast<unsigned char>(1U << at % 8))))
            << at << ": " << file.last_failure();
        ASSERT_TRUE(contents_of(file) == given.contents) << at;
        ASSERT_TRUE(bytes_of(given.path) == given.bytes) << "the header is repaired, " << at;
    }
}

TEST(a_corrupt_file, is_rejected_when_both_headers_are_corrupt)
{
    written_file const given;
    file_arena file;
    for (std::size_t at = 0; at < page; at += at < 100 ? 1 : 97) {
        std::string changed = given.with(at, 4);
        changed[page + at] = static_cast<char>(changed[page + at] ^ 4);
        ASSERT_FALSE(given.open(file, changed)) << at;
        char const* const words = at < 8    ? "not a Mallard arena"
                                  : at < 12 ? "another version"
                                  : at < 16 ? "another page size"
                                            : "both headers";
        EXPECT_TRUE(says(file, words)) << at << ": " << file.last_failure();
        EXPECT_TRUE(bytes_of(given.path) == changed) << "a refused file stays as it is";
    }
    EXPECT_FALSE(given.open(file, std::string(100'000, 'x')));
    EXPECT_TRUE(says(file, "not a Mallard arena"));
    EXPECT_FALSE(given.open(file, std::string(8192, '\0')));
    EXPECT_FALSE(given.open(file, "x"));
}

TEST(a_corrupt_file, is_rejected_when_its_headers_are_from_another_machine)
{
    written_file const given;
    std::string turned = given.bytes;
    for (std::size_t copy : {std::size_t{0}, page})
        std::reverse(turned.begin() + static_cast<long>(copy),
                     turned.begin() + static_cast<long>(copy) + 8);
    file_arena file;
    EXPECT_FALSE(given.open(file, turned));
    EXPECT_TRUE(says(file, "other byte order")) << file.last_failure();
}

TEST(a_corrupt_file, is_rejected_when_it_is_truncated_anywhere)
{
    written_file const given;
    file_arena file;
    for (std::size_t length = 1; length < given.bytes.size(); ++length) {
        if (length % page % 509 > 2)
            continue;
        ASSERT_FALSE(given.open(file, given.bytes.substr(0, length))) << length;
        EXPECT_TRUE(says(file, length < page ? "both headers" : "truncated") ||
                    says(file, "not a Mallard arena"))
            << length << ": " << file.last_failure();
    }
    write_bytes(given.path, "");
    EXPECT_FALSE(file.open(given.path.c_str(), {.access = file_access::existing}));
    EXPECT_TRUE(says(file, "empty"));
}

TEST(a_corrupt_file, is_rejected_when_a_bit_of_its_checksums_or_first_page_flips)
{
    written_file const given;
    file_arena file;
    for (std::size_t at = 2 * page; at < 4 * page; at += stride(7)) {
        bool const is_used = at < 2 * page + 7 * 8 || at >= 3 * page;
        ASSERT_EQ(given.open(file, given.with(at, 16)), !is_used) << at;
        EXPECT_TRUE(!is_used || says(file, "corrupt"));
    }
}

TEST(a_corrupt_file, is_detected_by_verify_when_a_bit_of_its_data_flips)
{
    written_file const given;
    file_arena file;
    for (std::size_t at = 4 * page; at < given.bytes.size(); at += 61) {
        std::string const changed = given.with(at, static_cast<unsigned char>(1U << at % 8));
        ASSERT_TRUE(given.open(file, changed)) << at << ": " << file.last_failure();
        EXPECT_FALSE(file.verify());
        EXPECT_TRUE(says(file, "damaged_at()"));
        EXPECT_EQ(file.damaged_at(), at / page * page);
        EXPECT_FALSE(given.open(file, changed, true)) << "or when it is opened";
        EXPECT_EQ(file.damaged_at(), at / page * page);
    }
}

TEST(a_corrupt_file, is_detected_when_pages_are_swapped)
{
    written_file const given;
    std::string changed = given.bytes;
    std::swap_ranges(changed.begin() + 5 * page, changed.begin() + 6 * page,
                     changed.begin() + 6 * page);
    file_arena file;
    EXPECT_FALSE(given.open(file, changed, true));
    EXPECT_EQ(file.damaged_at(), 5 * page);
}

TEST(a_corrupt_file, opens_with_any_bytes_after_its_end)
{
    written_file const given;
    file_arena file;
    ASSERT_TRUE(given.open(file, given.bytes + std::string(10'000, 'x')));
    EXPECT_EQ(bytes_of(given.path).size(), given.bytes.size()) << "the file is truncated";
    EXPECT_TRUE(file.verify());
}

// ---- the format in spec/file_arena.md, tested with a file that is part of the tests ----

} // namespace

// The file stores a hash of the name of its root type. The type is in a named namespace, because
// compilers spell an unnamed namespace differently.
namespace golden_file {
struct root {
    std::uint64_t number;
    std::array<char, 16> text;
};
} // namespace golden_file

namespace {

std::string golden_bytes()
{
    return bytes_of(std::string(spec_folder) + "/file_arena.golden");
}

using golden = golden_file::root;

constexpr golden golden_root{0x0123456789abcdef, {"golden"}};

std::uint64_t word(const std::string& bytes, std::size_t at)
{
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, 8);
    return value;
}

std::uint64_t mixed(std::uint64_t x)
{
    for (int i = 0; i < 2; ++i) {
        x ^= x >> 32;
        x *= 0xd6e8feb86659fd93;
    }
    return x ^ x >> 32;
}

std::uint64_t checksum(std::uint64_t seed, const std::string& bytes)
{
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
    std::uint64_t lanes[4] = {seed, seed + odd, seed + 2 * odd, seed + 3 * odd};
    for (std::size_t at = 0; at < bytes.size(); at += 8) {
        std::uint64_t& lane = lanes[at / 8 % 4];
        lane = std::rotl((lane ^ word(bytes, at)) * odd, 29);
    }
    std::uint64_t sum = seed;
    for (std::uint64_t const lane : lanes)
        sum = std::rotl((sum ^ lane) * odd, 29);
    return mixed(sum);
}

TEST(the_file_format, matches_the_golden_file)
{
    std::string const bytes = golden_bytes();
    ASSERT_EQ(bytes.size(), 4 * page);
    std::string header = bytes.substr(0, page);
    EXPECT_TRUE(bytes.substr(page, page) == header);
    EXPECT_EQ(header.substr(0, 8), "\x7fmallard");
    EXPECT_EQ(word(header, 8), 1U | std::uint64_t{4096} << 32);
    EXPECT_EQ(word(header, 24), 1U) << "commits";
    EXPECT_EQ(word(header, 32), 1U) << "pages";
    std::uint64_t const first = checksum(0, bytes.substr(3 * page));
    EXPECT_EQ(word(bytes, 2 * page), first);
    EXPECT_EQ(word(header, 40), mixed(first ^ mixed(1))) << "digest";
    std::uint64_t const check = word(header, page - 8);
    header.replace(page - 8, 8, 8, '\0');
    EXPECT_EQ(checksum(word(header, 0), header), check);
    EXPECT_EQ(word(bytes, 3 * page), 64 + sizeof(golden)) << "used";
    EXPECT_EQ(word(bytes, 3 * page + 16), 64U) << "root";
}

TEST(the_file_format, is_written_exactly_as_in_the_golden_file)
{
    temporary_folder const folder;
    file_arena file;
    ASSERT_TRUE(file.open((folder / "file").c_str()));
    ASSERT_NE(file.root_or_make<golden>(golden_root), nullptr);
    ASSERT_TRUE(file.commit());
    std::string made = bytes_of(folder / "file"), given = golden_bytes();
    ASSERT_EQ(made.size(), given.size());
    // Skips the two values that may differ: the address, and the checksum of the header.
    for (std::size_t const place_of : {16U, 4088U}) {
        made.replace(place_of, 8, 8, '\0').replace(page + place_of, 8, 8, '\0');
        given.replace(place_of, 8, 8, '\0').replace(page + place_of, 8, 8, '\0');
    }
    EXPECT_TRUE(made == given);
}

TEST(the_file_format, of_the_golden_file_can_be_read)
{
    temporary_folder const folder;
    std::string const path = folder / "file";
    write_bytes(path, golden_bytes());
    file_arena file;
    ASSERT_TRUE(file.open(path.c_str(), {.relocate = true, .verify = true})) << file.last_failure();
    golden const* const root = file.root<golden>();
    ASSERT_NE(root, nullptr) << file.last_failure();
    EXPECT_EQ(root->number, golden_root.number);
    EXPECT_EQ(root->text, golden_root.text);
}

} // namespace
