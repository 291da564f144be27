#include "litter.hpp"

#include "calls.hpp"
#include "random.hpp"

namespace mallard::replay {
namespace {

struct litter_block {
    void* at;
    std::uint64_t bytes;
};

void touch_new(touch touched, litter_block const& block) noexcept
{
    if (block.at == nullptr || touched == touch::none)
        return;
    if (touched == touch::all)
        touch_all::part<real_calls>(block.at, 0, block.bytes);
    else
        touch_pages::part<real_calls>(block.at, 0, block.bytes);
}

} // namespace

litter_left make_litter(stream const& of, check_result const& known, options const& chosen) noexcept
{
    litter_left result;
    if (!chosen.has_litter || known.sampled() == 0)
        return result;
    std::size_t const count = of.header().blocks_peak;
    table<litter_block> const blocks(count, "the addresses of the litter");
    random_numbers random;
    for (litter_block& block : blocks) {
        block.bytes = known.sizes[random.below(known.sampled())];
        block.at = std::malloc(block.bytes);
        touch_new(chosen.touch, block);
    }
    // A partial Fisher-Yates shuffle chooses the blocks to free, and moves them to the front.
    auto const kept = static_cast<std::size_t>(static_cast<double>(count) * chosen.litter);
    for (std::size_t i = 0; i < count - kept; ++i) {
        std::swap(blocks[i], blocks[i + random.below(count - i)]);
        std::free(blocks[i].at);
    }
    result.made = count;
    result.left = kept;
    for (std::size_t i = count - kept; i < count; ++i)
        result.bytes += blocks[i].bytes;
    return result;
}

} // namespace mallard::replay
