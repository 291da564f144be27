// Measures elements that are found by keys, in one thread: lookups, inserts and erases, visits, and
// the slowest insert while a map grows.
#include <bench/measure.hpp>
#include <bench/typed/contenders.hpp>

#include <mallard/slot_map.hpp>

#include <memory>
#include <unordered_map>

namespace mallard::bench {
namespace {

using value = std::uint64_t;

/// A lower bound for the cost of a lookup. No key is ever stale here, but each lookup makes the one
/// comparison that detecting a stale key needs.
class vector_and_compare {
public:
    static std::string name() { return "limit/vector+compare"; }

    struct key {
        std::uint32_t index = 0;
        std::uint32_t generation = 0;
    };

    key insert(value v)
    {
        slots_.push_back({1, v});
        return {static_cast<std::uint32_t>(slots_.size() - 1), 1};
    }
    value* get(key k) noexcept
    {
        slot& s = slots_[k.index];
        return s.generation == k.generation ? &s.v : nullptr;
    }

private:
    struct slot {
        std::uint32_t generation;
        value v;
    };
    std::vector<slot> slots_;
};

/// A slot map of the usual kind, after the idea of Rust's slotmap. Its slots are in one array,
/// which moves when it grows.
class vector_slot_map {
public:
    static std::string name() { return "vector-slot-map"; }

    using key = vector_and_compare::key;

    key insert(value v)
    {
        if (free_ == none) {
            slots_.push_back({1, v});
            return {static_cast<std::uint32_t>(slots_.size() - 1), 1};
        }
        std::uint32_t const i = free_;
        slot& s = slots_[i];
        free_ = static_cast<std::uint32_t>(s.v);
        s = {s.generation + 1, v};
        return {i, s.generation};
    }
    value* get(key k) noexcept
    {
        if (k.index >= slots_.size() || slots_[k.index].generation != k.generation)
            return nullptr;
        return &slots_[k.index].v;
    }
    void erase(key k) noexcept
    {
        if (k.index < slots_.size() && slots_[k.index].generation == k.generation) {
            slots_[k.index] = {k.generation + 1, free_};
            free_ = k.index;
        }
    }
    template <class F>
    void for_each(F f)
    {
        for (slot& s : slots_)
            if (s.generation % 2 == 1)
                f(s.v);
    }

private:
    struct slot {
        std::uint32_t generation; // odd if the slot is in use
        value v;                  // the value, or the index of the next free slot
    };
    static constexpr std::uint32_t none = ~std::uint32_t{0};
    std::vector<slot> slots_;
    std::uint32_t free_ = none;
};

class hash_map {
public:
    static std::string name() { return "std::unordered_map"; }

    using key = std::uint64_t;

    key insert(value v)
    {
        all_.emplace(++last_, v);
        return last_;
    }
    value* get(key k) noexcept
    {
        auto const found = all_.find(k);
        return found == all_.end() ? nullptr : &found->second;
    }
    void erase(key k) { all_.erase(k); }
    template <class F>
    void for_each(F f)
    {
        for (auto& [k, v] : all_)
            f(v);
    }

private:
    std::unordered_map<key, value> all_;
    key last_ = 0;
};

/// A plf::colony, for the case that visits elements. Other cases do not use this class, because its
/// iterators can dangle, so they are not keys.
class colony {
public:
    static std::string name() { return "plf-colony-7.10"; }

    using key = plf::colony<value>::iterator;

    key insert(value v) { return all_.insert(v); }
    void erase(key k) { all_.erase(k); }
    template <class F>
    void for_each(F f)
    {
        for (value& v : all_)
            f(v);
    }

private:
    plf::colony<value> all_;
};

template <class Key, class Storage>
class of_mallard {
    using map = slot_map<value, Key, Storage>;

public:
    static std::string name()
    {
        return std::string("mallard/slot_map/") + (sizeof(Key) == 4 ? "key32" : "key64") +
               (std::same_as<Storage, default_heap> ? "/heap" : "");
    }

    using key = Key;

    key insert(value v) { return map_.insert(v); }
    value* get(key k) noexcept { return map_.get(k); }
    void erase(key k) noexcept { map_.erase(k); }
    template <class F>
    void for_each(F f)
    {
        map_.for_each([&f](key, value& v) { f(v); });
    }

private:
    map map_;
};

using ours = contender_list<of_mallard<key32, reserved<>>, of_mallard<key64, reserved<>>,
                            of_mallard<key64, default_heap>>;
using keyed = ours::with<vector_slot_map, hash_map>;
using looked_up = keyed::with<vector_and_compare>;
using visited = keyed::with<colony>;
using changed = keyed::with<colony>;

/// A map with `count` elements, and their keys in shuffled order.
template <class C>
struct populated {
    explicit populated(std::size_t count) : keys(count), order(indices(count, order::shuffled))
    {
        for (std::size_t i = 0; i < count; ++i)
            keys[order[i]] = map.insert(i);
    }

    C map;
    table<typename C::key> keys;
    table<std::uint32_t> order;
};

template <class C>
[[gnu::noinline]] value sum_of(C& map, table<typename C::key> const& keys)
{
    value sum = 0;
    for (auto const& k : keys)
        if (value const* const v = map.get(k))
            sum += *v;
    return sum;
}

experiment get(effort how, std::size_t count)
{
    return {.asks = "Of " + std::to_string(count) +
                    " elements of 8 bytes, each is looked up by its key, in random order, and "
                    "read. A lookup",
            .figures = ns_and_cycles("slot_map/get/" + std::to_string(count)),
            .entrants = entrants_of(looked_up{}, {}, [how, count]<class C>() -> round_function {
                auto const p = std::make_shared<populated<C>>(how.count(count));
                return [p, timed = batch(how)](std::span<double> out) mutable {
                    put(out, timed.ns_of_one([&](std::size_t n) {
                        for (std::size_t i = 0; i < n; ++i)
                            keep(sum_of(p->map, p->keys));
                    }) / static_cast<double>(p->keys.size()));
                };
            })};
}

/// Replaces all elements. The function is not inlined, so that the compiler reads the fields of the
/// map from memory, as in a program.
template <class C>
[[gnu::noinline]] void replace_all(C& map, table<typename C::key>& keys)
{
    for (auto& k : keys) {
        map.erase(k);
        k = map.insert(1);
    }
}
template <class C>
[[gnu::noinline]] void renew(populated<C>& p)
{
    for (auto const& k : p.keys)
        p.map.erase(k);
    for (auto& k : p.keys)
        k = p.map.insert(1);
}

template <class C>
round_function changes(effort how, std::size_t count, void (*body)(populated<C>&))
{
    auto const p = std::make_shared<populated<C>>(how.count(count));
    return [p, body, timed = batch(how)](std::span<double> out) mutable {
        put(out, timed.ns_of_one([&](std::size_t n) {
            for (std::size_t i = 0; i < n; ++i)
                body(*p);
        }) / static_cast<double>(p->keys.size()));
    };
}

experiment replace(effort how)
{
    return {.asks = "Of 1,000 elements, each is erased and another is inserted immediately. A pair",
            .figures = ns_and_cycles("slot_map/pair/1000"),
            .entrants = entrants_of(changed{}, {}, [how]<class C>() -> round_function {
                return changes<C>(how, 1000, [](populated<C>& p) { replace_all(p.map, p.keys); });
            })};
}

experiment renewed(effort how, std::size_t count)
{
    return {.asks = std::to_string(count) +
                    " elements are erased in random order, and as many inserted. A pair",
            .figures = ns_and_cycles("slot_map/renew/" + std::to_string(count)),
            .entrants = entrants_of(changed{}, {}, [how, count]<class C>() -> round_function {
                return changes<C>(how, count, [](populated<C>& p) { renew(p); });
            })};
}

template <class C>
[[gnu::noinline]] value sum_all(C& map)
{
    value sum = 0;
    map.for_each([&sum](value const& v) { sum += v; });
    return sum;
}

experiment visit(effort how, std::size_t percent)
{
    return {.asks = "Of 100,000 elements all but " + std::to_string(percent) +
                    " % were erased, at random: what does a visit of all cost a live one?",
            .figures = ns_and_cycles("slot_map/visit/" + std::to_string(percent) + "%"),
            .entrants = entrants_of(visited{}, {}, [how, percent]<class C>() -> round_function {
                auto const p = std::make_shared<populated<C>>(how.count(100'000));
                std::size_t const dead = p->keys.size() * (100 - percent) / 100;
                for (std::size_t i = 0; i < dead; ++i)
                    p->map.erase(p->keys[i]);
                return [p, timed = batch(how), live = static_cast<double>(p->keys.size() - dead)](
                           std::span<double> out) mutable {
                    put(out, timed.ns_of_one([&](std::size_t n) {
                        for (std::size_t i = 0; i < n; ++i)
                            keep(sum_all(p->map));
                    }) / live);
                };
            })};
}

/// Times every insert while a map grows from empty to a million elements.
template <class C>
round_function growths(effort how)
{
    auto const ns = std::make_shared<table<double>>(how.count(1'000'000));
    return [ns](std::span<double> out) {
        auto const map = std::make_unique<C>();
        double sum = 0;
        for (double& one : *ns) {
            std::uint64_t const from = ticks();
            keep(map->insert(1));
            one = (static_cast<double>(ticks() - from) - ticks_of_a_reading()) * ns_per_tick();
            sum += one;
        }
        std::sort(ns->begin(), ns->end());
        out[0] = sum / static_cast<double>(ns->size());
        out[1] = (*ns)[ns->size() - 1 - ns->size() / 1000];
        out[2] = (*ns)[ns->size() - 1];
    };
}

experiment growing(effort how)
{
    std::string const name = "slot_map/growth/1000000";
    return {.asks = "A new map gets 1,000,000 elements, each insert timed: the mean, what 999 of "
                    "1,000 stay below, and the slowest",
            .figures = {{name}, {name, "p999_ns"}, {name, "max_ns"}},
            .entrants = entrants_of(keyed{}, {}, [how]<class C>() { return growths<C>(how); }),
            .weight = 3};
}

} // namespace

std::vector<experiment> typed_slot_map(effort how)
{
    return {get(how, 1000),     get(how, 1'000'000),   replace(how),
            renewed(how, 1000), renewed(how, 100'000), visit(how, 100),
            visit(how, 50),     visit(how, 10),        growing(how)};
}

} // namespace mallard::bench
