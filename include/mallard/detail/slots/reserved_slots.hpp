// Keyed slots in ranges of address space: they grow where they are.
#pragma once

#include <mallard/detail/base/annotate.hpp>
#include <mallard/detail/slots/slot_words.hpp>
#include <mallard/options.hpp>
#include <mallard/pages.hpp>

#include <algorithm>
#include <utility>

namespace mallard {
namespace os {

/// Address space of which a part, from its begin on, is memory.
class growing_range {
public:
    growing_range() noexcept = default;
    explicit growing_range(std::size_t bytes) noexcept : pages_({.reserve_bytes = bytes}) {}
    growing_range(growing_range&& other) noexcept
        : pages_(std::move(other.pages_)), begin_(std::exchange(other.begin_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0))
    {
    }
    growing_range& operator=(growing_range&& other) noexcept
    {
        pages_ = std::move(other.pages_);
        begin_ = std::exchange(other.begin_, nullptr);
        bytes_ = std::exchange(other.bytes_, 0);
        return *this;
    }

    /// Makes at least `bytes` from the begin on memory, all 0 at first; the first time
    /// that is aligned to `align`. False: refused, and nothing has changed.
    bool cover(std::size_t bytes, std::size_t align) noexcept
    {
        if (bytes <= bytes_)
            return true;
        // Nothing is ever given back, so each chunk begins where the last one ends.
        chunk const more = pages_.try_take({bytes - bytes_, bytes_ == 0 ? align : 1});
        if (more.data == nullptr)
            return false;
        if (bytes_ == 0)
            begin_ = static_cast<std::byte*>(more.data);
        bytes_ += more.bytes;
        return true;
    }

    std::byte* begin() const noexcept { return begin_; }
    std::size_t bytes() const noexcept { return bytes_; }
    int last_error() const noexcept { return pages_.last_error(); }
    const char* last_refusal() const noexcept { return pages_.last_refusal(); }

private:
    page_source pages_{{}};
    std::byte* begin_ = nullptr;
    std::size_t bytes_ = 0;
};

} // namespace os

/// Three arrays, each in a range of its own that is reserved for all slots a key can
/// name, or as many as fit in `BytesMax`: words, values, and a bit for each slot.
/// Doubling makes more of each memory, a system call and no copy; the system adds
/// pages as they are touched. Where it refuses the address space, a quarter will do,
/// and so on, down to one first step.
///
/// Words are apart from values: this costs a cache line more for a value that is in
/// no cache, and saves the padding between them; see docs/decisions/0015.
template <class T, class Key, std::size_t BytesMax>
class reserved_slots {
    using words_of = slot_words<Key>;
    using word = typename words_of::word;

    static constexpr std::size_t slot_bytes = sizeof(word) + sizeof(T) + 1;
    static constexpr std::size_t slots_max = std::min(
        words_of::slots_max, std::max(std::bit_floor(BytesMax / slot_bytes), std::size_t{2}));
    /// A page of words, or 64 KiB of values if these are fewer slots.
    static constexpr std::size_t slots_first =
        std::min(slots_max, std::clamp(std::bit_floor((std::size_t{1} << 16) / sizeof(T)),
                                       std::size_t{2}, page_bytes / sizeof(word)));

public:
    reserved_slots() noexcept = default;
    reserved_slots(reserved_slots&& other) noexcept { *this = std::move(other); }
    reserved_slots& operator=(reserved_slots&& other) noexcept
    {
        at_ = std::exchange(other.at_, {});
        words_ = std::move(other.words_);
        values_ = std::move(other.values_);
        bits_ = std::move(other.bits_);
        return *this;
    }
    ~reserved_slots() { asan::unpoison(values_.begin(), values_.bytes()); }

    std::size_t bounded(word key) const noexcept { return key & at_.mask; }
    word& word_of(std::size_t i) const noexcept { return at_.words[i]; }
    T* value_of(std::size_t i) const noexcept { return at_.values + i; }
    slot_bits& bits_at(std::size_t w) const noexcept { return at_.bits[w]; }

    /// Slots with memory for their values.
    std::size_t capacity() const noexcept { return at_.capacity; }
    /// What `capacity` may become.
    std::size_t limit() const noexcept { return at_.limit; }

    /// The slot of the value at an address; 0: none.
    std::size_t find(const void* value) const noexcept
    {
        auto const offset =
            reinterpret_cast<std::uintptr_t>(value) - reinterpret_cast<std::uintptr_t>(at_.values);
        return offset % sizeof(T) == 0 && offset / sizeof(T) < at_.capacity ? offset / sizeof(T)
                                                                            : 0;
    }

    /// More slots: as many as there are, or fewer if only that is granted. False, or
    /// throws: refused, and nothing has changed that can be seen.
    template <bool Throws>
    MALLARD_COLD bool grow() noexcept(!Throws)
    {
        bool const grown = at_.limit == 0 ? begin() : at_.capacity < at_.limit && extend();
        if constexpr (Throws)
            if (!grown)
                throw_bad_alloc();
        return grown;
    }

    void add_to(statistics& s) const noexcept
    {
        s.bytes_taken += words_.bytes() + values_.bytes() + bits_.bytes();
        s.chunks += at_.limit != 0;
        s.growths += at_.growths;
    }

    int last_error() const noexcept { return at_.error; }
    const char* last_refusal() const noexcept { return at_.refusal; }

private:
    bool begin() noexcept
    {
        for (std::size_t slots = slots_max;; slots /= 4) {
            slots = std::max(slots, slots_first);
            words_ = os::growing_range(slots * sizeof(word));
            values_ = os::growing_range(slots * sizeof(T));
            bits_ = os::growing_range(bits_bytes(slots));
            if (cover_words(slots_first) && cover_values(slots_first)) {
                at_.limit = slots;
                *at_.words = words_of::of_slot_0;
                return true;
            }
            if (slots == slots_first) {
                at_ = view{.error = at_.error, .refusal = at_.refusal};
                return false;
            }
        }
    }

    bool extend() noexcept
    {
        std::size_t const slots = at_.mask + 1;
        if (at_.capacity == slots && !cover_words(2 * slots))
            return false;
        for (std::size_t more = at_.mask + 1 - at_.capacity; more != 0; more /= 2)
            if (cover_values(at_.capacity + more))
                return true;
        return false;
    }

    bool cover_words(std::size_t slots) noexcept
    {
        if (!covers(words_, slots * sizeof(word), 1) || !covers(bits_, bits_bytes(slots), 1))
            return false;
        at_.words = reinterpret_cast<word*>(words_.begin());
        at_.bits = reinterpret_cast<slot_bits*>(bits_.begin());
        at_.mask = slots - 1;
        return true;
    }

    bool cover_values(std::size_t slots) noexcept
    {
        std::size_t const before = values_.bytes();
        if (!covers(values_, slots * sizeof(T), alignof(T)))
            return false;
        asan::poison(values_.begin() + before, values_.bytes() - before);
        at_.values = reinterpret_cast<T*>(values_.begin());
        at_.capacity = slots;
        at_.growths += 1;
        return true;
    }

    bool covers(os::growing_range& range, std::size_t bytes, std::size_t align) noexcept
    {
        bool const covered = range.cover(bytes, align);
        if (!covered) {
            at_.error = range.last_error();
            at_.refusal = range.last_refusal();
        }
        return covered;
    }

    static constexpr std::size_t bits_bytes(std::size_t slots) noexcept
    {
        return align_up(slots, slots_per_bits) / 8;
    }

    // Without memory two words that nobody writes stand in: nothing on a hot path asks
    // whether there is any.
    struct view {
        word* words = const_cast<word*>(words_of::none);
        std::size_t mask = 1; // of the slots that have words
        T* values = nullptr;
        slot_bits* bits = nullptr;
        std::size_t capacity = 0;
        std::size_t limit = 0; // 0: nothing is reserved
        std::size_t growths = 0;
        int error = 0;
        const char* refusal = "";
    };
    view at_;
    os::growing_range words_, values_, bits_;
};

/// Where a `slot_map` keeps its slots when it is told nothing else. Needs the library.
template <std::size_t BytesMax = std::size_t{1} << 36>
struct reserved {
    template <class T, class Key>
    using slots = reserved_slots<T, Key, BytesMax>;
};

} // namespace mallard
