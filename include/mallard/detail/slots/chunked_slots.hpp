// Keyed slots in chunks of any source, found through a directory.
#pragma once

#include <mallard/detail/base/annotate.hpp>
#include <mallard/detail/slots/slot_words.hpp>
#include <mallard/options.hpp>
#include <mallard/source.hpp>

#include <algorithm>
#include <utility>

namespace mallard {

/// Chunks of one size, a power of two of slots in each, and an array of pointers to
/// them that doubles: nothing but that array is ever copied. A lookup has one load more
/// than one in `reserved_slots`, and all else is the same.
///
///     | words | bits | values |
template <class T, class Key, source Source>
class chunked_slots {
    using words_of = slot_words<Key>;
    using word = typename words_of::word;

    static constexpr std::size_t chunk_bytes_wanted = std::size_t{1} << 14;

public:
    /// In each chunk.
    static constexpr std::size_t slots = std::min(
        words_of::slots_max,
        std::max(std::bit_floor(chunk_bytes_wanted / (sizeof(T) + sizeof(word))), slots_per_bits));

private:
    static constexpr std::size_t groups = (slots + slots_per_bits - 1) / slots_per_bits;
    static constexpr std::size_t bits_at_byte = align_up(slots * sizeof(word), sizeof(slot_bits));
    static constexpr std::size_t bytes_at_byte = bits_at_byte + groups * sizeof(slot_bits);
    static constexpr std::size_t values_at_byte =
        align_up(bytes_at_byte + sizeof(std::size_t), alignof(T));
    static constexpr std::size_t chunk_bytes = values_at_byte + slots * sizeof(T);
    static constexpr std::size_t chunk_align = std::max(alignof(T), cache_line_bytes);
    static constexpr std::size_t room_first = std::min<std::size_t>(8, words_of::slots_max / slots);

public:
    chunked_slots() noexcept
        requires std::default_initializable<Source>
    = default;
    explicit chunked_slots(Source from) noexcept : source_(std::move(from)) {}
    chunked_slots(chunked_slots&& other) noexcept
        requires std::move_constructible<Source>
        : at_(std::exchange(other.at_, {})), source_(std::move(other.source_))
    {
    }
    chunked_slots& operator=(chunked_slots&& other) noexcept
        requires std::movable<Source>
    {
        if (this != &other) {
            std::destroy_at(this);
            std::construct_at(this, std::move(other));
        }
        return *this;
    }
    ~chunked_slots()
    {
        for (std::size_t c = at_.count; c-- > 0;) {
            chunk const taken{at_.directory[c], bytes_taken(at_.directory[c]), chunk_align};
            asan::unpoison(taken.data, taken.bytes);
            give(source_, taken);
        }
        if (at_.entries.data != nullptr)
            give(source_, at_.entries);
    }

    std::size_t bounded(word key) const noexcept { return key & at_.mask; }
    word& word_of(std::size_t i) const noexcept { return at_.directory[i / slots][i % slots]; }
    T* value_of(std::size_t i) const noexcept
    {
        return values_in(at_.directory[i / slots]) + i % slots;
    }
    slot_bits& bits_at(std::size_t w) const noexcept
    {
        return part<slot_bits>(at_.directory[w / groups], bits_at_byte)[w % groups];
    }

    std::size_t capacity() const noexcept { return at_.count * slots; }
    std::size_t limit() const noexcept { return words_of::slots_max; }

    /// O(chunks).
    std::size_t find(const void* value) const noexcept
    {
        for (std::size_t c = 0; c < at_.count; ++c) {
            auto const offset = reinterpret_cast<std::uintptr_t>(value) -
                                reinterpret_cast<std::uintptr_t>(values_in(at_.directory[c]));
            if (offset / sizeof(T) < slots)
                return offset % sizeof(T) == 0 ? c * slots + offset / sizeof(T) : 0;
        }
        return 0;
    }

    /// One chunk more.
    template <bool Throws>
    MALLARD_COLD bool grow() noexcept(!Throws)
    {
        if (capacity() == limit()) {
            if constexpr (Throws)
                throw_bad_alloc();
            return false;
        }
        if (at_.count == at_.room && !make_room<Throws>())
            return false;
        chunk const taken = take_or_null<Throws>(source_, {chunk_bytes, chunk_align});
        if (taken.data == nullptr)
            return false;
        word* const words = ::new (taken.data) word[slots]{};
        ::new (part<void>(words, bits_at_byte)) slot_bits[groups]{};
        bytes_taken(words) = taken.bytes;
        asan::poison(values_in(words), slots * sizeof(T));
        if (at_.count == 0) {
            words[0] = words_of::of_slot_0;
            std::fill_n(at_.directory, at_.room, words);
            at_.mask = at_.room * slots - 1;
        }
        at_.directory[at_.count++] = words;
        at_.bytes += taken.bytes;
        return true;
    }

    void add_to(statistics& s) const noexcept
    {
        s.bytes_taken += at_.bytes + at_.entries.bytes;
        s.chunks += at_.count;
        s.growths += at_.count;
    }

    Source& upstream() noexcept { return source_; }

private:
    template <class P>
    static P* part(word* chunk_begin, std::size_t at) noexcept
    {
        return static_cast<P*>(static_cast<void*>(reinterpret_cast<std::byte*>(chunk_begin) + at));
    }
    static T* values_in(word* chunk_begin) noexcept { return part<T>(chunk_begin, values_at_byte); }
    static std::size_t& bytes_taken(word* chunk_begin) noexcept
    {
        return *part<std::size_t>(chunk_begin, bytes_at_byte);
    }

    /// For twice as many chunks. Entries without a chunk name the first one: what its
    /// words say of their own indices is wrong for every other, so no key is alive there.
    template <bool Throws>
    bool make_room() noexcept(!Throws)
    {
        std::size_t const room = std::max(2 * at_.room, room_first);
        chunk const taken = take_or_null<Throws>(source_, layout_of<word*>(room));
        if (taken.data == nullptr)
            return false;
        auto** const directory = static_cast<word**>(taken.data);
        std::copy_n(at_.directory, at_.count, directory);
        std::fill_n(directory + at_.count, room - at_.count, at_.directory[0]);
        if (at_.entries.data != nullptr)
            give(source_, at_.entries);
        at_.directory = directory;
        at_.entries = taken;
        at_.room = room;
        if (at_.count != 0)
            at_.mask = room * slots - 1;
        return true;
    }

    // Without memory two words that nobody writes stand in: nothing on a hot path asks
    // whether there is any.
    struct view {
        word** directory = const_cast<word**>(no_directory);
        std::size_t mask = 1;
        std::size_t count = 0; // of chunks
        std::size_t room = 0;  // in the directory
        std::size_t bytes = 0;
        chunk entries{};
    };
    static constexpr word* no_directory[1] = {const_cast<word*>(words_of::none)};

    view at_;
    [[no_unique_address]] Source source_{};
};

} // namespace mallard
