// Secondary maps store additional values for the keys of a slot map.
#pragma once

#include <mallard/detail/slots/scattered_slots.hpp>
#include <mallard/detail/slots/slot_table.hpp>

#include <unordered_map>

namespace mallard {

/// Stores values for the keys of a `slot_map`. The values are in slots of the secondary map, with
/// the same indices as in the slot map.
///
///     mallard::secondary_map<mallard::key32, speed> speeds;
///     speeds.set(key, {3, 4});
///     enemies.for_each([](auto key, enemy& e, speed& s) { e.x += s.x; }, speeds);
///
/// The secondary map does not refer to the slot map. So when an element is erased from the slot
/// map, its value stays here, and the key of the element still finds that value. If you set a value
/// for a newer key of the same slot, the old value is removed. You cannot set a value for an older
/// key, as long as generations do not wrap. To iterate only over the values of live elements,
/// iterate over the slot map (as above). To remove the other values, call `erase_if` for the keys
/// that the slot map does not contain.
///
/// A lookup costs as much as in the slot map. The map allocates memory only around slots that have
/// values, which is a chunk, or a few pages, for each group of near indices. So a key with a very
/// large index, such as a made-up key, needs no more memory than another key. If only a few of many
/// keys have values, see `sparse_secondary_map`. `Storage`, iterators, growth, exceptions and
/// threads are as for `slot_map`.
template <class Key, class V, class Storage = reserved<>, check Checks = check::off>
class secondary_map : public slot_table<secondary_map<Key, V, Storage, Checks>, V, Key,
                                        scattered<Storage>, Checks> {
    using table = slot_table<secondary_map, V, Key, scattered<Storage>, Checks>;
    using table::slots_;
    using typename table::slots_type;
    using typename table::words_of;

public:
    secondary_map() = default;
    /// Makes a map that requests memory from the given storage.
    explicit secondary_map(Storage from) noexcept
        requires source<Storage>
        : table(slots_type(std::move(from)))
    {
    }
    secondary_map(secondary_map&& other) noexcept
        requires std::move_constructible<slots_type>
    = default;
    secondary_map& operator=(secondary_map&& other) noexcept
        requires std::movable<slots_type>
    {
        return replace_by_move(*this, std::move(other));
    }
    ~secondary_map() { this->destroy_all(); }

    /// Sets the value of `k`, constructed from `args`. Returns null, and constructs nothing, when
    /// the key is null, or when there is a value for a newer key of the same slot. Throws
    /// `std::bad_alloc` when no memory is left. If the constructor throws, the old value is lost.
    ///
    ///     speeds.emplace(key, 3, 4);
    template <class... Args>
    V* emplace(Key k, Args&&... args)
    {
        return place<true>(k, std::forward<Args>(args)...);
    }
    /// Sets the value of `k`, like `emplace`, to a value that exists already.
    V* set(Key k, V value) { return place<true>(k, std::move(value)); }
    /// Like `emplace`, but also returns null when no memory is left.
    template <class... Args>
    [[nodiscard]] V* try_emplace(Key k, Args&&... args)
    {
        return place<false>(k, std::forward<Args>(args)...);
    }

    /// Erases the value of `k`. Returns false when `k` has no value.
    bool erase(Key k) noexcept
    {
        if (!this->contains(k))
            return false;
        this->end_life(k.index());
        slots_.word_of(k.index()) = 0;
        return true;
    }
    /// Removes the value of `k` and returns it. Returns nothing when `k` has no value.
    std::optional<V> remove(Key k)
    {
        std::optional<V> value = this->take(k);
        if (value)
            slots_.word_of(k.index()) = 0;
        return value;
    }
    /// Erases all values.
    void clear() noexcept
    {
        this->for_each([this](Key k, V&) { erase(k); });
    }

    /// Returns the statistics of the map. O(1).
    [[nodiscard]] statistics stats() const noexcept
    {
        statistics s{.blocks_live = this->size(), .bytes_live = this->size() * sizeof(V)};
        s.bytes_idle = slots_.capacity() * sizeof(V) - s.bytes_live;
        slots_.add_to(s);
        return s;
    }

private:
    /// Allocates memory for slot `i`.
    template <bool Throws>
    bool provide(std::size_t i)
    {
        if constexpr (table::is_scattered)
            return slots_.template provide<Throws>(i, this->size() + 1);
        else
            return i < slots_.capacity() || slots_.template grow<Throws>();
    }

    template <bool Throws, class... Args>
    V* place(Key k, Args&&... args)
    {
        std::size_t const i = k.index();
        if (i == 0 || k.generation() == 0 || k.value() > Key::value_max)
            return nullptr;
        if (!provide<Throws>(i))
            return nullptr;
        this->end_ = std::max(this->end_, i + 1);
        if (Key const there = this->key_at(i); there) {
            if (there > k)
                return nullptr;
            erase(there);
        }
        V* const at =
            this->make_value(i, [&](V* to) { std::construct_at(to, std::forward<Args>(args)...); });
        this->begin_life(i, k.value());
        return at;
    }
};

/// A `secondary_map` for many keys and few values. It is a hash table, which allocates memory only
/// for values that are set. `Allocator` is an allocator as for `std::unordered_map`.
///
///     mallard::sparse_secondary_map<mallard::key32, std::string> nicknames;
///     nicknames.set(key, "duck");
template <class Key, class V, class Allocator = std::allocator<std::pair<const std::size_t, V>>>
class sparse_secondary_map {
    struct entry {
        Key key;
        V value;
    };
    using entry_allocator = typename std::allocator_traits<Allocator>::template rebind_alloc<
        std::pair<const std::size_t, entry>>;

public:
    using key_type = Key; ///< the key of the slot map
    using value_type = V;

    sparse_secondary_map() = default;
    /// Makes a map that allocates from `from`.
    explicit sparse_secondary_map(const Allocator& from) : entries_(entry_allocator(from)) {}

    /// Returns the value of a key, or null.
    [[nodiscard]] V* get(Key k) noexcept
    {
        auto const found = entries_.find(k.index());
        return found != entries_.end() && found->second.key == k
                   ? std::addressof(found->second.value)
                   : nullptr;
    }
    /// Returns the value of a key, or null. The map is constant.
    [[nodiscard]] const V* get(Key k) const noexcept
    {
        return const_cast<sparse_secondary_map&>(*this).get(k);
    }
    /// Returns whether there is a value for the key.
    [[nodiscard]] bool contains(Key k) const noexcept { return get(k) != nullptr; }

    /// Like `secondary_map::set`. If this function throws, the old value may be lost.
    V* set(Key k, V value) // NOLINT(performance-unnecessary-value-param): some V can be moved
    {
        if (!k)
            return nullptr;
        auto const found = entries_.find(k.index());
        if (found != entries_.end()) {
            if (found->second.key > k)
                return nullptr;
            entries_.erase(found);
        }
        auto const made = entries_.try_emplace(k.index(), k, std::move(value)).first;
        return std::addressof(made->second.value);
    }
    /// Erases the value of `k`. Returns false when `k` has no value.
    bool erase(Key k) noexcept { return contains(k) && entries_.erase(k.index()) != 0; }
    /// Removes the value of `k` and returns it. Returns nothing when `k` has no value.
    std::optional<V> remove(Key k)
    {
        V* const at = get(k);
        if (at == nullptr)
            return {};
        std::optional<V> value(std::in_place, std::move(*at));
        entries_.erase(k.index());
        return value;
    }
    /// Erases all values.
    void clear() noexcept { entries_.clear(); }

    /// Returns the number of values.
    [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }
    /// Returns whether there is no value.
    [[nodiscard]] bool empty() const noexcept { return entries_.empty(); }

    /// Calls `f(key, value)` for each value, in unspecified order. `f` must not set or erase
    /// values.
    template <class F>
    void for_each(F f)
    {
        for (auto& [index, e] : entries_)
            f(e.key, e.value);
    }
    /// Erases each value for which `keep(key, value)` returns false. Returns how many were erased.
    template <class F>
    std::size_t retain(F keep)
    {
        std::size_t const before = size();
        for (auto at = entries_.begin(); at != entries_.end();)
            at = keep(at->second.key, at->second.value) ? std::next(at) : entries_.erase(at);
        return before - size();
    }
    /// Erases each value for which `drop(key, value)` returns true. Returns how many were erased.
    template <class F>
    friend std::size_t erase_if(sparse_secondary_map& from, F drop)
    {
        return from.retain([&](Key k, V& value) { return !drop(k, value); });
    }

    /// Returns all bits set, because any slot may have a value in this map. Because of that,
    /// `slot_map::for_each` looks up each key.
    static constexpr slot_bits candidates(std::size_t) noexcept { return ~slot_bits{0}; }

private:
    std::unordered_map<std::size_t, entry, std::hash<std::size_t>, std::equal_to<>, entry_allocator>
        entries_;
};

} // namespace mallard
