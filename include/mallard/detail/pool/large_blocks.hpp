// Large blocks. They are larger than the largest blocks in pools, and are allocated directly from
// the source.
#pragma once

#include <mallard/detail/base/annotate.hpp>
#include <mallard/detail/base/chunk_source.hpp>
#include <mallard/detail/base/no_mutex.hpp>
#include <mallard/detail/base/undo.hpp>
#include <mallard/options.hpp>

namespace mallard {

/// A list of large blocks, which can be returned to the source one by one, or all together.
///
/// The record of a block is a footer after the block. A header would need padding before an aligned
/// block. `Mutex` protects the list, and is never held while the source is called.
///
/// `allocate` has two integer parameters instead of a `layout`. For a `layout`, g++ 12 fills vector
/// registers in the hot path of the caller, even if this function is then not called.
template <class Mutex = no_mutex>
class large_blocks {
    struct footer {
        footer* next;
        footer** link; // address of the pointer that refers to this footer
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
            take_verified<Throws>(from, {footer_offset(bytes) + sizeof(footer), align});
        if (taken.data == nullptr)
            return nullptr;
        locked([&] {
            auto* const f = ::new (footer_of(taken.data, bytes)) footer{first_, &first_, taken};
            if (first_ != nullptr)
                first_->link = &f->next;
            first_ = f;
            count_ += 1;
            bytes_ += taken.bytes;
        });
        return taken.data;
    }

    /// Frees a block of `bytes` bytes. With `Checked`, stops the process if `allocate` did not
    /// return this block, in O(large blocks).
    template <bool Checked, class Source>
    MALLARD_COLD void deallocate(Source& to, void* block, std::size_t bytes) noexcept
    {
        auto* const f = static_cast<footer*>(footer_of(block, bytes));
        chunk const taken = locked([&] {
            if (Checked && find([&](const footer* known) { return known == f; }) == nullptr)
                stop_at_free(block, bytes);
            *f->link = f->next;
            if (f->next != nullptr)
                f->next->link = f->link;
            return uncount(f);
        });
        give(to, taken);
    }

    template <class Source>
    void release(Source& to) noexcept
    {
        while (first_ != nullptr)
            give(to, uncount(std::exchange(first_, first_->next)));
    }

    /// Discards all blocks without returning them. Called when the source frees all of its memory
    /// in one call.
    void forget() noexcept
    {
        first_ = nullptr;
        count_ = bytes_ = 0;
    }

    bool owns(const void* p) const noexcept
    {
        return locked([&] {
            return find([&](const footer* f) {
                       return p >= f->taken.data && p < static_cast<const void*>(f);
                   }) != nullptr;
        });
    }

    statistics stats() const noexcept
    {
        return locked([this] {
            return statistics{.blocks_live = count_, .bytes_live = bytes_, .bytes_taken = bytes_};
        });
    }

    constexpr Mutex* mutex() noexcept { return &lock_; }

private:
    template <class F>
    auto locked(F f) const noexcept
    {
        lock_.lock();
        undo const unlocks([this] { lock_.unlock(); });
        return f();
    }

    template <class Test>
    const footer* find(Test is_wanted) const noexcept
    {
        const footer* f = first_;
        while (f != nullptr && !is_wanted(f))
            f = f->next;
        return f;
    }

    [[noreturn]] void stop_at_free(const void* block, std::size_t bytes) const noexcept
    {
        if (find([=](const footer* known) { return known->taken.data == block; }) != nullptr)
            fatal_wrong_size(block, bytes);
        fatal_foreign_free(block);
    }

    static constexpr std::size_t footer_offset(std::size_t bytes) noexcept
    {
        return align_up(std::max(bytes, std::size_t{1}), alignof(footer));
    }
    static void* footer_of(void* block, std::size_t bytes) noexcept
    {
        return static_cast<std::byte*>(block) + footer_offset(bytes);
    }

    chunk uncount(footer* f) noexcept
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

/// A source that does not free the chunks that are returned to it, because the real source frees
/// all its memory in one call.
struct chunks_stay {
    static chunk try_take(layout) noexcept { return {}; }
    static void give(chunk) noexcept {}
};

/// Makes pools and large blocks discard their memory, which the source then frees as a whole. If a
/// sanitizer or Valgrind watches free bytes, first makes all bytes accessible, because the source
/// may allocate them again without doing so.
template <bool ChecksOn, class Cores, class Large>
void forget_blocks(Cores& cores, Large& large) noexcept
{
    if constexpr (marks_free_bytes<ChecksOn>) {
        chunks_stay nowhere;
        cores.release(nowhere);
        large.release(nowhere);
    } else {
        cores.forget();
        large.forget();
    }
}

} // namespace mallard
