// A slot map, which is a container whose elements are found by generational keys.
#pragma once

#include <mallard/detail/slots/slot_table.hpp>

namespace mallard {

/// Options of `slot_map`.
///
///     constexpr mallard::slot_map_options wrapping{.wrapping = true};
///     mallard::slot_map<enemy, mallard::key32, mallard::reserved<>, wrapping> enemies;
struct slot_map_options {
    bool wrapping = false; ///< when the generations of a slot are used up, start again with
                           ///< generation 1; an old key may then name a new element
    /// Whether to verify `key_of` and iterators, and to mark erased values for Valgrind.
    check checks = check::off;
};

/// A container whose elements are found by keys. The key of an erased element never finds another
/// element. Elements never move.
///
///     mallard::slot_map<enemy> enemies;
///     mallard::key32 const target = enemies.insert({"duck", 7});
///     if (enemy* e = enemies.get(target))
///         e->health -= 1;
///     enemies.erase(target); // get(target) is null from now on
///
/// A lookup is one load and one comparison (see `slot_words`), and is safe for any key, even a key
/// of another map or a made-up number. Pointers stay valid until their element is erased.
///
/// `Storage` determines where the slots are:
///   reserved<>   ranges of address space that grow in place; needs the compiled library
///   any source   `slot_map<T, key32, default_heap>`: chunks of 16 KiB; a lookup has one more
///                load
///   fixed<N>     N slots inside the object, which is then neither copied nor moved
/// A map allocates no memory before the first element. In addition to its own size, each element
/// needs a word (4 bytes for `key32`) and a bit. The map keeps its memory until it is destroyed,
/// because the slots record which keys are stale.
///
/// The slot that was erased last is used next. When all generations of a slot are used up, the slot
/// retires and stays empty. `retired()` counts such slots. With `key32`, a slot retires after 4,095
/// elements.
///
/// When no memory is left, or every slot that a key can name is used or retired, `insert` and
/// `emplace` throw `std::bad_alloc`, or what the source throws; the `try_` functions return the
/// null key. A call that fails, or in which a constructor throws, changes nothing. A map cannot be
/// copied. It can be moved and swapped in constant time. Only one thread at a time may use it. For
/// several threads, use `shared_slot_map`. Constructors, destructors and the function given to
/// `for_each` may use the map.
template <class T, class Key = key32, class Storage = reserved<>,
          slot_map_options Options = slot_map_options{}>
class slot_map
    : public slot_table<slot_map<T, Key, Storage, Options>, T, Key, Storage, Options.checks> {
    using table = slot_table<slot_map, T, Key, Storage, Options.checks>;
    using table::checks_on;
    using table::end_;
    using table::free_;
    using table::size_;
    using table::slots_;
    using typename table::slots_type;
    using typename table::word;
    using typename table::words_of;
    static constexpr bool fits_registers =
        std::is_trivially_copyable_v<T> && sizeof(T) <= 2 * sizeof(void*);

public:
    slot_map() = default;
    /// Makes a map that requests memory from a source.
    explicit slot_map(Storage from) noexcept
        requires source<Storage>
        : table(slots_type(std::move(from)))
    {
    }
    /// Moves the elements to this map. The moved-from map is empty, and like a new map.
    slot_map(slot_map&& other) noexcept
        requires std::move_constructible<slots_type>
        : table(static_cast<table&&>(other)), retired_(std::exchange(other.retired_, 0)),
          detached_(std::exchange(other.detached_, 0))
    {
    }
    slot_map& operator=(slot_map&& other) noexcept
        requires std::movable<slots_type>
    {
        return replace_by_move(*this, std::move(other));
    }
    ~slot_map() { this->destroy_all(); }

    /// Inserts an element and returns its key.
    Key insert(const T& value)
    {
        // A small value is captured by copy, because a captured reference would force the value
        // into memory.
        if constexpr (fits_registers)
            return place<true>([value](Key, T* at) { std::construct_at(at, value); });
        else
            return emplace(value);
    }
    /// Moves an element into the map and returns its key.
    Key insert(T&& value)
        requires(!fits_registers)
    {
        return emplace(std::move(value));
    }

    /// Constructs an element from `args` in its slot, and returns its key.
    template <class... Args>
    Key emplace(Args&&... args)
    {
        return place<true>([&](Key, T* at) { std::construct_at(at, std::forward<Args>(args)...); });
    }
    /// Like `emplace`, but returns the null key when no memory or no slot is left. An exception
    /// from the constructor passes through.
    template <class... Args>
    [[nodiscard]] Key try_emplace(Args&&... args)
    {
        return place<false>(
            [&](Key, T* at) { std::construct_at(at, std::forward<Args>(args)...); });
    }
    /// Inserts what `make(key)` returns. Use this function for elements that store their own key.
    ///
    ///     nodes.insert_with([](mallard::key32 self) { return node{.id = self}; });
    template <std::invocable<Key> F>
    Key insert_with(F make)
    {
        return place<true>([&](Key k, T* at) { ::new (static_cast<void*>(at)) T(make(k)); });
    }

    /// Erases the element. Returns false when the key finds no element. If the key is detached, its
    /// slot becomes free.
    bool erase(Key k) noexcept
    {
        std::size_t const i = slots_.bounded(k.value());
        if (slots_.word_of(i) != k.value()) [[unlikely]]
            return free_detached(k);
        this->end_life(i);
        return recycle(i, k.value());
    }

    /// Moves the element out of the map and erases it. Returns nothing when the key finds no
    /// element.
    std::optional<T> remove(Key k)
    {
        std::optional<T> value = this->take(k);
        if (value)
            recycle(k.index(), k.value());
        return value;
    }

    /// Moves the element out and reserves its key. The key finds no element until `reattach`, and
    /// no other element receives the key. `erase` and `clear` end the reservation.
    ///
    ///     std::optional<enemy> away = enemies.detach(target);
    ///     ... enemies.reattach(target, std::move(*away));
    std::optional<T> detach(Key k)
    {
        std::optional<T> value = this->take(k);
        if (value) {
            slots_.word_of(k.index()) = words_of::detached(k.value());
            detached_ += 1;
        }
        return value;
    }
    /// Inserts an element again under its detached key. Returns null, and does not change `value`,
    /// when the key is not detached.
    T* reattach(Key k, T&& value)
    {
        std::size_t const i = slots_.bounded(k.value());
        if (!is_detached(k))
            return nullptr;
        T* const at = this->make_value(i, [&](T* to) { std::construct_at(to, std::move(value)); });
        detached_ -= 1;
        this->begin_life(i, k.value());
        return at;
    }

    /// Erases all elements and frees detached keys. All keys become stale. O(slots ever used).
    void clear() noexcept
    {
        this->for_each([this](Key k, T&) { erase(k); });
        for (std::size_t i = 1; i < end_ && detached_ != 0; ++i)
            if (words_of::is_detached(slots_.word_of(i)))
                free_detached(Key(static_cast<word>(slots_.word_of(i) | i)));
    }

    /// Returns the key of an element in this map, found by the address of the element. With
    /// `check::on`, an address at which no element is stops the process. O(1), or O(chunks) if the
    /// storage is a source.
    [[nodiscard]] Key key_of(const T& element) const noexcept
    {
        std::size_t const i = slots_.find(std::addressof(element));
        if (checks_on && !(i != 0 && i < end_ && this->is_live(i))) [[unlikely]]
            fatal_foreign_element(std::addressof(element));
        return this->key_at(i);
    }

    /// Allocates memory so that the map can hold `count` elements in total, or throws
    /// `std::bad_alloc`, or what the source throws.
    void reserve(std::size_t count)
    {
        while (capacity() < count)
            slots_.template grow<true>();
    }
    /// Like `reserve`, but returns false when no memory is left.
    [[nodiscard]] bool try_reserve(std::size_t count) noexcept
    {
        while (capacity() < count)
            if (!slots_.template grow<false>())
                return false;
        return true;
    }

    /// Returns how many elements fit in the memory of the map, including the elements that it has.
    [[nodiscard]] std::size_t capacity() const noexcept
    {
        std::size_t const slots = slots_.capacity();
        return slots == 0 ? 0 : slots - 1 - retired_ - detached_;
    }
    /// Returns the number of slots that have used up their generations.
    [[nodiscard]] std::size_t retired() const noexcept { return retired_; }
    /// Returns the number of detached keys, which wait for `reattach`.
    [[nodiscard]] std::size_t detached() const noexcept { return detached_; }

    /// Returns the statistics of the map. O(1).
    [[nodiscard]] statistics stats() const noexcept
    {
        statistics s{.blocks_live = size_, .bytes_live = size_ * sizeof(T)};
        s.bytes_idle = (capacity() - size_) * sizeof(T);
        slots_.add_to(s);
        return s;
    }

    friend void swap(slot_map& a, slot_map& b) noexcept
        requires std::movable<slots_type>
    {
        slot_map before = std::move(a);
        a = std::move(b);
        b = std::move(before);
    }

private:
    /// Allocates a slot and calls `make(key, T*)` to construct the element. All functions that
    /// insert call this one.
    template <bool Throws, class Make>
    [[gnu::always_inline]] Key place(Make make)
    {
        if (free_ == 0) [[unlikely]]
            return refill_and_place<Throws>(make);
        word const k = free_;
        std::size_t const i = words_of::index(k);
        free_ = slots_.word_of(i); // written before the constructor runs, which may insert
        undo unless_made([this, k, i] { slots_.word_of(i) = std::exchange(free_, k); });
        this->make_value(i, [&](T* at) { make(Key(k), at); });
        unless_made.keep();
        this->begin_life(i, k);
        return Key(k);
    }

    template <bool Throws, class Make>
    MALLARD_COLD Key refill_and_place(Make make)
    {
        return refill<Throws>() ? place<Throws>(make) : Key();
    }

    /// Builds a free list of the next slots that were never used. Adds at most 64 slots at a time,
    /// so that the map touches no memory before it is needed.
    template <bool Throws>
    [[gnu::noinline]] bool refill() noexcept(!Throws)
    {
        if (end_ == slots_.capacity() || slots_.capacity() == 0)
            if (!slots_.template grow<Throws>())
                return false;
        std::size_t i = end_ + (end_ == 0); // slot 0 has no value
        std::size_t const end = std::min(slots_.capacity(), align_up(i + 1, slots_per_bits));
        free_ = words_of::first(i);
        for (; i + 1 < end; ++i)
            slots_.word_of(i) = words_of::first(i + 1);
        end_ = end;
        return true;
    }

    /// Pushes the slot, with its next key, onto the free list. If the slot has no next key, retires
    /// the slot. `recycle` and `retire` always return true, so that the call to `retire` compiles
    /// to a jump.
    bool recycle(std::size_t i, word k) noexcept
    {
        word next = words_of::after(k);
        if (next < k) [[unlikely]] {
            if (!Options.wrapping)
                return retire(i);
            next = words_of::first(i);
        }
        slots_.word_of(i) = std::exchange(free_, next);
        return true;
    }
    MALLARD_COLD bool retire(std::size_t i) noexcept
    {
        slots_.word_of(i) = 0;
        retired_ += 1;
        return true;
    }

    bool is_detached(Key k) const noexcept
    {
        std::size_t const i = slots_.bounded(k.value());
        return i == k.index() && k.generation() != 0 &&
               slots_.word_of(i) == words_of::detached(k.value());
    }
    MALLARD_COLD bool free_detached(Key k) noexcept
    {
        if (!is_detached(k))
            return false;
        detached_ -= 1;
        return recycle(k.index(), k.value());
    }

    // Slots 1 to end_ - 1:  size + retired + detached + |list from free_ on|  ==  end_ - 1
    std::size_t retired_ = 0;
    std::size_t detached_ = 0;
};

} // namespace mallard
