// Storage for the slots of a slot map. The slots are in reserved ranges of address space, in chunks
// of a source, or inside the map itself. Each slot has a value and a word.
#pragma once

#include <mallard/detail/base/annotate.hpp>
#include <mallard/detail/base/undo.hpp>
#include <mallard/key.hpp>
#include <mallard/options.hpp>
#include <mallard/pages.hpp>
#include <mallard/source.hpp>

#include <algorithm>
#include <utility>

namespace mallard {

/// The word of a slot. Its two fields, {generation, index}, encode the state of the slot:
///
///     live        { generation, own index }     the key of the element
///     free        { generation, another index } the next key of the next free slot
///     last free   { 0, 0 }
///     detached    { generation, 0 }             the key of the element, without the index
///     retired     { 0, 0 }                      for ever
///     fresh       { 0, 0 }                      zeroed memory of the system
///
/// An element is alive if its key is equal to the word of the slot that the key addresses, because
/// only the word of a live slot holds the index of that slot. The list of free slots is in the same
/// words. The word of a free slot is the key that the next free slot will have, so an insert
/// computes no key.
///
/// Slot 0 has no value, and its word is { 0, 1 }. So index 0 can mean "none". The null key is 0,
/// like a word that was never written. It finds no element, because it addresses slot 0, whose word
/// is not 0.
///
/// A mask reduces each index to a number below the number of slots, a power of two, so any integer
/// addresses a slot. If the mask changed the index, the integer differs from the word of that slot,
/// because no word holds an index above the number of slots.
///
/// (EnTT keeps a list link and a generation in one word, too. To use the whole key of the next slot
/// as the link seems to be new.)
template <class Key>
struct slot_words {
    using word = typename Key::raw_type;

    static constexpr word of_slot_0 = 1;
    static constexpr std::size_t slots_max = std::size_t{Key::index_mask} + 1;

    /// The words of slots 0 and 1 of a storage without memory. No key is alive there.
    static constexpr word none[2] = {of_slot_0, 0};

    static constexpr std::size_t index(word w) noexcept { return w & Key::index_mask; }
    /// Returns the first key of slot `i`.
    static constexpr word first(std::size_t i) noexcept
    {
        return static_cast<word>(i) | Key::one_generation;
    }
    static constexpr word detached(word key) noexcept
    {
        return key & static_cast<word>(~Key::index_mask);
    }
    static constexpr bool is_detached(word w) noexcept { return w != 0 && index(w) == 0; }

    /// Returns the next key of the same slot. The result is below `key` when the generations are
    /// used up.
    static constexpr word after(word key) noexcept
    {
        return static_cast<word>(key + Key::one_generation) & Key::value_max;
    }
};

/// 64 bits, one for each slot. The bit of a live slot is 1.
using slot_bits = std::uint64_t;
inline constexpr std::size_t slots_per_bits = 64; ///< the slots that `slot_bits` describes

/// Returns the bit of the slot `i` in the `slot_bits` of its group.
constexpr slot_bits slot_bit(std::size_t i) noexcept
{
    return slot_bits{1} << i % slots_per_bits;
}

/// Returns the index of the `T` that starts at `value` in the array of `count` elements at `first`.
/// Returns `count` or more if no element starts there.
template <class T>
std::size_t index_in_array(const void* value, const void* first, std::size_t count) noexcept
{
    auto const offset =
        reinterpret_cast<std::uintptr_t>(value) - reinterpret_cast<std::uintptr_t>(first);
    return offset % sizeof(T) == 0 ? offset / sizeof(T) : count;
}

// Each storage class has the same members:
//   bounded(word)   the index in `word`, masked so that a slot with this index exists
//   word_of(i), value_of(i), bits_at(w)
//   capacity()      slots with memory for their values, slot 0 included
//   limit()         the largest value that `capacity` may reach
//   find(value)     the slot of the value at an address; 0 if there is none
//   grow<Throws>()  adds slots. Returns false or throws when memory is refused; then nothing has
//                   changed

/// Slots for `Count` values inside the object itself, which can be neither copied nor moved.
template <class T, class Key, std::size_t Count>
class fixed_slots {
    using words_of = slot_words<Key>;
    using word = typename words_of::word;

    static constexpr std::size_t slots = Count + 1;                  // slot 0 has no value
    static constexpr std::size_t words_count = std::bit_ceil(slots); // power of 2: see `bounded`
    static_assert(Count > 0 && slots <= words_of::slots_max,
                  "more slots than the key has index values");

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
        std::size_t const at = index_in_array<T>(value, values_, Count);
        return at < Count ? at + 1 : 0;
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
    // Mutable, because `word_of` and `value_of` are const. The map decides whether a caller may
    // write.
    mutable word words_[words_count] = {words_of::of_slot_0};
    mutable slot_bits bits_[(slots + slots_per_bits - 1) / slots_per_bits] = {};
    union { // leaves the bytes uninitialised, so that a static map can be constinit
        char untouched_;
        alignas(T) mutable std::byte values_[Count * sizeof(T)];
    };
};

/// Storage of a `slot_map` for at most `Count` elements inside the map. Allocates nothing.
///
///     constinit mallard::slot_map<timer, mallard::key32, mallard::fixed<100>> timers;
template <std::size_t Count>
struct fixed {
    template <class T, class Key>
    using slots = fixed_slots<T, Key, Count>; ///< the slots of a map of `T` by `Key`
};

/// Slots in chunks of any source, found through a directory. All chunks have the same number of
/// slots, a power of two. The directory is an array of pointers. The directory doubles when it is
/// full, and nothing else is ever copied. A lookup needs one load more than a lookup in
/// `reserved_slots`.
///
///     | words | bits | header | values |      one chunk
template <class T, class Key, source Source>
class chunked_slots {
protected:
    using words_of = slot_words<Key>;
    using word = typename words_of::word;

private:
    static constexpr std::size_t chunk_bytes_wanted = std::size_t{1} << 14;

public:
    /// The number of slots in each chunk.
    static constexpr std::size_t slots = std::min(
        words_of::slots_max,
        std::max(std::bit_floor(chunk_bytes_wanted / (sizeof(T) + sizeof(word))), slots_per_bits));

protected:
    static constexpr std::size_t groups = (slots + slots_per_bits - 1) / slots_per_bits;
    static constexpr std::size_t room_first = std::min<std::size_t>(8, words_of::slots_max / slots);

    struct header {
        std::size_t bytes;  // the size of the chunk
        std::size_t number; // the index of its first slot, divided by `slots`
        word* taken_before; // a list of all chunks
    };

private:
    static constexpr std::size_t bits_at_byte = align_up(slots * sizeof(word), sizeof(slot_bits));
    static constexpr std::size_t header_at_byte = bits_at_byte + groups * sizeof(slot_bits);
    static constexpr std::size_t values_at_byte =
        align_up(header_at_byte + sizeof(header), alignof(T));
    static constexpr std::size_t chunk_bytes = values_at_byte + slots * sizeof(T);
    static constexpr std::size_t chunk_align = std::max(alignof(T), cache_line_bytes);
    static_assert(source_of_bytes<source_bytes<Source>,
                                  bytes_at_any_address({chunk_bytes, chunk_align}) +
                                      align_up(chunk_bytes, sizeof(void*)) - chunk_bytes +
                                      room_first * sizeof(void*)>::holds_one);

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
        return replace_by_move(*this, std::move(other));
    }
    ~chunked_slots()
    {
        while (at_.taken_last != nullptr)
            give_chunk(std::exchange(at_.taken_last, header_of(at_.taken_last).taken_before));
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
        return bits_in(at_.directory[w / groups])[w % groups];
    }

    std::size_t capacity() const noexcept { return at_.count * slots; }
    std::size_t limit() const noexcept { return words_of::slots_max; }

    /// Returns the slot of the value at an address, or 0 if there is none. O(chunks).
    std::size_t find(const void* value) const noexcept
    {
        for (std::size_t c = 0; c < at_.count; ++c) {
            std::size_t const at = index_in_array<T>(value, values_in(at_.directory[c]), slots);
            if (at < slots)
                return c * slots + at;
        }
        return 0;
    }

    template <bool Throws>
    MALLARD_COLD bool grow() noexcept(!Throws)
    {
        if (capacity() == limit()) {
            if constexpr (Throws)
                throw_bad_alloc();
            return false;
        }
        word* const words = take_chunk<Throws>(at_.count);
        if (words == nullptr)
            return false;
        undo unless_entered([&] { give_chunk(words); });
        if (at_.count == at_.room &&
            !enlarge_directory<Throws>(std::max(2 * at_.room, room_first), words))
            return false;
        unless_entered.keep();
        enter(words);
        at_.directory[at_.count - 1] = words;
        return true;
    }

    void add_to(statistics& s) const noexcept
    {
        s.bytes_taken += at_.bytes + at_.entries.bytes;
        s.chunks += at_.count;
        s.growths += at_.count;
    }

    Source& upstream() noexcept { return source_; }

protected:
    template <class P>
    static P* at_byte(word* chunk_begin, std::size_t offset) noexcept
    {
        return static_cast<P*>(
            static_cast<void*>(reinterpret_cast<std::byte*>(chunk_begin) + offset));
    }
    static T* values_in(word* chunk_begin) noexcept
    {
        return at_byte<T>(chunk_begin, values_at_byte);
    }
    static slot_bits* bits_in(word* chunk_begin) noexcept
    {
        return at_byte<slot_bits>(chunk_begin, bits_at_byte);
    }
    static header& header_of(word* chunk_begin) noexcept
    {
        return *at_byte<header>(chunk_begin, header_at_byte);
    }

    /// Allocates a chunk for the slots from `number * slots` on. No lookup finds the chunk yet.
    template <bool Throws>
    word* take_chunk(std::size_t number) noexcept(!Throws)
    {
        chunk const taken = take_verified<Throws>(source_, {chunk_bytes, chunk_align});
        if (taken.data == nullptr)
            return nullptr;
        word* const words = ::new (taken.data) word[slots]{};
        ::new (bits_in(words)) slot_bits[groups]{};
        ::new (&header_of(words)) header{taken.bytes, number, nullptr};
        if (number == 0)
            words[0] = words_of::of_slot_0;
        asan::poison(values_in(words), slots * sizeof(T));
        return words;
    }
    void give_chunk(word* words) noexcept
    {
        chunk const taken{words, header_of(words).bytes, chunk_align};
        asan::unpoison(taken.data, taken.bytes);
        give(source_, taken);
    }
    /// Counts a chunk that `take_chunk` returned as a chunk of the map.
    void enter(word* words) noexcept
    {
        header_of(words).taken_before = std::exchange(at_.taken_last, words);
        at_.count += 1;
        at_.bytes += header_of(words).bytes;
    }

    /// Enlarges the directory to `room` entries, a power of two. Each new entry points to the words
    /// `stand_in`. These are the words of the first chunk, or words that equal no key. A key that
    /// reaches them through such an entry is not alive, because the word that it finds holds
    /// another index.
    template <bool Throws>
    bool enlarge_directory(std::size_t room, word* stand_in) noexcept(!Throws)
    {
        chunk const taken = take_verified<Throws>(source_, layout_of<word*>(room));
        if (taken.data == nullptr)
            return false;
        auto** const directory = static_cast<word**>(taken.data);
        std::copy_n(at_.directory, at_.room, directory);
        std::fill_n(directory + at_.room, room - at_.room, stand_in);
        if (at_.entries.data != nullptr)
            give(source_, at_.entries);
        at_.directory = directory;
        at_.entries = taken;
        at_.room = room;
        at_.mask = room * slots - 1;
        return true;
    }

    // Without memory, the directory points to two constant words, so that lookups need no test.
    struct view {
        word** directory = const_cast<word**>(no_directory);
        std::size_t mask = 1;
        std::size_t count = 0; // number of chunks
        std::size_t room = 0;  // number of entries in the directory
        std::size_t bytes = 0;
        word* taken_last = nullptr;
        chunk entries{}; // the memory of the directory
    };
    static constexpr word* no_directory[1] = {const_cast<word*>(words_of::none)};

    view at_;

private:
    [[no_unique_address]] Source source_{};
};

/// Slots in three arrays that grow in place: words, values, and a bit for each slot. Each array has
/// a range of address space that is reserved for all slots that a key can name, or for the slots
/// that fit in `BytesMax`. To grow, the committed part of each range is doubled by a system call,
/// without a copy. The system adds pages when they are touched. When the system cannot reserve the
/// address space, the map requests a quarter, then a sixteenth, and so on down to `slots_first`
/// slots.
///
/// The words are stored apart from the values, so no padding is needed between word and value. But
/// a lookup that misses the processor's cache loads one more cache line (docs/decisions/0015).
template <class T, class Key, std::size_t BytesMax>
class reserved_slots {
protected:
    using words_of = slot_words<Key>;
    using word = typename words_of::word;

    static constexpr std::size_t slot_bytes = sizeof(word) + sizeof(T) + 1;
    static constexpr std::size_t slots_max = std::min(
        words_of::slots_max, std::max(std::bit_floor(BytesMax / slot_bytes), std::size_t{2}));
    /// The number of slots that are committed first. It is as many as fit in a page of words, or as
    /// many as fit in 64 KiB of values, whichever is smaller.
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

    std::size_t capacity() const noexcept { return at_.capacity; }
    std::size_t limit() const noexcept { return at_.limit; }

    std::size_t find(const void* value) const noexcept
    {
        std::size_t const at = index_in_array<T>(value, at_.values, at_.capacity);
        return at < at_.capacity ? at : 0;
    }

    /// Doubles the number of slots, or adds fewer if the system supplies only part of the memory.
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

    /// Returns the `errno` of the last failure to get memory from the system; see `pages`.
    int last_error() const noexcept { return at_.error; }
    const char* last_failure() const noexcept { return at_.failure; }

protected:
    /// Reserves the ranges, and commits the first slots.
    bool begin() noexcept
    {
        for (std::size_t slots = slots_max;; slots /= 4) {
            slots = std::max(slots, slots_first);
            words_ = os::growing_range(slots * sizeof(word));
            values_ = os::growing_range(slots * sizeof(T));
            bits_ = os::growing_range(bits_bytes(slots));
            if (commit_words(slots_first) && commit_values(slots_first)) {
                at_.limit = slots;
                *at_.words = words_of::of_slot_0;
                return true;
            }
            if (slots == slots_first) {
                at_ = view{.error = at_.error, .failure = at_.failure};
                return false;
            }
        }
    }

    bool commit_words(std::size_t slots) noexcept
    {
        if (!note(words_.commit(slots * sizeof(word), 1), words_) ||
            !note(bits_.commit(bits_bytes(slots), 1), bits_))
            return false;
        at_.words = reinterpret_cast<word*>(words_.begin());
        at_.bits = reinterpret_cast<slot_bits*>(bits_.begin());
        at_.mask = slots - 1;
        return true;
    }

    bool commit_values(std::size_t slots) noexcept
    {
        std::size_t const before = values_.bytes();
        if (!note(values_.commit(slots * sizeof(T), alignof(T)), values_))
            return false;
        asan::poison(values_.begin() + before, values_.bytes() - before);
        at_.values = reinterpret_cast<T*>(values_.begin());
        at_.capacity = slots;
        at_.growths += 1;
        return true;
    }

    /// Stores the reason if `range` could not commit memory.
    bool note(bool committed, const os::growing_range& range) noexcept
    {
        if (!committed) {
            at_.error = range.last_error();
            at_.failure = range.last_failure();
        }
        return committed;
    }

    static constexpr std::size_t bits_bytes(std::size_t slots) noexcept
    {
        return align_up(slots, slots_per_bits) / 8;
    }

    // Without memory, `words` points to two constant words, so that lookups need no test.
    struct view {
        word* words = const_cast<word*>(words_of::none);
        std::size_t mask = 1; // number of slots that have words, less one
        T* values = nullptr;
        slot_bits* bits = nullptr;
        std::size_t capacity = 0;
        std::size_t limit = 0; // 0: nothing is reserved
        std::size_t growths = 0;
        int error = 0;
        const char* failure = "";
    };
    view at_;
    os::growing_range words_, values_, bits_;

private:
    bool extend() noexcept
    {
        std::size_t const slots = at_.mask + 1;
        if (at_.capacity == slots && !commit_words(2 * slots))
            return false;
        for (std::size_t more = at_.mask + 1 - at_.capacity; more != 0; more /= 2)
            if (commit_values(at_.capacity + more))
                return true;
        return false;
    }
};

/// Storage of a `slot_map` in at most `BytesMax` bytes of reserved address space. This is the
/// default storage. Needs the compiled library.
///
///     mallard::slot_map<enemy, mallard::key32, mallard::reserved<1 << 30>> enemies;
template <std::size_t BytesMax = std::size_t{1} << 36>
struct reserved {
    template <class T, class Key>
    using slots = reserved_slots<T, Key, BytesMax>;
};

} // namespace mallard
