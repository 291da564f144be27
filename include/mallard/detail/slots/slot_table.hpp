// The base class of slot_map and secondary_map, with lookup by key, and iteration over live slots.
#pragma once

#include <mallard/detail/base/fatal_objects.hpp>
#include <mallard/detail/base/undo.hpp>
#include <mallard/detail/slots/slot_storage.hpp>

#include <array>
#include <concepts>
#include <iterator>
#include <memory>
#include <optional>

namespace mallard {

/// Selects the class that stores the slots. A tag such as `reserved<>` has this class as its member
/// `slots`. For a source, the class is `chunked_slots`.
template <class Storage, class T, class Key>
struct slots_in {
    using type = typename Storage::template slots<T, Key>;
};
template <source Source, class T, class Key>
struct slots_in<Source, T, Key> {
    using type = chunked_slots<T, Key, Source>;
};

/// The base class of `slot_map` and `secondary_map`. `Self` is the derived class.
template <class Self, class T, class Key, class Storage, check Checks>
class slot_table {
    static_assert(std::is_object_v<T> && !std::is_array_v<T> && !std::is_const_v<T>,
                  "the values of a slot map must be objects, not const and not arrays");

protected:
    using slots_type = typename slots_in<Storage, T, Key>::type;
    using words_of = slot_words<Key>;
    using word = typename words_of::word;
    static constexpr bool checks_on = Checks == check::on;
    static constexpr bool is_scattered = requires(const slots_type s) { s.next_group(0); };

    template <bool Const>
    class iterator_of;

public:
    using key_type = Key;                     ///< the type of the keys
    using value_type = T;                     ///< the type of the elements
    using iterator = iterator_of<false>;      ///< iterates over `{key, value}`
    using const_iterator = iterator_of<true>; ///< iterates over `{key, constant value}`

    /// Returns the element of a key, or null if the key is null or stale. Any key is safe, even a
    /// key of another map.
    ///
    ///     if (enemy* const e = enemies.get(target)) e->health -= 1;
    [[nodiscard]] T* get(Key k) noexcept { return find(k); }
    /// Returns the element of a key in a constant map, or null if the key is null or stale.
    [[nodiscard]] const T* get(Key k) const noexcept { return find(k); }
    /// Returns whether the map has an element with this key.
    [[nodiscard]] bool contains(Key k) const noexcept { return find(k) != nullptr; }

    /// Returns the elements of several keys. Returns only null pointers if a key finds no element,
    /// or if two keys are the same. So the returned elements are always distinct.
    ///
    ///     auto const [a, b] = enemies.get_disjoint(first, second);
    template <std::same_as<Key>... Keys>
    [[nodiscard]] std::array<T*, sizeof...(Keys)> get_disjoint(Keys... keys) noexcept
    {
        std::array<T*, sizeof...(Keys)> found{get(keys)...};
        bool good = true;
        for (std::size_t i = 0; i < found.size(); ++i) {
            good = good && found[i] != nullptr;
            for (std::size_t j = 0; j < i; ++j)
                good = good && found[i] != found[j];
        }
        return good ? found : std::array<T*, sizeof...(Keys)>{};
    }

    /// Returns the number of elements.
    [[nodiscard]] std::size_t size() const noexcept { return size_; }
    /// Returns whether there is no element.
    [[nodiscard]] bool empty() const noexcept { return size_ == 0; }

    /// Iterates over `{key, value}` in the order of slots:
    ///
    ///     for (auto [key, enemy] : enemies) ...
    ///
    /// During an iteration by iterators, `for_each` or `retain`, you may insert and erase elements,
    /// even the current one. An element that stays is visited exactly once. An element that is
    /// erased before its turn is not visited. An element that is inserted during the iteration is
    /// visited once or not at all. An iterator whose element is erased may be advanced, but not
    /// dereferenced.
    iterator begin() noexcept { return iterator(*this); }
    iterator end() noexcept { return {}; } ///< after the last element
    /// Returns an iterator to the first element, in a constant map.
    const_iterator begin() const noexcept { return const_iterator(*this); }
    const_iterator end() const noexcept { return {}; } ///< after the last element

    /// Calls `f(key, value)` for each element. Slightly faster than the iterators, with the same
    /// rules if `f` inserts and erases. With secondary maps as further arguments, calls `f(key,
    /// value, theirs...)` for the elements that have a value in each of those maps.
    ///
    ///     enemies.for_each([](auto key, enemy& e, speed& s) { e.x += s; }, speeds);
    template <class F, class... Others>
    void for_each(F f, Others&... others)
    {
        for_each_in(*this, f, others...);
    }
    /// Calls `f(key, value)` for each element of a constant map, as the function above does.
    template <class F, class... Others>
    void for_each(F f, Others&... others) const
    {
        for_each_in(*this, f, others...);
    }

    /// Erases each element for which `keep(key, value)` returns false. Returns how many were
    /// erased.
    ///
    ///     enemies.retain([](auto, const enemy& e) { return e.health > 0; });
    template <class F>
    std::size_t retain(F keep)
    {
        std::size_t const before = size_;
        for_each([&](Key k, T& value) {
            if (!keep(k, value))
                static_cast<Self&>(*this).erase(k);
        });
        return before - size_;
    }
    /// Erases each element for which `drop(key, value)` returns true. Returns how many were erased.
    template <class F>
    friend std::size_t erase_if(Self& from, F drop)
    {
        return from.retain([&](Key k, T& value) { return !drop(k, value); });
    }

    /// Returns the slots. `storage().last_failure()` returns why `reserved<>` got no memory from
    /// the system.
    const slots_type& storage() const noexcept { return slots_; }

    /// Returns one bit for each of the 64 slots in group `w`. The bit is 1 if the slot may have a
    /// value. `for_each` of another map calls this function.
    slot_bits candidates(std::size_t w) const noexcept
    {
        if (w * slots_per_bits >= end_)
            return 0;
        if constexpr (is_scattered)
            return slots_.live_bits(w);
        else
            return slots_.bits_at(w);
    }

protected:
    slot_table() = default;
    constexpr explicit slot_table(slots_type slots) noexcept : slots_(std::move(slots)) {}
    slot_table(slot_table&& other) noexcept
        : free_(std::exchange(other.free_, 0)), size_(std::exchange(other.size_, 0)),
          end_(std::exchange(other.end_, 0)), slots_(std::move(other.slots_))
    {
    }
    ~slot_table() = default;

    [[gnu::always_inline]] T* find(Key k) const noexcept
    {
        if constexpr (is_scattered) {
            return slots_.find(k.value());
        } else {
            std::size_t const i = slots_.bounded(k.value());
            // With a branch, the processor can load the value before the comparison is done.
            if (slots_.word_of(i) == k.value()) [[likely]] {
                T* const value = slots_.value_of(i);
                if (value == nullptr)
                    __builtin_unreachable(); // so callers need no second test
                return value;
            }
            return nullptr;
        }
    }

    Key key_at(std::size_t i) const noexcept { return Key(slots_.word_of(i)); }
    bool is_live(std::size_t i) const noexcept { return words_of::index(slots_.word_of(i)) == i; }

    /// Calls `make(T*)` to construct the value of slot `i`. An exception leaves the slot empty.
    template <class Make>
    T* make_value(std::size_t i, Make&& make)
    {
        T* const at = slots_.value_of(i);
        unpoison<checks_on>(at, sizeof(T));
        undo unless_made([at] { poison<checks_on>(at, sizeof(T)); });
        make(at);
        unless_made.keep();
        return at;
    }
    void begin_life(std::size_t i, word w) noexcept
    {
        slots_.word_of(i) = w;
        slots_.bits_at(i / slots_per_bits) |= slot_bit(i);
        size_ += 1;
    }
    /// Destroys the value of slot `i`. A lookup of the key inside the destructor finds no element.
    /// The caller writes the slot's word afterwards.
    void end_life(std::size_t i) noexcept
    {
        if constexpr (!std::is_trivially_destructible_v<T>)
            slots_.word_of(i) = 0;
        slots_.bits_at(i / slots_per_bits) &= ~slot_bit(i);
        size_ -= 1;
        std::destroy_at(slots_.value_of(i));
        poison<checks_on>(slots_.value_of(i), sizeof(T));
    }

    /// Moves the value out, and then destroys what is left in the slot, as `end_life` does.
    std::optional<T> take(Key k)
    {
        T* const at = find(k);
        if (at == nullptr)
            return {};
        std::optional<T> value(std::in_place, std::move(*at));
        end_life(k.index());
        return value;
    }
    void destroy_all() noexcept
    {
        if constexpr (!std::is_trivially_destructible_v<T>)
            for_each([this](Key k, T&) { end_life(k.index()); });
    }

    // `free_` and the first fields of `slots_` share one cache line, which all hot calls use.
    word free_ = 0; // the key that the next element of a slot map gets; 0: no slot is free
    std::size_t size_ = 0;
    std::size_t end_ = 0; // slots from this index on were never used
    slots_type slots_{};

private:
    template <class F, class... Others>
    static void for_each_in(auto& self, F& f, Others&... others)
    {
        for (std::size_t w = self.next_group(0); w * slots_per_bits < self.end_;
             w = self.next_group(w + 1)) {
            slot_bits live = (self.slots_.bits_at(w) & ... & others.candidates(w));
            while (live != 0) {
                std::size_t const i = first_of(w, live);
                Key const k = self.key_at(i);
                call_if_all(f, k, *self.get_at(i), others.get(k)...);
                live &= live - 1;
                live &= self.slots_.bits_at(w); // skips elements that f has erased
            }
        }
    }
    template <class F, class Value, class... Found>
    static void call_if_all(F& f, Key k, Value& value, Found*... found)
    {
        if ((true && ... && (found != nullptr)))
            f(k, value, *found...);
    }
    static std::size_t first_of(std::size_t w, slot_bits live) noexcept
    {
        return w * slots_per_bits + static_cast<std::size_t>(std::countr_zero(live));
    }
    /// Returns the first group, from `w` on, whose slots may have values.
    std::size_t next_group(std::size_t w) const noexcept
    {
        if constexpr (is_scattered)
            return slots_.next_group(w);
        else
            return w;
    }
    T* get_at(std::size_t i) noexcept { return slots_.value_of(i); }
    const T* get_at(std::size_t i) const noexcept { return slots_.value_of(i); }
};

/// A forward iterator over the live slots of a `slot_table`.
template <class Self, class T, class Key, class Storage, check Checks>
template <bool Const>
class slot_table<Self, T, Key, Storage, Checks>::iterator_of {
    using table = std::conditional_t<Const, const slot_table, slot_table>;
    using element = std::conditional_t<Const, const T, T>;

public:
    struct entry {
        Key key;
        element& value;
    };
    using value_type = entry;
    using reference = entry;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag; // `*i` is not a true reference
    using iterator_concept = std::forward_iterator_tag;
    struct pointer {
        entry here;
        entry* operator->() noexcept { return std::addressof(here); }
    };

    iterator_of() noexcept = default;
    explicit iterator_of(table& of) noexcept
        : of_(std::addressof(of)), w_(0), live_(of.candidates(0))
    {
        find_word();
    }
    /// Converts an `iterator` to a `const_iterator`. The template leaves the copy constructor
    /// implicit.
    template <bool Other>
        requires(Const && !Other)
    iterator_of(const iterator_of<Other>& other) noexcept
        : of_(other.of_), w_(other.w_), live_(other.live_)
    {
    }

    entry operator*() const noexcept
    {
        if (checks_on && (w_ == none || !of_->is_live(first_of(w_, live_)))) [[unlikely]]
            fatal_dead_iterator();
        std::size_t const i = first_of(w_, live_);
        return {of_->key_at(i), *of_->get_at(i)};
    }
    pointer operator->() const noexcept { return {**this}; }
    iterator_of& operator++() noexcept
    {
        live_ &= live_ - 1;
        live_ &= of_->slots_.bits_at(w_); // skips elements that were erased since the last step
        find_word();
        return *this;
    }
    iterator_of operator++(int) noexcept
    {
        iterator_of const before = *this;
        ++*this;
        return before;
    }
    friend bool operator==(const iterator_of& a, const iterator_of& b) noexcept
    {
        return a.w_ == b.w_ && std::countr_zero(a.live_) == std::countr_zero(b.live_);
    }

private:
    friend class iterator_of<true>;
    static constexpr std::size_t none = ~std::size_t{0};

    void find_word() noexcept
    {
        while (live_ == 0) {
            w_ = of_->next_group(w_ + 1);
            if (w_ * slots_per_bits >= of_->end_) {
                w_ = none;
                return;
            }
            live_ = of_->slots_.bits_at(w_);
        }
    }

    // `live_` has a bit for each slot of group `w_` that is not visited yet. The iterator points to
    // the lowest of these slots.
    table* of_ = nullptr;
    std::size_t w_ = none;
    slot_bits live_ = 0;
};

} // namespace mallard
