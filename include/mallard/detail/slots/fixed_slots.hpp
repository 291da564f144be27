// Keyed slots inside the object itself.
#pragma once

#include <mallard/detail/base/annotate.hpp>
#include <mallard/detail/slots/slot_words.hpp>
#include <mallard/options.hpp>

namespace mallard {

/// Room for `Count` values, and never more. Neither copied nor moved: the values are
/// in it.
template <class T, class Key, std::size_t Count>
class fixed_slots {
    using words_of = slot_words<Key>;
    using word = typename words_of::word;

    static constexpr std::size_t slots = Count + 1;                  // slot 0 has no value
    static constexpr std::size_t words_count = std::bit_ceil(slots); // for the mask
    static_assert(Count > 0 && slots <= words_of::slots_max, "more slots than the key can name");

public:
    constexpr fixed_slots() noexcept : untouched_{}
    {
        if (!std::is_constant_evaluated())
            asan::poison(values_, sizeof values_);
    }
    fixed_slots(const fixed_slots&) = delete;
    fixed_slots& operator=(const fixed_slots&) = delete;
    ~fixed_slots() { asan::unpoison(values_, sizeof values_); }

    std::size_t bounded(word key) const noexcept { return key & (words_count - 1); }
    word& word_of(std::size_t i) const noexcept { return words_[i]; }
    T* value_of(std::size_t i) const noexcept
    {
        return reinterpret_cast<T*>(values_ + (i - 1) * sizeof(T));
    }
    slot_bits& bits_at(std::size_t w) const noexcept { return bits_[w]; }

    constexpr std::size_t capacity() const noexcept { return slots; }
    constexpr std::size_t limit() const noexcept { return slots; }

    std::size_t find(const void* value) const noexcept
    {
        auto const offset =
            reinterpret_cast<std::uintptr_t>(value) - reinterpret_cast<std::uintptr_t>(values_);
        return offset % sizeof(T) == 0 && offset / sizeof(T) < Count ? offset / sizeof(T) + 1 : 0;
    }

    template <bool Throws>
    MALLARD_COLD bool grow() noexcept(!Throws)
    {
        if constexpr (Throws)
            throw_bad_alloc();
        return false;
    }

    void add_to(statistics&) const noexcept {}

private:
    // What the slots contain is not part of the map's own value: a const map has
    // slots that its caller may not write to, and takes care of that.
    mutable word words_[words_count] = {words_of::of_slot_0};
    mutable slot_bits bits_[(slots + slots_per_bits - 1) / slots_per_bits] = {};
    union { // so that nobody clears the bytes, and a static map is constinit
        char untouched_;
        alignas(T) mutable std::byte values_[Count * sizeof(T)];
    };
};

/// For a `slot_map` of `Count` elements at most, without any heap.
///
///     constinit mallard::slot_map<timer, mallard::key32, mallard::fixed<100>> timers;
template <std::size_t Count>
struct fixed {
    template <class T, class Key>
    using slots = fixed_slots<T, Key, Count>;
};

} // namespace mallard
