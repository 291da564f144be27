#include <mallard/detail/base/bits.hpp>
#include <mallard/detail/base/fatal_objects.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {

using mallard::fatal_message;

TEST(fatal_message, writes_numbers_in_full)
{
    EXPECT_DEATH(
        (fatal_message() << std::size_t{0} << "," << std::size_t{10} << "," << SIZE_MAX).stop(),
        "^0,10,18446744073709551615$");
}

TEST(fatal_message, writes_addresses_as_printf_does)
{
    EXPECT_DEATH(
        (fatal_message() << reinterpret_cast<void*>(std::uintptr_t{0x7f31c0a04180})).stop(),
        "^0x7f31c0a04180$");
    EXPECT_DEATH((fatal_message() << reinterpret_cast<void*>(~std::uintptr_t{0})).stop(),
                 "^0xffffffffffffffff$");
    EXPECT_DEATH((fatal_message() << static_cast<void*>(nullptr)).stop(), "^0x0$");
}

TEST(fatal_message, is_truncated_at_the_end_of_its_buffer)
{
    std::string const line(100, 'x');
    EXPECT_DEATH(
        {
            fatal_message message;
            for (int i = 0; i < 10; ++i)
                message << line.c_str();
            message.stop();
        },
        "^x{512}$");
}

// A message has three lines: what happened, the state of things, and what to do next.
constexpr char third_line[] = "\n  help: [a-z`][^\n]*\n$";

TEST(fatal, messages_have_three_lines)
{
    int here = 0;
    EXPECT_DEATH(mallard::fatal_alignment(12),
                 std::string("^mallard: alignment 12 is not a power of two\n  [^\n]+") +
                     third_line);
    EXPECT_DEATH(
        mallard::fatal_double_free(&here, 64),
        std::string("^mallard: double free of 0x[0-9a-f]+ in a pool\n  [^\n]*64 bytes[^\n]+") +
            third_line);
    EXPECT_DEATH(mallard::fatal_interior_free(&here, &here, 48),
                 std::string("^mallard: free of 0x[0-9a-f]+, which is inside a block of a pool\n"
                             "  [^\n]*48 bytes[^\n]+") +
                     third_line);
    EXPECT_DEATH(mallard::fatal_foreign_free(&here),
                 std::string("^mallard: free of 0x[0-9a-f]+, which is not a block of this pool\n"
                             "  [^\n]+") +
                     third_line);
    EXPECT_DEATH(mallard::fatal_stale_mark(),
                 std::string("^mallard: rewind to a mark that is no longer valid in an arena\n"
                             "  [^\n]+") +
                     third_line);
    EXPECT_DEATH(mallard::fatal_out_of_memory(),
                 std::string("^mallard: out of memory in allocate[^\n]*\n  [^\n]+") + third_line);
}

TEST(fatal, error_stops_the_process_at_an_alignment_that_is_no_power_of_two)
{
    for (std::size_t align : {std::size_t{0}, std::size_t{3}, std::size_t{48}, SIZE_MAX}) {
        volatile std::size_t unknown = align; // hides the value from the compiler
        EXPECT_DEATH(mallard::layout(8, unknown), "is not a power of two");
    }
}

} // namespace
