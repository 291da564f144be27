// Random programs over an arena, compared with a model.
#pragma once

#include "asan.hpp"
#include "choices.hpp"
#include "model.hpp"
#include "sources.hpp"

#include <mallard/arena.hpp>

#include <memory>

namespace mallard::testing {

/// Runs a random program over an arena, and verifies after each step:
/// - Blocks are aligned, do not overlap, keep their bytes, and are inside the initial buffer or a
/// chunk of the source.
/// - A rewind frees exactly the blocks younger than its mark, and destroys owned objects newest
/// first.
/// - A failure has a reason and changes nothing.
/// - The totals add up.
template <class Choices, arena_options Options>
class arena_program {
    using arena_type = arena<ref<failing_source>, Options>;

public:
    explicit arena_program(Choices& choose) : choose_(choose)
    {
        std::size_t const offset = choose_(17);
        std::size_t const bytes = choose_(2) == 0 ? 0 : choose_(sizeof initial_ - offset);
        buffer_ = std::span(initial_).subspan(offset, bytes);
        arena_ = std::make_unique<arena_type>(buffer_, source_);
    }

    void run(std::size_t steps)
    {
        while (steps-- > 0 && choose_.more())
            step();
        verify();
        blocks_.clear();
        arena_.reset();
        require(owned_.empty(), "the destructor destroys owned objects");
    }

private:
    struct saved {
        typename arena_type::mark_type mark;
        std::size_t age;
        std::size_t owned;
    };

    /// An owned object. Its destructor verifies that it is the newest object that is left.
    struct witness {
        witness(std::vector<const witness*>& all, bool throws) : owned(all)
        {
            if (throws)
                throw 1;
            owned.push_back(this);
        }
        ~witness()
        {
            require(magic == 0x5ca1ab1e, "an owned object keeps its bytes");
            require(!owned.empty() && owned.back() == this, "the newest is destroyed first");
            owned.pop_back();
        }
        std::vector<const witness*>& owned;
        std::uint32_t magic = 0x5ca1ab1e;
    };

    void step()
    {
        failures_before_ = source_.failures();
        switch (choose_(32)) {
        default:
            return allocate(some_layout());
        case 12:
        case 13:
            return allocate_array();
        case 14:
        case 15:
        case 16:
        case 17:
            return expand();
        case 18:
        case 19:
        case 20:
            return deallocate();
        case 21:
            return own();
        case 22:
        case 23:
            return marks_.push_back({arena_->mark(), age_, owned_.size()});
        case 24:
        case 25:
            return rewind();
        case 26:
            return choose_(4) == 0 ? fail_now_and_then() : source_.fail_never();
        case 27:
            return choose_(8) == 0 ? verify() : verify_totals();
        case 28:
            return trim();
        case 29:
            return choose_(16) == 0 ? forget_all() : void();
        case 30:
            return choose_(8) == 0 ? move() : void();
        }
    }

    layout some_layout()
    {
        constexpr std::size_t ends[] = {2, 9, 65, 65, 257, 1025, 4097, 30000};
        std::size_t const align = std::size_t{1} << (choose_(8) == 0 ? choose_(14) : choose_(5));
        switch (choose_(256)) {
        case 0:
            return {bytes_max + 2 - choose_(8192), align};
        case 1:
            return {std::numeric_limits<std::size_t>::max() - choose_(8192), align};
        default:
            return {choose_(ends[choose_(std::size(ends))]), align};
        }
    }
    bool either() { return choose_(2) == 0; }

    template <class F>
    static void* or_null(F f)
    {
        try {
            return f();
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
    }

    void allocate(layout l)
    {
        statistics const before = arena_->stats();
        expect(either() ? arena_->try_allocate(l) : or_null([&] { return arena_->allocate(l); }), l,
               before);
    }

    void allocate_array()
    {
        std::size_t const count =
            choose_(64) == 0 ? bytes_max / 2 + choose_(bytes_max) : choose_(100);
        statistics const before = arena_->stats();
        expect(or_null([&] { return arena_->template make_array<std::uint32_t>(count).data(); }),
               layout_of<std::uint32_t>(count), before);
    }

    void expect(void* block, layout l, const statistics& before)
    {
        if (block == nullptr) {
            require(source_.failures() != failures_before_ || l.bytes > bytes_max / 2 ||
                        Options.grow.limit != bytes_max * 2 + 1,
                    "a refusal has a reason");
            require(before == arena_->stats(), "a failure changes nothing");
            return;
        }
        require(holds(block, l.bytes), "a block is in the buffer or in the source's memory");
        blocks_.add(block, l);
        ages_[block] = age_++;
    }

    bool holds(void* block, std::size_t bytes) const
    {
        auto* const p = static_cast<std::byte*>(block);
        return source_.holds(p, bytes) ||
               (buffer_.data() <= p && p + bytes <= buffer_.data() + buffer_.size());
    }

    /// Chooses a live block: in half of the cases the youngest one, as in real programs.
    void* some_block()
    {
        return blocks_[either() ? blocks_.count() - 1 : choose_(blocks_.count())];
    }

    void expand()
    {
        if (blocks_.empty())
            return;
        void* const block = some_block();
        layout const from = blocks_.layout_at(block);
        layout const to(choose_(8) == 0 ? some_layout().bytes : choose_(2 * from.bytes + 2),
                        choose_(8) == 0 ? 2 * from.align : from.align);
        bool const shrinks = to.bytes <= from.bytes;
        if (shrinks)
            blocks_.remove(block);
        bool const done = arena_->try_expand(block, from, to);
        require(!done || to.align <= from.align, "alignment does not grow in place");
        require(done || !shrinks || to.align > from.align, "a smaller size fits in place");
        if (!shrinks && done)
            blocks_.remove(block); // verifies that the block kept its bytes
        if (!shrinks && done)
            ages_[block] = age_++; // a rewind to an older mark shrinks the block again
        if (shrinks || done)
            blocks_.add(block, done ? to : from);
        require(holds(block, blocks_.layout_at(block).bytes), "a block grows within its chunk");
    }

    void deallocate()
    {
        if (blocks_.empty())
            return;
        void* const block = some_block();
        layout const l = blocks_.remove(block);
        ages_.erase(block);
        arena_->deallocate(block, l);
    }

    void own()
    {
        bool const throws = choose_(4) == 0;
        try {
            arena_->template own<witness>(owned_, throws);
        } catch (int) {
            require(throws, "it threw");
        } catch (const std::bad_alloc&) {
            require(source_.failures() != failures_before_ ||
                        Options.grow.limit != bytes_max * 2 + 1,
                    "a refusal has a reason");
        }
    }

    void rewind()
    {
        if (marks_.empty())
            return;
        marks_.resize(1 + (either() ? marks_.size() - 1 : choose_(marks_.size())));
        saved const to = marks_.back();
        if (either())
            marks_.pop_back(); // in the other cases the mark stays valid
        std::vector<void*> const freed = forget_since(to.age);
        arena_->rewind(to.mark);
        require(owned_.size() == to.owned, "objects owned since the mark are destroyed");
        // The freed blocks must be poisoned, unless an older block has used their address.
        for (const void* const block : freed)
            require(block < to.mark.cursor || block >= to.mark.end || is_free(block),
                    "what is rewound is poisoned");
    }

    /// Returns whether a block is poisoned. AddressSanitizer cannot poison single bytes of a group
    /// of eight bytes while others of the group are in use. Such a group may be at the end of the
    /// buffer.
    bool is_free(const void* block) const
    {
        const std::byte* const end = buffer_.data() + buffer_.size();
        return (block < end && block > end - 8) || is_poisoned(block, true);
    }

    /// Removes the blocks of this age and younger ones from the model, and returns them.
    std::vector<void*> forget_since(std::size_t age)
    {
        std::vector<void*> freed;
        for (auto const& [block, born] : ages_)
            if (born >= age)
                freed.push_back(block);
        for (void* const block : freed) {
            blocks_.remove(block);
            ages_.erase(block);
        }
        return freed;
    }

    void trim()
    {
        std::size_t const keep = choose_(2) * choose_(1 << 16);
        statistics const before = arena_->stats();
        arena_->trim(keep);
        statistics const after = arena_->stats();
        require(before.bytes_live == after.bytes_live, "trim keeps used chunks");
        require(after.chunks <= before.chunks, "trim only gives chunks back");
    }

    void forget_all()
    {
        std::vector<void*> const freed = forget_since(0);
        marks_.clear();
        if (either()) {
            std::size_t const held = source_.bytes();
            arena_->reset();
            require(source_.bytes() == held, "reset keeps the memory");
            for (const void* const block : freed)
                require(is_free(block), "memory is poisoned after a reset");
        } else {
            arena_->release();
            require(source_.bytes() == 0, "release gives everything back");
        }
        require(owned_.empty(), "owned objects are destroyed");
        verify_totals();
    }

    void move()
    {
        arena_type other(std::move(*arena_));
        require(arena_->stats() == statistics{}, "a moved-from allocator is empty");
        std::ignore = arena_->try_allocate({8});
        *arena_ = std::move(other);
    }

    void fail_now_and_then()
    {
        switch (choose_(3)) {
        case 0:
            return source_.fail_every(1 + choose_(4));
        case 1:
            return source_.fail_at(1 + choose_(4));
        case 2:
            return source_.fail_above(std::size_t{1} << choose_(16));
        }
    }

    void verify_totals() const
    {
        statistics const s = arena_->stats();
        require(s.bytes_taken == source_.bytes(), "taken bytes are counted");
        require(s.chunks == source_.live().size(), "chunks are counted");
        require(source_.bytes() <= Options.grow.limit, "the limit holds");
        std::size_t const held = s.bytes_taken + buffer_.size();
        std::size_t const lost = s.chunks * (sizeof(arena_chunk) + 15) + 2 * Options.min_align;
        require(s.bytes_live + s.bytes_idle <= held,
                "live and idle bytes are at most the bytes taken");
        require(s.bytes_live + s.bytes_idle + lost >= held, "only headers and padding are lost");
    }

    void verify() const
    {
        blocks_.verify();
        verify_totals();
    }

    Choices& choose_;
    failing_source source_;
    alignas(16) std::byte initial_[600];
    std::span<std::byte> buffer_;
    model blocks_;
    std::map<void*, std::size_t> ages_;
    std::size_t age_ = 0;
    std::vector<saved> marks_;
    std::vector<const witness*> owned_;
    std::size_t failures_before_ = 0;
    std::unique_ptr<arena_type> arena_;
};

} // namespace mallard::testing
