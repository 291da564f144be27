#include <mallard/detail/base/size_class.hpp>

#include <gtest/gtest.h>
#include <spec_folder.hpp>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace {

using mallard::align_up;
using mallard::layout;
using mallard::size_class;

constexpr std::size_t classes = size_class::of(1 << 20) + 1;

std::filesystem::path spec(const char* name)
{
    return std::filesystem::path(spec_folder) / name;
}

TEST(size_class, equals_the_list_in_the_specification)
{
    std::ifstream file(spec("size_classes.csv"));
    ASSERT_TRUE(file) << spec("size_classes.csv");
    std::string line;
    std::getline(file, line);
    EXPECT_EQ(line, "index,bytes,align");
    std::size_t index = 0;
    for (; std::getline(file, line); ++index) {
        std::ostringstream ours;
        ours << index << ',' << size_class::bytes(index) << ',' << size_class::align(index);
        EXPECT_EQ(line, ours.str());
    }
    EXPECT_EQ(index, size_class::of(32768) + 1);
}

TEST(size_class, is_the_smallest_class_for_each_size)
{
    for (std::size_t bytes = 1; bytes <= 1 << 20; bytes += bytes < 10000 ? 1 : 37) {
        std::size_t const index = size_class::of(bytes);
        ASSERT_LT(index, classes);
        ASSERT_GE(size_class::bytes(index), bytes);
        if (index > 0) {
            ASSERT_LT(size_class::bytes(index - 1), bytes);
        }
    }
    EXPECT_EQ(size_class::of(0), size_class::of(1));
}

TEST(size_class, wastes_at_most_7_bytes_or_an_eighth_above_128_bytes)
{
    for (std::size_t bytes = 1; bytes <= 1 << 16; ++bytes) {
        std::size_t const waste = size_class::bytes(size_class::of(bytes)) - bytes;
        ASSERT_LE(waste, bytes <= 128 ? 7 : bytes / 8) << bytes;
    }
}

TEST(size_class, is_aligned_to_the_largest_power_of_two_that_divides_its_size)
{
    for (std::size_t index = 0; index < classes; ++index) {
        std::size_t const bytes = size_class::bytes(index), align = size_class::align(index);
        EXPECT_EQ(bytes % align, 0U);
        EXPECT_NE(bytes % (2 * align), 0U);
    }
}

TEST(size_class, the_size_class_of_a_layout_satisfies_its_size_and_alignment)
{
    for (std::size_t align = 1; align <= 4096; align *= 2)
        for (std::size_t bytes = 0; bytes <= 5000; ++bytes) {
            std::size_t const index = size_class::of(layout(bytes, align));
            ASSERT_GE(size_class::bytes(index), bytes);
            ASSERT_EQ(size_class::align(index) % align, 0U) << bytes << " at " << align;
        }
}

TEST(size_class, of_a_layout_is_the_smallest_that_is_aligned_for_it)
{
    for (std::size_t align = 1; align <= 4096; align *= 2)
        for (std::size_t bytes = 1; bytes <= 5000; ++bytes)
            for (std::size_t i = 0; i < size_class::of(layout(bytes, align)); ++i)
                ASSERT_FALSE(size_class::bytes(i) >= bytes && size_class::align(i) >= align)
                    << bytes << " at " << align;
}

} // namespace
