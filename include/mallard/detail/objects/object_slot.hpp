// A slot of an object_pool, which contains the object, followed by the counts of its handles.
#pragma once

#include <mallard/detail/base/atomic_ref.hpp>
#include <mallard/detail/base/fatal_objects.hpp>
#include <mallard/options.hpp>

#include <atomic>
#include <memory>
#include <utility>

namespace mallard {

/// The handle counts of one object, {weak, strong}, in one word. All strong handles together count
/// as one weak handle. The last strong handle destroys the object; the last weak handle frees the
/// slot.
///
///     strong > 0   ==   the object lives
///     weak > 0     ==   the slot is in use
///
/// Only a thread that has a strong handle may copy a strong handle. So when the strong count is 0,
/// no thread can copy one. But the caller of `lock` may have only a weak handle, so `lock` must
/// never raise the count from 0. tests/models/arc.pml verifies this.
template <counts Kind>
class handle_counts {
    using word = std::uint64_t;
    static constexpr word one_strong = 1;
    static constexpr word one_weak = word{1} << 32;
    static constexpr word half = one_weak - 1;
    // The process stops when a count reaches this bit. Only after 2^29 more increments would the
    // count overflow into the flag `at_the_end`.
    static constexpr word too_many = word{1} << 29;
    // `begin_end` sets this flag if the object is alive.
    static constexpr word at_the_end = word{1} << 30;
    // `die_at_end` sets this flag when the object is destroyed. The strong half of the word is then
    // negative.
    static constexpr word after_the_end = word{1} << 31;

public:
    std::size_t strong() const noexcept { return load() % at_the_end; }
    bool is_alive() const noexcept { return is_alive(load()); }
    /// Returns whether there is only one handle. In that case no other thread can copy the handle,
    /// and the caller may drop the handle without an atomic write.
    bool is_sole() const noexcept { return load() == one_strong + one_weak; }

    void add_strong() noexcept { stop_at_overflow(add(one_strong)); }
    void add_weak() noexcept { stop_at_overflow(add(one_weak) / one_weak); }

    /// Adds a strong handle if there is at least one already. Returns whether a handle was added.
    bool lock() noexcept
    {
        word seen = load();
        while (is_alive(seen))
            if (exchange(seen, seen + one_strong))
                return stop_at_overflow(seen), true;
        return false;
    }

    /// Drops a strong handle. Returns true if it was the last strong handle; the caller must then
    /// destroy the object and drop a weak handle.
    bool drop_strong() noexcept { return (subtract(one_strong) & half) == 1; }
    /// Drops a weak handle. Returns true if it was the last handle; the caller must then free the
    /// slot.
    bool drop_weak() noexcept { return subtract(one_weak) / one_weak == 1; }

    // --- One thread destroys all objects of a pool in passes over all slots: first `begin_end`,
    // then `die_at_end`, and last `finish_end` if the memory is kept. The destructors may copy and
    // drop handles of other objects. `begin_end` adds a weak count to each slot, so that no handle
    // that is dropped during the passes frees a slot.
    void begin_end() noexcept { word_ += one_weak + (is_alive() ? at_the_end : 0); }
    /// Makes `lock` fail from now on. Returns true if the object was alive until now; the caller
    /// must then destroy the object.
    bool die_at_end() noexcept
    {
        word const lived = word_ & at_the_end;
        word_ += lived; // if set, the addition carries into `after_the_end`
        return lived != 0;
    }
    /// Removes the weak count that `begin_end` added. Returns true if no weak handle is left; the
    /// caller must then free the slot.
    bool finish_end() noexcept
    {
        word_ = (word_ & ~half) - ((word_ & after_the_end) != 0 ? 2 : 1) * one_weak;
        return word_ == 0;
    }

private:
    /// Returns whether the object is alive, which is so if the strong half, as a signed number, is
    /// positive.
    static bool is_alive(word w) noexcept { return static_cast<std::int32_t>(w & half) > 0; }

    word load() const noexcept
    {
        if constexpr (Kind == counts::shared)
            return atomic_ref(const_cast<word&>(word_)).load(std::memory_order_acquire);
        else
            return word_;
    }
    word add(word some) noexcept
    {
        if constexpr (Kind == counts::shared)
            return atomic_ref(word_).fetch_add(some, std::memory_order_relaxed);
        else
            return std::exchange(word_, word_ + some);
    }
    word subtract(word some) noexcept
    {
        if constexpr (Kind == counts::shared)
            return atomic_ref(word_).fetch_sub(some, std::memory_order_acq_rel);
        else
            return std::exchange(word_, word_ - some);
    }
    bool exchange(word& seen, word wanted) noexcept
    {
        if constexpr (Kind == counts::shared)
            return atomic_ref(word_).compare_exchange_weak(seen, wanted, std::memory_order_acquire,
                                                           std::memory_order_acquire);
        else
            return word_ = wanted, true;
    }
    static void stop_at_overflow(word before) noexcept
    {
        if ((before & too_many) != 0) [[unlikely]]
            fatal_handle_overflow();
    }

    word word_ = one_strong + one_weak;
};

template <>
class handle_counts<counts::none> {
public:
    static constexpr bool is_alive() noexcept { return true; }
    static constexpr bool is_sole() noexcept { return true; }
    static constexpr void begin_end() noexcept {}
    static constexpr bool die_at_end() noexcept { return true; }
    static constexpr bool finish_end() noexcept { return true; }
};

/// The memory of one slot. If `Owner` is true, the slot stores the address of its pool, because the
/// header of its chunk does not.
template <class T, counts Kind, bool Owner>
struct object_slot {
    struct no_owner {};

    alignas(T) std::byte object[sizeof(T)];
    [[no_unique_address]] handle_counts<Kind> handles;
    [[no_unique_address]] std::conditional_t<Owner, void*, no_owner> owner;

    /// Returns the number of bytes to poison. The bytes are the object and its padding, because
    /// AddressSanitizer marks 8 bytes at a time.
    static constexpr std::size_t object_bytes() noexcept
    {
        return std::min(align_up(sizeof(T), alignof(void*)), sizeof(object_slot));
    }

    T* get() noexcept { return reinterpret_cast<T*>(object); }
    static object_slot& of(T* object) noexcept { return *reinterpret_cast<object_slot*>(object); }
};

} // namespace mallard
