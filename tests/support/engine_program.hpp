// Random programs over the malloc engine. Each block records its size and a stamp, and the thread
// that frees the block checks them.
#pragma once

#include "../../src/heap/large.hpp"
#include "../../src/heap/requests.hpp"
#include "../../src/heap/slice_heap.hpp"
#include "../../src/heap/threads.hpp"
#include "choices.hpp"
#include "require.hpp"

#include <atomic>
#include <cstring>
#include <vector>

namespace mallard::testing {

/// A block that starts with its size and a stamp. The stamp is repeated every 512 bytes and at the
/// end of the block.
class stamped {
public:
    static constexpr std::size_t bytes_min = 16;

    /// Writes size and stamp into a block that has room for `bytes`.
    static void write(void* block, std::size_t bytes, std::uint64_t stamp)
    {
        auto* const words = static_cast<std::uint64_t*>(block);
        words[0] = bytes;
        words[1] = stamp;
        for (std::size_t i = 64; i < bytes / 8; i += 64)
            words[i] = stamp + i;
        if (std::size_t const last = bytes / 8 - 1; last > 1)
            words[last] = stamp;
    }

    /// Returns whether the first `to` bytes are unchanged since `write`.
    static bool is_whole(const void* block, std::size_t to)
    {
        auto const* const words = static_cast<const std::uint64_t*>(block);
        std::uint64_t const stamp = words[1];
        std::size_t const bytes = words[0], last = bytes / 8 - 1;
        for (std::size_t i = 64; i < bytes / 8 && 8 * i + 8 <= to; i += 64)
            if (words[i] != stamp + i && i != last)
                return false;
        return last <= 1 || bytes > to || words[last] == stamp;
    }

    static std::size_t bytes(const void* block) { return *static_cast<const std::size_t*>(block); }
};

/// Chooses mostly small sizes, and sometimes a size of each other kind of block.
inline std::size_t some_size(seeded& choose)
{
    std::size_t const kind = choose(1000);
    std::size_t const below = kind < 700   ? 1024
                              : kind < 900 ? 32 * 1024
                              : kind < 990 ? std::size_t{1} << 20
                              : kind < 998 ? std::size_t{4} << 20
                                           : std::size_t{36} << 20;
    return stamped::bytes_min + choose(below);
}

/// One thread of a random program. With `refusals`, its allocations may fail.
class engine_user {
public:
    engine_user(std::uint64_t seed, bool refusals = false) : choose_(seed), refusals_(refusals) {}

    seeded& choose() { return choose_; }
    std::size_t refused() const { return refused_; }

    void* make()
    {
        std::size_t const bytes = some_size(choose_);
        void* block = nullptr;
        switch (choose_(8)) {
        case 0: {
            std::size_t const align = std::size_t{1} << choose_(bytes < 4096 ? 18 : 13);
            block = engine::allocate_aligned(bytes, align);
            require(reinterpret_cast<std::uintptr_t>(block) % align == 0, "a block is aligned");
            break;
        }
        case 1:
            block = engine::allocate_zeroed(bytes);
            require(block == nullptr || reads_as_zero(block, bytes), "a zeroed block is zero");
            break;
        default:
            block = engine::allocate(bytes);
        }
        if (!was_given(block))
            return nullptr;
        require(engine::usable_bytes(block, "a test") >= bytes, "a block is large enough");
        stamped::write(block, bytes, choose_(~std::uint32_t{0}));
        return block;
    }

    void end(void* block)
    {
        if (block == nullptr)
            return;
        check(block, stamped::bytes(block));
        if (choose_(4) == 0)
            engine::deallocate_sized(block, engine::usable_bytes(block, "a test"));
        else
            engine::deallocate(block);
    }

    /// Resizes a block and returns it. The block may have moved.
    void* resize(void* block)
    {
        if (block == nullptr)
            return make();
        std::size_t const now = stamped::bytes(block);
        // Half of the new sizes are near the old one, so that blocks are resized in place.
        std::size_t const bytes =
            choose_(2) == 0 ? some_size(choose_) : stamped::bytes_min + choose_(now * 2);
        check(block, now);
        void* const other = engine::reallocate(block, bytes);
        if (!was_given(other)) {
            require(bytes > now, "a block can always be made smaller");
            check(block, now);
            return block;
        }
        check(other, std::min(now, bytes));
        stamped::write(other, bytes, choose_(~std::uint32_t{0}));
        return other;
    }

private:
    static bool reads_as_zero(const void* block, std::size_t bytes)
    {
        auto const* const all = static_cast<const unsigned char*>(block);
        for (std::size_t i = 0; i < bytes; i += i < 4096 ? 1 : 509)
            if (all[i] != 0)
                return false;
        return all[bytes - 1] == 0;
    }
    static void check(const void* block, std::size_t to)
    {
        require(stamped::is_whole(block, to), "no other thread wrote into a block");
    }
    bool was_given(const void* block)
    {
        refused_ += block == nullptr;
        require(block != nullptr || refusals_, "an allocation succeeds");
        return block != nullptr;
    }

    seeded choose_;
    bool refusals_;
    std::size_t refused_ = 0;
};

/// Blocks that any thread may remove and replace by other blocks.
class engine_market {
public:
    explicit engine_market(std::size_t size) : blocks_(size) {}
    engine_market(const engine_market&) = delete;
    engine_market& operator=(const engine_market&) = delete;
    ~engine_market() { clear(); }

    void* exchange(std::size_t i, void* block) { return blocks_[i].exchange(block); }
    std::size_t size() const { return blocks_.size(); }

    /// Does one random operation of a thread.
    void trade(engine_user& user)
    {
        std::size_t const here = user.choose()(size());
        std::size_t const there = user.choose()(size());
        switch (user.choose()(4)) {
        case 0:
            return user.end(exchange(here, nullptr));
        case 1: {
            void* const other = user.resize(exchange(here, nullptr));
            return user.end(exchange(there, other));
        }
        default:
            void* const fresh = user.make();
            return user.end(exchange(here, fresh));
        }
    }
    void trade(engine_user& user, std::size_t steps)
    {
        for (std::size_t i = 0; i < steps; ++i)
            trade(user);
    }

    void clear()
    {
        engine_user user(0);
        for (auto& block : blocks_)
            user.end(block.exchange(nullptr));
    }

private:
    std::vector<std::atomic<void*>> blocks_;
};

/// Returns the number of slices in use. Call this function when all threads that had blocks have
/// exited. It flushes several times, because a message may be forwarded a few times before it
/// reaches the owner of the slab.
inline std::size_t slices_used()
{
    for (int i = 0; i < 4; ++i)
        engine::flush_abandoned();
    return engine::the_slice_heap.now().used;
}

} // namespace mallard::testing
