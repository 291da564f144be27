// Tests the positions of the header and the blocks of a chunk, for every block size and chunk size.
#include <mallard/detail/pool/chunk_layout.hpp>

#include <gtest/gtest.h>

#include <vector>

namespace {

using namespace mallard;

constexpr std::size_t most = std::numeric_limits<std::size_t>::max();

/// The layouts of chunks whose header has `Maps` bitmaps.
template <std::size_t Maps>
struct with {
    static constexpr header_shape header{Maps};
    using plain = plain_chunks<header>;
    using masked = masked_chunks<header>;
};

struct names {
    template <class With>
    static std::string GetName(int)
    {
        return With::header.maps == 1 ? "free_bits" : "free_and_live_bits";
    }
};

using both = ::testing::Types<with<1>, with<2>>;

template <class With>
class plain_chunk : public ::testing::Test {};
TYPED_TEST_SUITE(plain_chunk, both, names);

template <class With>
class masked_chunk : public ::testing::Test {};
TYPED_TEST_SUITE(masked_chunk, both, names);

TYPED_TEST(plain_chunk, has_room_for_the_block_count_passed_to_bytes_for)
{
    using plain = typename TypeParam::plain;
    for (std::size_t align = 1; align <= 8192; align *= 2)
        for (std::size_t stride = align; stride < align * 40; stride += align * (1 + stride / 7))
            for (std::size_t const count : {1, 2, 3, 63, 64, 65, 128, 1000, 4097}) {
                slot_shape const shape{stride, align};
                std::size_t const bytes = plain::bytes_for(shape, count);
                for (std::size_t address = 0; address < align; address += 8 + align / 5 / 8 * 8) {
                    auto const placed = plain(shape).fit(bytes, address);
                    ASSERT_GE(placed.count, count) << stride << " at " << align;
                    ASSERT_EQ((address + placed.slots_offset) % align, 0U);
                    ASSERT_GE(placed.slots_offset,
                              pool_chunk::header_bytes(placed.count, TypeParam::header));
                    ASSERT_LE(placed.slots_offset + placed.count * stride, bytes);
                }
            }
}

TYPED_TEST(plain_chunk, wastes_less_than_two_blocks_and_the_padding)
{
    for (std::size_t const bytes : {200, 1000, 4096, 65536, 1 << 20})
        for (std::size_t stride = 1; stride <= 100; ++stride) {
            auto const plan = typename TypeParam::plain(slot_shape{stride, 1}).fit(bytes, 0);
            std::size_t const used = plan.slots_offset + plan.count * stride;
            ASSERT_LE(used, std::max(bytes, plan.slots_offset));
            if (plan.count > 0) {
                ASSERT_LT(bytes - used, 2 * stride + 16) << bytes << " by " << stride;
            }
        }
}

TYPED_TEST(plain_chunk, has_no_block_if_it_is_too_small_for_one)
{
    for (std::size_t bytes = 0; bytes < sizeof(pool_chunk) + 8; ++bytes)
        ASSERT_EQ(typename TypeParam::plain({16, 16}).fit(bytes, 0).count, 0U) << bytes;
}

TYPED_TEST(masked_chunk, does_not_overlap_header_and_blocks_or_exceed_its_bytes)
{
    std::vector<std::byte> memory(std::size_t{8} << 20);
    for (std::size_t const limit : {std::size_t{10'000}, std::size_t{1} << 20, most})
        for (std::size_t const wish : {1, 1024, 4096, 65536, 262144})
            for (std::size_t stride = 1; stride < 300'000; stride += 1 + stride / 5) {
                slot_shape const shape = slot_shape::of(stride, 0, 1);
                typename TypeParam::masked const layout(shape, wish, limit);
                std::size_t const whole = layout.whole_bytes(), align = layout.align();
                std::byte* at = align_up(memory.data(), align);
                for (int i = 0; i < 3; ++i, at += align_up(whole, align)) {
                    // The third chunk is shorter, if the layout permits short chunks.
                    std::size_t const bytes =
                        i == 2 ? (whole + layout.least_chunk().bytes) / 2 : whole;
                    if (bytes < layout.least_chunk().bytes)
                        continue;
                    ASSERT_LE(at + bytes, memory.data() + memory.size());
                    pool_chunk* const c = layout.make_chunk(at, bytes);
                    auto* const header = reinterpret_cast<std::byte*>(c);
                    std::byte* const after =
                        header + pool_chunk::header_bytes(c->count, TypeParam::header);
                    ASSERT_EQ(layout.header_in(at), c);
                    ASSERT_TRUE(at <= header && after <= at + bytes);
                    ASSERT_TRUE(at <= c->begin() && c->begin() < at + stride);
                    ASSERT_LE(c->end(), at + bytes);
                    ASSERT_GE(c->capacity(), 1U);
                    ASSERT_LE(c->count, layout.slots_max());
                    ASSERT_TRUE(c->begin() + c->hole_begin * stride <= header ||
                                c->hole_begin == 0);
                    ASSERT_LE(after, c->begin() + c->hole_end * stride);
                    for (std::size_t slot : {std::size_t{c->hole_end}, std::size_t{c->count} - 1}) {
                        std::byte* const block = c->begin() + slot * stride;
                        ASSERT_EQ(block - layout.offset_of(block), at) << stride << " of " << align;
                        ASSERT_EQ(layout.offset_of(block) / stride, slot);
                    }
                }
            }
}

TYPED_TEST(masked_chunk, consists_mostly_of_blocks_even_for_one_large_block)
{
    for (std::size_t stride = 16; stride <= std::size_t{1} << 30;
         stride += 8 + stride / 9 / 8 * 8) {
        slot_shape const shape = slot_shape::of(stride, 0, 1);
        typename TypeParam::masked const layout(shape, 65536, most);
        std::size_t const whole = layout.whole_bytes();
        ASSERT_GE(layout.slots_max() * stride, whole / 100 * 93) << stride;
        ASSERT_LE(whole, std::max(std::size_t{262144}, stride + 512)) << stride;
        ASSERT_LE(layout.align(), 262144U) << "a source may have to find an aligned range";
    }
}

TYPED_TEST(masked_chunk, has_a_layout_even_for_blocks_as_large_as_the_address_space)
{
    for (std::size_t const bytes : {most, most / 2, most / 4, most / 16, most / 1000})
        for (std::size_t const align :
             {std::bit_floor(most), std::size_t{1} << 62, std::size_t{1} << 60,
              std::size_t{1} << 40, std::size_t{0}}) {
            slot_shape const shape = slot_shape::of(bytes, align, 1);
            typename TypeParam::masked const layout(shape, 65536, most);
            ASSERT_GE(layout.least_chunk().bytes, bytes_max / 1024);
            ASSERT_GE(layout.slots_max(), 1U);
        }
}

} // namespace
