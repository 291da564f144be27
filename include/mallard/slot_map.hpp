// A slot map: a pool addressed by keys that are never given twice.
#pragma once

#include <mallard/detail/slots/slot_table.hpp>

namespace mallard {

struct slot_map_options {
    bool wrapping = false;     ///< a slot whose generations are used up begins again, and an old
                               ///< key may name a new element
    check checks = check::off; ///< verify `key_of` and iterators; tell Valgrind about values
};

/// Elements by key: one that is erased makes its key stale for ever, and no element moves.
///
///     mallard::slot_map<enemy> enemies;
///     mallard::key32 const target = enemies.insert({"duck", 7});
///     if (enemy* e = enemies.get(target))
///         e->health -= 1;
///     enemies.erase(target); // get(target) is null from now on
///
/// A lookup is one load and one comparison (see `slot_words`), safe for any key, of
/// another map or made up. Pointers stay good until their element is erased.
///
/// `Storage` is where the slots are:
///   reserved<>   ranges of address space that grow in place; needs the library
///   any source   `slot_map<T, key32, default_heap>`: chunks of 16 KiB, a lookup has one
///                load more
///   fixed<N>     N slots inside the object; then it does not move
/// Nothing is taken before the first element. Each costs a word (4 bytes for `key32`) and a
/// bit beside its own. Memory is kept until the end of the map, because it says which keys
/// are stale.
///
/// A slot that was erased is the next to be used. When all generations of a slot have
/// been given it retires: `retired()` counts those. A `key32` lasts for 4,095 elements a
/// slot, so a map of n slots for 4,095 n at least.
///
/// `insert` and `emplace` throw `std::bad_alloc`, or what the source throws, when memory is
/// refused or every slot that a key can name is in use or retired; the `try_` forms give the
/// null key. A call that throws, or whose constructor throws, has changed nothing. Not
/// copied; moved and swapped in constant time. One thread at a time: for several see
/// `shared_slot_map`. Constructors, destructors and whatever `for_each` calls may use the map.
template <class T, class Key = key32, class Storage = reserved<>,
          slot_map_options Options = slot_map_options{}>
class slot_map
    : public slot_table<slot_map<T, Key, Storage, Options>, T, Key, Storage, Options.checks> {
    using table = slot_table<slot_map, T, Key, Storage, Options.checks>;
    using table::end_;
    using table::free_;
    using table::size_;
    using table::slots_;
    using table::watched;
    using typename table::slots_type;
    using typename table::word;
    using typename table::words_of;
    static constexpr bool fits_registers =
        std::is_trivially_copyable_v<T> && sizeof(T) <= 2 * sizeof(void*);

public:
    slot_map() = default;
    explicit slot_map(Storage from) noexcept
        requires source<Storage>
        : table(slots_type(std::move(from)))
    {
    }
    /// The moved-from map is empty, and as if new.
    slot_map(slot_map&& other) noexcept
        requires std::move_constructible<slots_type>
        : table(std::move(other)), retired_(std::exchange(other.retired_, 0)),
          detached_(std::exchange(other.detached_, 0))
    {
    }
    slot_map& operator=(slot_map&& other) noexcept
        requires std::movable<slots_type>
    {
        if (this != &other) {
            std::destroy_at(this);
            std::construct_at(this, std::move(other));
        }
        return *this;
    }
    ~slot_map() { this->destroy_all(); }

    Key insert(const T& value)
    {
        if constexpr (fits_registers) // caught by value, it needs no stack for the cold path
            return place<true>([value](Key, T* at) { std::construct_at(at, value); });
        else
            return emplace(value);
    }
    Key insert(T&& value)
        requires(!fits_registers)
    {
        return emplace(std::move(value));
    }

    template <class... Args>
    Key emplace(Args&&... args)
    {
        return place<true>([&](Key, T* at) { std::construct_at(at, std::forward<Args>(args)...); });
    }
    /// Null: no memory, or no slot is left. What the constructor throws passes.
    template <class... Args>
    [[nodiscard]] Key try_emplace(Args&&... args)
    {
        return place<false>(
            [&](Key, T* at) { std::construct_at(at, std::forward<Args>(args)...); });
    }
    /// What `make(key)` returns, for elements that know their key.
    template <std::invocable<Key> F>
    Key insert_with(F make)
    {
        return place<true>([&](Key k, T* at) { ::new (static_cast<void*>(at)) T(make(k)); });
    }

    /// False: the key names nothing. A detached key is given up.
    bool erase(Key k) noexcept
    {
        std::size_t const i = slots_.bounded(k.value());
        if (slots_.word_of(i) != k.value()) [[unlikely]]
            return give_up(k);
        this->end_life(i);
        return recycle(i, k.value());
    }

    /// Moves the element out and erases it.
    std::optional<T> remove(Key k)
    {
        std::optional<T> value = this->take(k);
        if (value)
            recycle(k.index(), k.value());
        return value;
    }

    /// Moves the element out and keeps the key: it names nothing until `reattach`, and no
    /// other element gets it. `erase` and `clear` give it up.
    std::optional<T> detach(Key k)
    {
        std::optional<T> value = this->take(k);
        if (value) {
            slots_.word_of(k.index()) = words_of::detached(k.value());
            detached_ += 1;
        }
        return value;
    }
    /// Null: the key is not detached, and `value` is as it was.
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

    /// Erases all; keys become stale, detached ones too. O(slots ever used).
    void clear() noexcept
    {
        this->for_each([this](Key k, T&) { erase(k); });
        for (std::size_t i = 1; i < end_ && detached_ != 0; ++i)
            if (words_of::is_detached(slots_.word_of(i)))
                give_up(Key(static_cast<word>(slots_.word_of(i) | i)));
    }

    /// The key of an element of this map, from where it lies. `check::on` stops at
    /// anything else. O(1), over a source O(chunks).
    [[nodiscard]] Key key_of(const T& element) const noexcept
    {
        std::size_t const i = slots_.find(std::addressof(element));
        if (watched && !(i != 0 && i < end_ && this->is_live(i))) [[unlikely]]
            fatal_foreign_element(std::addressof(element));
        return this->key_at(i);
    }

    /// Makes memory for `count` elements in all, or throws.
    void reserve(std::size_t count)
    {
        while (capacity() < count)
            slots_.template grow<true>();
    }
    [[nodiscard]] bool try_reserve(std::size_t count) noexcept
    {
        while (capacity() < count)
            if (!slots_.template grow<false>())
                return false;
        return true;
    }

    /// Elements for which there is memory, those there are included.
    [[nodiscard]] std::size_t capacity() const noexcept
    {
        std::size_t const slots = slots_.capacity();
        return slots == 0 ? 0 : slots - 1 - retired_ - detached_;
    }
    /// Slots that no key can name any more.
    [[nodiscard]] std::size_t retired() const noexcept { return retired_; }
    /// Keys that wait for `reattach`.
    [[nodiscard]] std::size_t detached() const noexcept { return detached_; }

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
    /// The one place where an element begins.
    template <bool Throws, class Make>
    [[gnu::always_inline]] Key place(Make make)
    {
        if (free_ == 0) [[unlikely]]
            return refill_and_place<Throws>(make);
        word const k = free_;
        std::size_t const i = words_of::index(k);
        free_ = slots_.word_of(i); // first: a constructor may insert
        put_back unless_made{this, k};
        this->make_value(i, [&](T* at) { make(Key(k), at); });
        unless_made.map = nullptr;
        this->begin_life(i, k);
        return Key(k);
    }

    template <bool Throws, class Make>
    MALLARD_COLD Key refill_and_place(Make make)
    {
        return refill<Throws>() ? place<Throws>(make) : Key();
    }

    /// What a constructor that throws leaves behind: a slot that gives the same key again.
    struct put_back {
        slot_map* map;
        word key;
        ~put_back()
        {
            if (map != nullptr)
                map->slots_.word_of(words_of::index(key)) = std::exchange(map->free_, key);
        }
    };

    /// Makes a list of the next slots that were never used: at most those of one word of
    /// bits, so that a map grows through its memory as it is used.
    template <bool Throws>
    [[gnu::noinline]] bool refill() noexcept(!Throws)
    {
        if (end_ == slots_.capacity() || slots_.capacity() == 0)
            if (!slots_.template grow<Throws>())
                return false;
        std::size_t i = end_ + (end_ == 0); // not slot 0
        std::size_t const end = std::min(slots_.capacity(), align_up(i + 1, slots_per_bits));
        free_ = words_of::first(i);
        for (; i + 1 < end; ++i)
            slots_.word_of(i) = words_of::first(i + 1);
        end_ = end;
        return true;
    }

    /// The slot's next key becomes the first of the list. True, as `retire` says, so that
    /// the way there is a jump.
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
    MALLARD_COLD bool give_up(Key k) noexcept
    {
        if (!is_detached(k))
            return false;
        detached_ -= 1;
        return recycle(k.index(), k.value());
    }

    // Of slots 1 to end_:  size + retired + detached + |list from free_ on| == end_ - 1
    std::size_t retired_ = 0;
    std::size_t detached_ = 0;
};

} // namespace mallard
