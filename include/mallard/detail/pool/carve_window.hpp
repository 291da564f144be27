// The slots of a chunk that are given out next, where none is free again.
#pragma once

#include <mallard/detail/pool/pool_chunk.hpp>

#include <span>

namespace mallard {

/// A stretch of slots that were never given out, and whose bits are ready. Taking
/// one moves a pointer; the slots themselves are not touched.
class carve_window {
public:
    /// Not when hidden, used up, or never opened.
    bool can_carve() const noexcept { return next_ != limit_; }
    bool is_used_up() const noexcept { return next_ == end_; }

    /// Only when `can_carve()`. `stride`: bytes of a slot.
    [[gnu::always_inline]] void* carve(std::size_t stride) noexcept
    {
        return std::exchange(next_, next_ + stride);
    }

    /// Blocks that are free again come first.
    void hide() noexcept { limit_ = next_; }
    void show() noexcept { limit_ = end_; }

    /// The next slots of `c`, which is not wholly carved yet, are to be given out.
    template <bool HasLiveBits>
    void open(pool_chunk& c, std::size_t stride) noexcept
    {
        std::size_t const first = c.carved;
        std::size_t const hole_or_end = first < c.hole_begin ? c.hole_begin : c.count;
        std::size_t const end = std::min(hole_or_end, first + slots_max);
        next_ = limit_ = c.slots + first * stride;
        end_ = c.slots + end * stride;
        c.template carve_to<HasLiveBits>(end);
    }

    /// The same for slots that are of no chunk of the pool.
    void open(std::span<std::byte> slots) noexcept
    {
        next_ = slots.data();
        limit_ = end_ = next_ + slots.size();
    }

    bool has(const void* p) const noexcept { return next_ <= p && p < end_; }
    std::byte* next() const noexcept { return next_; }
    std::size_t bytes() const noexcept { return static_cast<std::size_t>(end_ - next_); }

private:
    // Their bits are cleared together: 512 bytes, so no allocation takes long.
    static constexpr std::size_t slots_max = 4096;

    // next <= end, and limit is one of the two.
    std::byte* next_ = nullptr;
    std::byte* limit_ = nullptr;
    std::byte* end_ = nullptr;
};

} // namespace mallard
