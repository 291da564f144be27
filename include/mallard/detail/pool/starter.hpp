// The first memory of a multipool, cut as asked, whatever the sizes.
#pragma once

#include <mallard/detail/pool/slot_shape.hpp>
#include <mallard/source.hpp>

#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace mallard {

/// Pieces of 1, 4, 16, 64 and 256 KiB, cut from the front. A chunk for each of its sizes
/// would cost a structure of few blocks more than the blocks: 64 strings have 24 sizes.
///
///     first                    cut                kinds               end
///       | 40 B | 24 B | 640 B | not cut yet ...   | 5 | 2 | 4 |
///
/// From the end down stands what size each block is of, a byte each, so that a piece can
/// be read block by block. A block that is freed is its pool's to give out again.
class starter {
    /// Half a KiB of small blocks, of which a structure most often has many; a quarter of
    /// larger ones, so that a few of them do not take the room of many.
    static constexpr std::size_t batch_bytes(slot_shape shape) noexcept
    {
        return shape.bytes <= cache_line_bytes ? 512 : 256;
    }

    struct piece {
        piece* next; // made after this one
        chunk taken;
        std::byte* cut = first();
        std::uint8_t* kinds = end();
        std::size_t in_use = 0; // blocks, while `trim` counts them; else 0

        std::byte* first() noexcept { return reinterpret_cast<std::byte*>(this + 1); }
        std::uint8_t* end() noexcept { return reinterpret_cast<std::uint8_t*>(this) + taken.bytes; }
        void rewind() noexcept
        {
            poison<false>(first(), static_cast<std::size_t>(cut - first()));
            cut = first();
            kinds = end();
        }
        bool has_room(slot_shape shape) const noexcept
        {
            return reinterpret_cast<std::byte*>(kinds) - align_up(cut, shape.align) >
                   static_cast<std::ptrdiff_t>(shape.bytes);
        }
        /// A batch, at most an eighth of the piece, at least one.
        std::span<std::byte> cut_off(slot_shape shape, std::size_t i) noexcept
        {
            std::byte* const first = align_up(cut, shape.align);
            auto const room = static_cast<std::size_t>(reinterpret_cast<std::byte*>(kinds) - first);
            std::size_t const wanted = std::min(taken.bytes / 8, batch_bytes(shape)) / shape.bytes;
            std::size_t const count =
                std::clamp<std::size_t>(wanted, 1, room / (shape.bytes + sizeof *kinds));
            cut = first + count * shape.bytes;
            kinds -= count;
            unpoison<false>(kinds, count); // which were part of a block before a reset
            std::memset(kinds, static_cast<int>(i), count);
            poison<false>(first, count * shape.bytes);
            return {first, cut};
        }
        bool has(const void* p) const noexcept
        {
            return static_cast<const void*>(this) < p &&
                   static_cast<const std::byte*>(p) <
                       reinterpret_cast<const std::byte*>(this) + taken.bytes;
        }
    };

    static constexpr std::size_t step_first = 1024, step_max = 262144, step_factor = 4;
    static constexpr std::size_t blocks_min = 4; // in a piece

public:
    constexpr starter() noexcept = default;
    constexpr starter(starter&& other) noexcept
        : first_(std::exchange(other.first_, nullptr)),
          current_(std::exchange(other.current_, nullptr)),
          step_(std::exchange(other.step_, step_first))
    {
    }

    /// Blocks of kind `i`, side by side; none when the pieces are used up, or the source is
    /// dry.
    template <class Source>
    std::span<std::byte> cut(Source& source, slot_shape shape, std::size_t i) noexcept
    {
        while (current_ == nullptr || !current_->has_room(shape))
            if (!go_on(source, shape.bytes))
                return {};
        return current_->cut_off(shape, i);
    }

    bool owns(const void* p) const noexcept { return find(p) != nullptr; }

    /// `f(piece, block, i)` for each block that was cut.
    template <class Shapes, class F>
    void for_each(const Shapes& shapes, F f) const
    {
        for (piece* at = first_; at != nullptr; at = at->next) {
            std::byte* block = at->first();
            for (std::uint8_t const* kind = at->end(); kind != at->kinds;) {
                std::size_t const i = *--kind;
                block = align_up(block, shapes[i].align);
                f(*at, block, i);
                block += shapes[i].bytes;
            }
        }
    }

    /// None of its blocks is in use any more.
    void reset() noexcept
    {
        for (piece* at = first_; at != nullptr; at = at->next)
            at->rewind();
        current_ = first_;
    }
    template <class Source>
    void release(Source& source) noexcept
    {
        for (piece* at = first_; at != nullptr;) {
            piece* const idle = at;
            at = at->next;
            give_back(source, idle);
        }
        forget();
    }
    constexpr void forget() noexcept
    {
        first_ = current_ = nullptr;
        step_ = step_first;
    }

    /// Gives back each piece of which no block is in use. The cores, which `for_each_core`
    /// visits, are trimmed without the blocks of pieces, which are in no chunk of theirs.
    template <class Source, class Shapes, class ForEachCore, class TrimCore>
    void trim(Source& source, const Shapes& shapes, ForEachCore for_each_core,
              TrimCore trim_core) noexcept
    {
        auto const is_mine = [this](const void* block) { return owns(block); };
        for_each(shapes, [](piece& of, void*, std::size_t) { of.in_use += 1; });
        for_each_core([&](auto& core) { core.gather(is_mine); });
        for_each_core([this](auto& core) {
            core.at_hand().for_each([this](const void* block) {
                if (piece* const of = find(block))
                    of->in_use -= 1;
            });
        });
        for_each_core([&](auto& core) {
            auto cut_here = core.at_hand().split(is_mine);
            trim_core(core);
            core.at_hand() =
                cut_here.split([this](const void* block) { return find(block)->in_use != 0; });
        });
        give_idle(source);
    }

    /// But for the blocks.
    void add_to(statistics& s) const noexcept
    {
        for (piece* at = first_; at != nullptr; at = at->next) {
            s.bytes_taken += at->taken.bytes;
            s.bytes_idle +=
                static_cast<std::size_t>(reinterpret_cast<std::byte*>(at->kinds) - at->cut);
            s.chunks += 1;
        }
    }

private:
    piece* find(const void* p) const noexcept
    {
        piece* at = first_;
        while (at != nullptr && !at->has(p))
            at = at->next;
        return at;
    }

    /// Whatever has no block in use, which `trim` has counted.
    template <class Source>
    void give_idle(Source& source) noexcept
    {
        current_ = nullptr;
        step_ = step_first;
        for (piece** link = &first_; *link != nullptr;) {
            piece* const at = *link;
            if (at->in_use == 0) {
                *link = at->next;
                give_back(source, at);
            } else {
                at->in_use = 0;
                current_ = at;
                step_ = at->taken.bytes * step_factor;
                link = &at->next;
            }
        }
    }

    template <class Source>
    static void give_back(Source& source, piece* idle) noexcept
    {
        chunk const taken = idle->taken;
        unpoison<false>(taken.data, taken.bytes);
        give(source, taken);
    }

    /// To the next piece, with room for four of `bytes`.
    template <class Source>
    bool go_on(Source& source, std::size_t bytes) noexcept
    {
        if (bytes > step_max / blocks_min)
            return false;
        if (current_ != nullptr && current_->next != nullptr) {
            current_ = current_->next;
            return true;
        }
        std::size_t step = step_;
        while (step < bytes * blocks_min)
            step *= step_factor;
        if (step > step_max)
            return false;
        chunk const taken = try_take(source, {step, alignof(piece)});
        if (taken.data == nullptr)
            return false;
        step_ = step * step_factor;
        auto* const made = ::new (taken.data) piece{nullptr, taken};
        (current_ == nullptr ? first_ : current_->next) = made;
        current_ = made;
        return true;
    }

    piece* first_ = nullptr; // the oldest
    piece* current_ = nullptr;
    std::size_t step_ = step_first; // bytes of the next piece
};

/// For a growth that is not the usual one, and for checks, which need to know of every
/// block whether it is in use.
struct no_starter {
    template <class Source>
    static constexpr std::span<std::byte> cut(Source&, slot_shape, std::size_t) noexcept
    {
        return {};
    }
    static constexpr bool owns(const void*) noexcept { return false; }
    template <class Shapes, class F>
    static constexpr void for_each(const Shapes&, F) noexcept
    {
    }
    static constexpr void reset() noexcept {}
    template <class Source>
    static constexpr void release(Source&) noexcept
    {
    }
    static constexpr void forget() noexcept {}
    template <class Source, class Shapes, class ForEachCore, class TrimCore>
    static void trim(Source&, const Shapes&, ForEachCore for_each_core, TrimCore trim_core) noexcept
    {
        for_each_core(trim_core);
    }
    static constexpr void add_to(statistics&) noexcept {}
};

} // namespace mallard
