// Measures elements that several threads find by keys.
#include <bench/threads/crew.hpp>
#include <bench/typed/contenders.hpp>

#include <mallard/shared_slot_map.hpp>
#include <mallard/slot_map.hpp>

#include <memory>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <unordered_map>

namespace mallard::bench {
namespace {

using value = std::uint64_t;

/// A map protected by a lock that several readers may hold at the same time. A program without a
/// shared map would use this.
template <class Map>
class behind_a_lock {
public:
    static std::string name() { return Map::name() + "+shared_mutex"; }
    using key = typename Map::key;

    key insert(value v)
    {
        std::unique_lock const alone(lock_);
        return map_.insert(v);
    }
    value read(key k)
    {
        std::shared_lock const with_others(lock_);
        value const* const v = map_.get(k);
        return v == nullptr ? 0 : *v;
    }
    void remove(key k)
    {
        std::unique_lock const alone(lock_);
        map_.erase(k);
    }

private:
    std::shared_mutex lock_;
    Map map_;
};

struct hash_map {
    static std::string name() { return "std::unordered_map"; }
    using key = std::uint64_t;
    key insert(value v)
    {
        all.emplace(++last, v);
        return last;
    }
    value* get(key k)
    {
        auto const found = all.find(k);
        return found == all.end() ? nullptr : &found->second;
    }
    void erase(key k) { all.erase(k); }
    std::unordered_map<key, value> all;
    key last = 0;
};
struct plain_slot_map {
    static std::string name() { return "mallard/slot_map/key64"; }
    using key = key64;
    key insert(value v) { return all.insert(v); }
    value* get(key k) { return all.get(k); }
    void erase(key k) { all.erase(k); }
    slot_map<value, key64> all;
};

enum class way { read, guard };

template <way How>
class shared_map {
public:
    static std::string name()
    {
        return How == way::read ? "mallard/shared_slot_map/read" : "mallard/shared_slot_map/get";
    }
    using key = key64;

    key insert(value v) { return all_.insert(v); }
    value read(key k)
    {
        if constexpr (How == way::read) {
            return all_.read(k).value_or(0);
        } else {
            auto const held = all_.get(k);
            return held ? *held : 0;
        }
    }
    void remove(key k) { all_.remove(k); }

private:
    shared_slot_map<value> all_;
};

using maps = contender_list<behind_a_lock<hash_map>, behind_a_lock<plain_slot_map>,
                            shared_map<way::guard>, shared_map<way::read>>;

/// A map with a thousand elements that all threads read. Each thread has 64 further elements, and
/// replaces them.
template <class C>
class workload {
public:
    explicit workload(std::size_t threads) : common_(1000), team_(threads)
    {
        for (auto& k : common_)
            k = map_.insert(1);
        for (std::size_t i = 0; i < threads; ++i) {
            auto& mine = own_.emplace_back(std::make_unique<state>());
            for (auto& k : mine->keys)
                k = map_.insert(i);
        }
    }

    /// Runs steps for `ns`. In each 64 steps, `changes` steps replace an element, and the others
    /// read one.
    void round(double ns, std::size_t changes, std::span<double> out)
    {
        std::vector<std::size_t> done(team_.size());
        work_time const taken = team_.run_for(ns, [&](std::size_t i) {
            state& mine = *own_[i];
            value sum = 0;
            done[i] = repeat(team_, [&] {
                std::uint32_t const at = mine.random.below(1000);
                if (mine.step++ % 64 < changes) {
                    auto& k = mine.keys[at % 64];
                    map_.remove(k);
                    k = map_.insert(i);
                } else {
                    sum += map_.read(common_[at]);
                }
            });
            keep(sum);
        });
        auto const steps = static_cast<double>(std::accumulate(done.begin(), done.end(), 0ul));
        out[0] = taken.wall_ns / steps;
        out[1] = taken.cpu_ns / steps;
    }

private:
    struct alignas(128) state {
        typename C::key keys[64];
        random_numbers random;
        std::size_t step = 0;
    };

    C map_;
    std::vector<typename C::key> common_;
    std::vector<std::unique_ptr<state>> own_;
    crew team_;
};

experiment mixed(effort how, std::size_t threads, std::size_t changes, const char* name,
                 const char* words)
{
    std::string const case_name =
        std::string("shared_slot_map/") + name + "/T" + std::to_string(threads);
    int const count = static_cast<int>(threads);
    return {
        .asks = std::to_string(threads) + " threads " + words +
                ". ns a step: wall time / steps of all threads, and CPU time",
        .figures = {{case_name, "ns_per_op", "", count}, {case_name, "cpu_ns_per_op", "", count}},
        .entrants = entrants_of(
            maps{}, {.threads = threads}, [how, threads, changes]<class C>() -> round_function {
                return [w = std::make_shared<workload<C>>(threads), ns = window_ns(how),
                        changes](std::span<double> out) { w->round(ns, changes, out); };
            })};
}

} // namespace

std::vector<experiment> typed_shared_slot_map(effort how)
{
    std::vector<experiment> all;
    for (std::size_t const threads : thread_counts(1)) {
        all.push_back(mixed(how, threads, 0, "read", "read elements of 1,000, at random"));
        all.push_back(mixed(how, threads, 64, "replace",
                            "remove an element of their own and insert another"));
        all.push_back(mixed(how, threads, 6, "mixed", "read nine times of ten, else replace"));
    }
    return all;
}

} // namespace mallard::bench
