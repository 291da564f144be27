// Blocks too big for a pool: straight from its source, and remembered.
#pragma once

#include <mallard/detail/threads/locks.hpp>

namespace mallard {

/// Each block has a footer behind it, so alignment needs no room in front and a
/// block can be given back alone or with all others. A layout comes as numbers:
/// for a cold call g++ 12 puts one together in vector registers, before the hot
/// path has decided whether it makes the call. `Mutex` is
/// held for the list alone, never while the source is called.
template <class Mutex = no_mutex>
class large_blocks {
    struct footer {
        footer* next;
        footer** link; // what points here
        chunk taken;
    };

public:
    constexpr large_blocks() noexcept = default;
    constexpr large_blocks(large_blocks&& other) noexcept
        requires std::same_as<Mutex, no_mutex>
        : first_(std::exchange(other.first_, nullptr)), count_(std::exchange(other.count_, 0)),
          bytes_(std::exchange(other.bytes_, 0))
    {
        if (first_ != nullptr)
            first_->link = &first_;
    }

    template <bool Throws, class Source>
    MALLARD_COLD void* allocate(Source& from, std::size_t bytes,
                                std::size_t block_align) noexcept(!Throws)
    {
        std::size_t const align = std::max(block_align, alignof(footer));
        if (bytes > bytes_max - page_bytes)
            return refuse_absurd<Throws>(from, {bytes, align}).data;
        chunk const taken =
            take_or_null<Throws>(from, {footer_offset(bytes) + sizeof(footer), align});
        if (taken.data == nullptr)
            return nullptr;
        std::lock_guard const one_at_a_time(lock_);
        auto* const f = ::new (footer_of(taken.data, bytes)) footer{first_, &first_, taken};
        if (first_ != nullptr)
            first_->link = &f->next;
        first_ = f;
        count_ += 1;
        bytes_ += taken.bytes;
        return taken.data;
    }

    /// `Checked`: stops at what `allocate` did not give for so many bytes;
    /// O(large blocks).
    template <bool Checked, class Source>
    MALLARD_COLD void deallocate(Source& to, void* block, std::size_t bytes) noexcept
    {
        auto* const f = static_cast<footer*>(footer_of(block, bytes));
        std::unique_lock one_at_a_time(lock_);
        if (Checked && !has(f))
            fatal_foreign_free(block);
        *f->link = f->next;
        if (f->next != nullptr)
            f->next->link = f->link;
        chunk const taken = forget(f);
        one_at_a_time.unlock();
        give(to, taken);
    }

    template <class Source>
    void release(Source& to) noexcept
    {
        while (first_ != nullptr)
            give(to, forget(std::exchange(first_, first_->next)));
    }

    /// For a source that takes everything back by itself.
    void forget() noexcept
    {
        first_ = nullptr;
        count_ = bytes_ = 0;
    }

    bool owns(const void* p) const noexcept
    {
        std::lock_guard const one_at_a_time(lock_);
        for (const footer* f = first_; f != nullptr; f = f->next)
            if (p >= f->taken.data && p < static_cast<const void*>(f))
                return true;
        return false;
    }

    constexpr Mutex* mutex() noexcept { return &lock_; }

    statistics stats() const noexcept
    {
        std::lock_guard const one_at_a_time(lock_);
        return {.blocks_live = count_, .bytes_live = bytes_, .bytes_taken = bytes_};
    }

private:
    bool has(const footer* wanted) const noexcept
    {
        const footer* f = first_;
        while (f != nullptr && f != wanted)
            f = f->next;
        return f != nullptr;
    }

    static constexpr std::size_t footer_offset(std::size_t bytes) noexcept
    {
        return align_up(std::max(bytes, std::size_t{1}), alignof(footer));
    }
    static void* footer_of(void* block, std::size_t bytes) noexcept
    {
        return static_cast<std::byte*>(block) + footer_offset(bytes);
    }

    chunk forget(footer* f) noexcept
    {
        chunk const taken = f->taken;
        count_ -= 1;
        bytes_ -= taken.bytes;
        return taken;
    }

    [[no_unique_address]] mutable Mutex lock_;
    footer* first_ = nullptr; // newest first
    std::size_t count_ = 0;
    std::size_t bytes_ = 0;
};

} // namespace mallard
