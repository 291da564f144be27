// Where the blocks of a chunk are, for every size of block and chunk.
#include <mallard/pool_chunk.hpp>

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

TEST_P(chunk_of_pool, on_a_grid_keeps_header_and_blocks_apart_and_inside)
{
    std::vector<std::byte> memory(std::size_t{4} << 20);
    for (std::size_t const wish : {1, 1024, 4096, 65536, 262144})
        for (std::size_t stride = 1; stride < 1200; stride += stride < 64 ? 1 : 13) {
            chunk_grid const grid(wish, stride, maps);
            std::size_t const bytes = grid.chunk_bytes();
            ASSERT_TRUE(is_power_of_two(bytes));
            ASSERT_GE(bytes, wish);
            std::byte* at = align_up(memory.data(), bytes);
            for (; at + bytes <= memory.data() + memory.size(); at += bytes) {
                pool_chunk* const c = grid.make_chunk(at, stride, maps);
                auto* const header = reinterpret_cast<std::byte*>(c);
                std::byte* const after = header + pool_chunk::header_bytes(c->count, maps);
                ASSERT_EQ(grid.header_in(at), c);
                ASSERT_EQ(grid.offset_of(at + bytes - 1), bytes - 1);
                ASSERT_TRUE(at <= header && after <= at + bytes);
                ASSERT_TRUE(c->begin() == at && c->end() <= at + bytes);
                ASSERT_TRUE(c->begin() + c->hole_begin * stride <= header);
                ASSERT_TRUE(after <= c->begin() + c->hole_end * stride || c->hole_end == c->count);
                ASSERT_LE(after, c->end()) << "which poisoning relies on";
                ASSERT_GE(c->capacity(), 7U);
            }
        }
}

} // namespace
