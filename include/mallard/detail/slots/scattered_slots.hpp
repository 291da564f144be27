// Storage for the slots of a secondary map, which can have a value for any key, even for a made-up
// one. So a slot with a large index can have memory while most slots before it have none.
#pragma once

#include <mallard/detail/slots/slot_storage.hpp>

namespace mallard {

/// The parts of a storage that are found by binary search. They are in an array of part numbers in
/// ascending order, each with a `Part`. The memory of the array belongs to the owner of this
/// object.
template <class Part>
struct far_parts {
    struct entry {
        std::size_t number;
        [[no_unique_address]] Part part;
    };
    entry* entries = nullptr;
    std::size_t count = 0;

    entry* end() const noexcept { return entries + count; }
    /// Returns the first entry whose number is not below `number`.
    entry* from(std::size_t number) const noexcept
    {
        return std::lower_bound(entries, end(), number,
                                [](const entry& e, std::size_t n) { return e.number < n; });
    }
    /// Returns the entry with this number, or null.
    entry* find(std::size_t number) const noexcept
    {
        entry* const at = from(number);
        return at != end() && at->number == number ? at : nullptr;
    }
    /// Inserts an entry. The array must have room for one more.
    void insert(entry added) noexcept
    {
        entry* const at = from(added.number);
        std::copy_backward(at, end(), end() + 1);
        *at = added;
        count += 1;
    }
    void erase_below(std::size_t number) noexcept
    {
        entry* const kept = from(number);
        std::copy(kept, end(), entries);
        count -= static_cast<std::size_t>(kept - entries);
    }
};

// A scattered storage class has these members too:
//   provide<Throws>(i, values)  gives memory to slot `i` of a map that will have so many values.
//                               Returns false or throws when memory is refused
//   next_group(w)               the first group of 64 slots, from `w` on, that may have memory
//   live_bits(w)                the bits of a group; 0 if the group has no memory
//   find(word)                  the value of a key, or null. Only keys that `bounded` changes need
//                               more than the lookup of a slot map

/// Like `chunked_slots`, but each chunk exists only when one of its slots is used. The directory
/// has at most 1,024 entries for each chunk, or 4,096 if that is more. Chunks with larger numbers
/// are found by binary search. See docs/decisions/0035.
template <class T, class Key, source Source>
class scattered_chunks : public chunked_slots<T, Key, Source> {
    using base = chunked_slots<T, Key, Source>;
    using base::at_;
    using base::groups;
    using typename base::word;
    using typename base::words_of;

    static constexpr std::size_t room_min = 4096;
    static constexpr std::size_t room_per_chunk = 1024;

public:
    using base::slots;

    scattered_chunks() noexcept
        requires std::default_initializable<Source>
    = default;
    explicit scattered_chunks(Source from) noexcept : base(std::move(from)) {}
    scattered_chunks(scattered_chunks&& other) noexcept
        requires std::move_constructible<Source>
        : base(static_cast<base&&>(other)), far_(std::exchange(other.far_, {})),
          far_memory_(std::exchange(other.far_memory_, {}))
    {
    }
    scattered_chunks& operator=(scattered_chunks&& other) noexcept
        requires std::movable<Source>
    {
        return replace_by_move(*this, std::move(other));
    }
    ~scattered_chunks() { give_far_memory(); }

    word& word_of(std::size_t i) const noexcept { return words_for(i)[i % slots]; }
    T* value_of(std::size_t i) const noexcept { return this->values_in(words_for(i)) + i % slots; }
    slot_bits& bits_at(std::size_t w) const noexcept
    {
        return this->bits_in(words_for(w * slots_per_bits))[w % groups];
    }

    template <bool Throws>
    bool provide(std::size_t i, std::size_t) noexcept(!Throws)
    {
        return words_or_null(i / slots) != nullptr || add_chunk<Throws>(i / slots);
    }
    std::size_t next_group(std::size_t w) const noexcept
    {
        std::size_t const number = w / groups;
        for (std::size_t n = number; n < at_.room; ++n)
            if (at_.directory[n] != absent())
                return std::max(w, n * groups);
        auto const* const next = far_.from(number);
        return next == far_.end() ? words_of::slots_max : std::max(w, next->number * groups);
    }
    slot_bits live_bits(std::size_t w) const noexcept
    {
        word* const words = words_or_null(w / groups);
        return words == nullptr ? 0 : this->bits_in(words)[w % groups];
    }
    [[gnu::always_inline]] T* find(word key) const noexcept
    {
        std::size_t const i = this->bounded(key);
        if (base::word_of(i) == key) [[likely]]
            return base::value_of(i);
        return far_.count == 0 ? nullptr : search(key);
    }

    void add_to(statistics& s) const noexcept
    {
        base::add_to(s);
        s.bytes_taken += far_memory_.bytes;
    }

private:
    /// The words to which directory entries without a chunk point. No word among them equals the
    /// key by which a lookup reaches that word.
    static constexpr auto absent_words = [] {
        struct {
            word at[slots];
        } words{{words_of::of_slot_0}};
        return words;
    }();
    static word* absent() noexcept { return const_cast<word*>(absent_words.at); }

    word* words_or_null(std::size_t number) const noexcept
    {
        if (number < at_.room)
            return at_.directory[number] == absent() ? nullptr : at_.directory[number];
        auto const* const far = far_.find(number);
        return far == nullptr ? nullptr : far->part;
    }
    /// Returns the words in the chunk of slot `i`, which has memory.
    word* words_for(std::size_t i) const noexcept
    {
        return i <= at_.mask ? at_.directory[i / slots] : far_.find(i / slots)->part;
    }

    MALLARD_COLD T* search(word key) const noexcept
    {
        std::size_t const i = words_of::index(key);
        auto const* const far = far_.find(i / slots);
        return far != nullptr && far->part[i % slots] == key
                   ? this->values_in(far->part) + i % slots
                   : nullptr;
    }

    template <bool Throws>
    MALLARD_COLD bool add_chunk(std::size_t number) noexcept(!Throws)
    {
        word* const words = this->template take_chunk<Throws>(number);
        if (words == nullptr)
            return false;
        undo unless_entered([&] { this->give_chunk(words); });
        std::size_t const room = std::max({at_.room, this->room_first, std::bit_ceil(number + 1)});
        bool const near =
            room == at_.room || room <= std::max(room_min, room_per_chunk * (at_.count + 1));
        if (!(near ? provide_near<Throws>(room) : provide_far<Throws>()))
            return false;
        unless_entered.keep();
        this->enter(words);
        if (near)
            at_.directory[number] = words;
        else
            far_.insert({number, words});
        return true;
    }

    /// Enlarges the directory to `room` entries. The new entries may belong to chunks that were
    /// found by binary search before.
    template <bool Throws>
    bool provide_near(std::size_t room) noexcept(!Throws)
    {
        if (room == at_.room)
            return true;
        if (!this->template enlarge_directory<Throws>(room, absent()))
            return false;
        for (auto* far = far_.entries; far != far_.from(room); ++far)
            at_.directory[far->number] = far->part;
        far_.erase_below(room);
        return true;
    }

    /// Allocates memory for one more chunk that is found by binary search.
    template <bool Throws>
    bool provide_far() noexcept(!Throws)
    {
        using entry = typename far_parts<word*>::entry;
        if ((far_.count + 1) * sizeof(entry) <= far_memory_.bytes)
            return true;
        std::size_t const count = std::max<std::size_t>(8, 2 * far_.count);
        chunk const taken = take_verified<Throws>(this->upstream(), layout_of<entry>(count));
        if (taken.data == nullptr)
            return false;
        auto* const entries = static_cast<entry*>(taken.data);
        std::uninitialized_copy(far_.entries, far_.end(), entries);
        give_far_memory();
        far_memory_ = taken;
        far_.entries = entries;
        return true;
    }
    void give_far_memory() noexcept
    {
        if (far_memory_.data != nullptr)
            give(this->upstream(), far_memory_);
    }

    far_parts<word*> far_;
    chunk far_memory_{};
};

/// Like `reserved_slots`, but the committed part of each range grows only up to 1,024 slots for
/// each value, or to 16 MiB of slots if that is more. Slots with larger indices are in islands,
/// which are parts of the same ranges that are committed separately. If the committed part grows
/// over an island later, it includes the island.
template <class T, class Key, std::size_t BytesMax>
class scattered_ranges : public reserved_slots<T, Key, BytesMax> {
    using base = reserved_slots<T, Key, BytesMax>;
    using base::at_;
    using base::note;
    using typename base::word;
    using typename base::words_of;

    static constexpr std::size_t island = std::max(base::slots_first, slots_per_bits);
    static constexpr std::size_t near_min =
        std::max(island, std::bit_floor((std::size_t{1} << 24) / base::slot_bytes));
    static constexpr std::size_t near_per_value = 1024;

    struct nothing {};
    using islands = far_parts<nothing>;
    using entry = typename islands::entry;

public:
    scattered_ranges() noexcept = default;
    scattered_ranges(scattered_ranges&& other) noexcept { *this = std::move(other); }
    scattered_ranges& operator=(scattered_ranges&& other) noexcept
    {
        far_ = std::exchange(other.far_, {});
        far_memory_ = std::move(other.far_memory_);
        base::operator=(std::move(other));
        return *this;
    }
    ~scattered_ranges()
    {
        for (auto* far = far_.entries; far != far_.end(); ++far)
            asan::unpoison(at_.values + far->number * island, island * sizeof(T));
    }

    std::size_t capacity() const noexcept { return at_.capacity + far_.count * island; }

    template <bool Throws>
    bool provide(std::size_t i, std::size_t values) noexcept(!Throws)
    {
        bool const there = i < at_.capacity || far_.find(i / island) != nullptr || add(i, values);
        if constexpr (Throws)
            if (!there)
                throw_bad_alloc();
        return there;
    }
    std::size_t next_group(std::size_t w) const noexcept
    {
        std::size_t const i = w * slots_per_bits;
        if (i <= at_.mask)
            return w;
        auto const* const next = far_.from(i / island);
        return next == far_.end() ? words_of::slots_max
                                  : std::max(w, next->number * (island / slots_per_bits));
    }
    slot_bits live_bits(std::size_t w) const noexcept
    {
        std::size_t const i = w * slots_per_bits;
        return i <= at_.mask || far_.find(i / island) != nullptr ? this->bits_at(w) : 0;
    }
    [[gnu::always_inline]] T* find(word key) const noexcept
    {
        std::size_t const i = this->bounded(key);
        if (this->word_of(i) == key) [[likely]]
            return this->value_of(i);
        return far_.count == 0 ? nullptr : search(key);
    }

    void add_to(statistics& s) const noexcept
    {
        base::add_to(s);
        s.bytes_taken += far_memory_.bytes() + far_.count * island * base::slot_bytes;
        s.chunks += far_.count;
    }

private:
    MALLARD_COLD T* search(word key) const noexcept
    {
        std::size_t const i = words_of::index(key);
        return far_.find(i / island) != nullptr && this->word_of(i) == key ? this->value_of(i)
                                                                           : nullptr;
    }

    MALLARD_COLD bool add(std::size_t i, std::size_t values) noexcept
    {
        bool const first = at_.limit == 0;
        if (first && !this->begin())
            return false;
        std::size_t const wanted = std::bit_ceil(i + 1);
        if (i < at_.limit &&
            (i < at_.capacity ||
             (wanted <= std::max(near_min, near_per_value * values) && add_near(wanted)) ||
             add_island(i / island)))
            return true;
        if (first) {
            scattered_ranges before;
            std::swap(before.at_.error, at_.error);
            std::swap(before.at_.failure, at_.failure);
            *this = std::move(before);
        }
        return false;
    }

    bool add_near(std::size_t slots) noexcept
    {
        if (!this->commit_words(std::max(slots, at_.mask + 1)) || !this->commit_values(slots))
            return false;
        for (auto* far = far_.entries; far != far_.end() && far->number * island < slots; ++far)
            unpoison_values(far->number * island);
        far_.erase_below(slots / island);
        return true;
    }

    /// Commits the memory of one island. If a part of it cannot be committed, the parts that were
    /// committed before have no entry, and stay zero.
    bool add_island(std::size_t number) noexcept
    {
        std::size_t const first = number * island;
        if (far_memory_.bytes() == 0)
            far_memory_ = os::growing_range(this->at_.limit / island * sizeof(entry));
        if (!note(far_memory_.commit((far_.count + 1) * sizeof(entry), alignof(entry)),
                  far_memory_) ||
            !note(this->words_.commit_far(first * sizeof(word), island * sizeof(word)),
                  this->words_) ||
            !note(this->bits_.commit_far(first / 8, island / 8), this->bits_) ||
            !note(this->values_.commit_far(first * sizeof(T), island * sizeof(T)), this->values_))
            return false;
        asan::poison(at_.values + first, island * sizeof(T));
        far_.entries = reinterpret_cast<entry*>(far_memory_.begin());
        far_.insert({number, {}});
        at_.growths += 1;
        return true;
    }

    /// Permits access to the values of an island, which a growth of the committed part has
    /// poisoned.
    void unpoison_values(std::size_t first) noexcept
    {
        for (std::size_t i = first; i < first + island; ++i)
            if ((this->bits_at(i / slots_per_bits) & slot_bit(i)) != 0)
                asan::unpoison(at_.values + i, sizeof(T));
    }

    islands far_;
    os::growing_range far_memory_;
};

/// The storage of a secondary map, derived from `Storage`. The slots are scattered, except in
/// `fixed` storage, which stays as it is.
template <class Storage>
struct scattered : Storage {};
template <source Source>
struct scattered<Source> {
    template <class T, class Key>
    using slots = scattered_chunks<T, Key, Source>;
};
template <std::size_t BytesMax>
struct scattered<reserved<BytesMax>> {
    template <class T, class Key>
    using slots = scattered_ranges<T, Key, BytesMax>;
};

} // namespace mallard
