#include <mallard/debug/checked.hpp>
#include <mallard/multipool.hpp>

#include "../support/faults.hpp"

#include <gtest/gtest.h>

#include <optional>

namespace {

using namespace mallard;
using namespace mallard::testing;

using checked_multipool = checked<multipool<>>;

std::byte* some(checked_multipool& blocks, layout l)
{
    return static_cast<std::byte*>(blocks.allocate(l));
}

TEST(checked_blocks, reports_the_requested_layout_of_a_live_block)
{
    collected_faults faults;
    checked_multipool blocks({"blocks", faults});
    std::byte* const block = some(blocks, {40, 32});
    std::optional const asked = blocks.requested_layout(block);
    ASSERT_TRUE(asked && asked->bytes == 40 && asked->align == 32);
    EXPECT_FALSE(blocks.requested_layout(block + 1));
    blocks.deallocate(block, *asked);
    EXPECT_FALSE(blocks.requested_layout(block));
}

TEST(checked_blocks, checks_64_kibibytes_of_the_gap_before_a_strictly_aligned_block)
{
    collected_faults faults;
    checked_multipool blocks({"blocks", faults});
    constexpr std::ptrdiff_t watched_bytes = 1 << 16;
    std::byte* const block = some(blocks, {40, 1 << 18});
    block[-watched_bytes - 1] = std::byte{1};
    blocks.verify();
    flip(block - watched_bytes);
    blocks.deallocate(block, {40, 1 << 18});
    EXPECT_TRUE(faults.were(fault_kind::underrun, block, block - watched_bytes));
}

} // namespace
