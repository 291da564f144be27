// Where the blocks of a chunk are, for every size of block and chunk.
#include <mallard/detail/pool/pool_chunk.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace mallard;

class chunk_of_pool : public ::testing::TestWithParam<std::size_t> {
protected:
    std::size_t maps = GetParam();
};
INSTANTIATE_TEST_SUITE_P(with, chunk_of_pool, ::testing::Values(1, 2),
                         [](auto& of) { return of.param == 1 ? "free_bits" : "live_bits_too"; });

TEST_P(chunk_of_pool, has_room_for_as_many_blocks_as_its_bytes_are_said_to_hold)
{
    for (std::size_t align = 1; align <= 8192; align *= 2)
        for (std::size_t stride = align; stride < align * 40; stride += align * (1 + stride / 7))
            for (std::size_t const count : {1, 2, 3, 63, 64, 65, 128, 1000, 4097}) {
                std::size_t const bytes = chunk_plan::bytes_for(count, stride, align, maps);
                for (std::size_t address = 0; address < align; address += 8 + align / 5 / 8 * 8) {
                    chunk_plan const plan = chunk_plan::of(bytes, stride, align, maps, address);
                    ASSERT_GE(plan.count, count) << stride << " at " << align;
                    ASSERT_EQ((address + plan.slots_offset) % align, 0U);
                    ASSERT_GE(plan.slots_offset, pool_chunk::header_bytes(plan.count, maps));
                    ASSERT_LE(plan.slots_offset + plan.count * stride, bytes);
                }
            }
}

TEST_P(chunk_of_pool, wastes_less_than_two_blocks_and_what_alignment_costs)
{
    for (std::size_t const bytes : {200, 1000, 4096, 65536, 1 << 20})
        for (std::size_t stride = 1; stride <= 100; ++stride) {
            chunk_plan const plan = chunk_plan::of(bytes, stride, 1, maps, 0);
            std::size_t const used = plan.slots_offset + plan.count * stride;
            ASSERT_LE(used, std::max(bytes, plan.slots_offset));
            if (plan.count > 0) {
                ASSERT_LT(bytes - used, 2 * stride + 16) << bytes << " by " << stride;
            }
        }
}

TEST_P(chunk_of_pool, too_small_for_a_block_has_none)
{
    for (std::size_t bytes = 0; bytes < sizeof(pool_chunk) + 8; ++bytes)
        ASSERT_EQ(chunk_plan::of(bytes, 16, 16, maps, 0).count, 0U) << bytes;
}

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

TEST_P(chunk_of_pool, on_a_grid_keeps_header_and_blocks_apart_and_inside)
{
    std::vector<std::byte> memory(std::size_t{8} << 20);
    for (std::size_t const limit : {std::size_t{10'000}, std::size_t{1} << 20, unlimited})
        for (std::size_t const wish : {1, 1024, 4096, 65536, 262144})
            for (std::size_t stride = 1; stride < 300'000; stride += 1 + stride / 5) {
                slot_shape const shape = slot_shape::of(stride, 0, 1);
                chunk_grid const grid(wish, limit, shape, maps);
                std::size_t const whole = grid.whole_bytes(), align = grid.align();
                std::byte* at = align_up(memory.data(), align);
                for (int i = 0; i < 3; ++i, at += align_up(whole, align)) {
                    // A chunk may end early, but for those whose header has no fixed place.
                    std::size_t const bytes =
                        i == 2 ? (whole + grid.least_bytes(shape)) / 2 : whole;
                    if (bytes < grid.least_bytes(shape))
                        continue;
                    ASSERT_LE(at + bytes, memory.data() + memory.size());
                    pool_chunk* const c = grid.make_chunk(at, bytes, shape, maps);
                    auto* const header = reinterpret_cast<std::byte*>(c);
                    std::byte* const after = header + pool_chunk::header_bytes(c->count, maps);
                    ASSERT_EQ(grid.header_in(at), c);
                    ASSERT_TRUE(at <= header && after <= at + bytes);
                    ASSERT_TRUE(at <= c->begin() && c->begin() < at + stride);
                    ASSERT_LE(c->end(), at + bytes);
                    ASSERT_GE(c->capacity(), 1U);
                    ASSERT_LE(c->count, grid.slots(shape));
                    ASSERT_TRUE(c->begin() + c->hole_begin * stride <= header ||
                                c->hole_begin == 0);
                    ASSERT_LE(after, c->begin() + c->hole_end * stride);
                    for (std::size_t slot : {std::size_t{c->hole_end}, std::size_t{c->count} - 1}) {
                        std::byte* const block = c->begin() + slot * stride;
                        ASSERT_EQ(block - grid.offset_of(block), at) << stride << " of " << align;
                        ASSERT_EQ(grid.offset_of(block) / stride, slot);
                    }
                }
            }
}

TEST_P(chunk_of_pool, on_a_grid_is_mostly_blocks_and_hardly_larger_than_one_large_block)
{
    for (std::size_t stride = 16; stride <= std::size_t{1} << 30;
         stride += 8 + stride / 9 / 8 * 8) {
        slot_shape const shape = slot_shape::of(stride, 0, 1);
        chunk_grid const grid(65536, unlimited, shape, maps);
        std::size_t const whole = grid.whole_bytes();
        ASSERT_GE(grid.slots(shape) * stride, whole / 100 * 93) << stride;
        ASSERT_LE(whole, std::max(std::size_t{262144}, stride + 512)) << stride;
        ASSERT_LE(grid.align(), 262144U) << "which a source may have to find room for";
    }
}

TEST_P(chunk_of_pool, on_a_grid_has_a_shape_for_every_absurd_size)
{
    constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
    for (std::size_t const bytes : {most, most / 2, most / 4, most / 16, most / 1000})
        for (std::size_t const align :
             {most, most / 2, most / 8, std::size_t{1} << 40, std::size_t{0}}) {
            slot_shape const shape = slot_shape::of(bytes, align, 1);
            chunk_grid const grid(65536, unlimited, shape, maps);
            ASSERT_GE(grid.least_bytes(shape), bytes_max / 1024);
            ASSERT_GE(grid.slots(shape), 1U);
        }
}

} // namespace
