// Random programs over a slot map, compared with a standard map.
#include "../support/choices.hpp"
#include "../support/element.hpp"
#include "../support/length.hpp"
#include "../support/sources.hpp"

#include <mallard/slot_map.hpp>

#include <gtest/gtest.h>

#include <unordered_map>
#include <vector>

namespace {

using namespace mallard::testing;
using namespace mallard;

/// Runs a random program, and checks after each step:
/// - Every key finds its element while the element is present, and nothing afterwards.
/// - A failure or an exception changes nothing.
/// - The totals add up.
/// - An iteration visits all elements in the order of slots.
template <class Map>
class program {
    using key_type = typename Map::key_type;

public:
    program(seeded& choose, Map& map, std::size_t most) : choose_(choose), map_(map), most_(most) {}

    void run(std::size_t steps)
    {
        while (steps-- > 0)
            step();
        walk();
    }

private:
    void step()
    {
        switch (choose_(16)) {
        default:
            return map_.size() < most_ ? insert() : erase();
        case 4:
        case 5:
        case 6:
        case 7:
        case 8:
            return erase();
        case 9:
            return remove();
        case 10:
            return detach();
        case 11:
        case 12:
            return reattach();
        case 13:
            return look();
        case 14:
            return choose_(50) == 0 ? walk() : look();
        case 15:
            return choose_(400) == 0 ? clear() : choose_(50) == 0 ? thin_out() : move();
        }
    }

    void insert()
    {
        std::uint64_t const number = next_++;
        bool const throws = choose_(8) == 0;
        std::size_t const before = map_.size();
        if (throws)
            element::throw_in = 1;
        key_type k;
        try {
            k = choose_(2) == 0 ? map_.try_emplace(number) : map_.emplace(number);
            require(!throws || !k, "an exception passes");
        } catch (int) {
        } catch (const std::bad_alloc&) {
        }
        element::throw_in = 0;
        require(map_.size() == before + bool(k), "a failed call changes nothing");
        if (!k)
            return;
        require(!live_.contains(k) && !given_.contains(k), "no key is given twice");
        live_.emplace(k, number);
        given_.emplace(k, keys_.size());
        keys_.push_back(k);
        auto const* const at = map_.get(k);
        require(map_.key_of(*at) == k, "an element knows its key");
    }

    key_type some_key()
    {
        if (keys_.empty() || choose_(20) == 0)
            return key_type(static_cast<typename key_type::raw_type>(choose_(~std::size_t{0})));
        // In half of the cases chooses one of the last hundred keys, otherwise a key of any age.
        std::size_t const of =
            choose_(2) == 0 ? keys_.size() : std::min<std::size_t>(100, keys_.size());
        return keys_[keys_.size() - 1 - choose_(of)];
    }

    void look()
    {
        key_type const k = some_key();
        auto const* const at = map_.get(k);
        auto const known = live_.find(k);
        require((at != nullptr) == (known != live_.end()), "a key names its element or nothing");
        require(at == nullptr || at->number() == known->second, "a key names its own element");
        require(map_.contains(k) == (at != nullptr), "contains agrees with get");
    }

    void erase()
    {
        key_type const k = some_key();
        bool const known = live_.erase(k) + detached_.erase(k) != 0;
        require(map_.erase(k) == known, "a present element is erased");
        require(!map_.erase(k), "and once");
    }
    void remove()
    {
        key_type const k = some_key();
        auto const out = map_.remove(k);
        require(bool(out) == live_.contains(k), "a present element is removed");
        require(!out || out->number() == live_[k], "and returned");
        live_.erase(k);
    }
    void detach()
    {
        if (detached_.size() > 20)
            return reattach();
        key_type const k = some_key();
        auto const out = map_.detach(k);
        require(bool(out) == live_.contains(k), "a present element is detached");
        if (out)
            detached_.emplace(k, out->number());
        live_.erase(k);
    }
    void reattach()
    {
        key_type const k =
            detached_.empty() || choose_(4) == 0 ? some_key() : detached_.begin()->first;
        bool const known = detached_.erase(k) != 0;
        element back(next_);
        require((map_.reattach(k, std::move(back)) != nullptr) == known,
                "a detached key is reserved");
        if (known)
            live_.emplace(k, next_++);
    }

    void walk()
    {
        std::size_t met = 0, last = 0;
        map_.for_each([&](key_type k, element& e) {
            require(k.index() > last, "an iteration is in the order of slots");
            require(live_.at(k) == e.number(), "an iteration visits present elements");
            last = k.index();
            met += 1;
        });
        require(met == live_.size() && met == map_.size(), "all of it");
        for (auto const entry : map_)
            met -= entry.value.number() == live_.at(entry.key);
        require(met == 0, "by iterators too");
        require(element::live == live_.size(), "elements are neither lost nor duplicated");
        require(map_.detached() == detached_.size(), "detached keys are counted");
    }

    void thin_out()
    {
        std::uint64_t const odd = choose_(2);
        std::size_t const before = map_.size();
        auto const drop = [&](key_type, element& e) { return e.number() % 2 == odd; };
        std::size_t const gone = erase_if(map_, drop);
        std::erase_if(live_, [&](auto& l) { return l.second % 2 == odd; });
        require(before - gone == live_.size() && map_.size() == live_.size(), "erase_if counts");
    }
    void clear()
    {
        map_.clear();
        live_.clear();
        detached_.clear();
        require(map_.empty(), "clear erases all");
    }
    void move()
    {
        if constexpr (std::movable<Map>) {
            Map other(std::move(map_));
            require(map_.empty() && map_.begin() == map_.end(), "a moved-from map is empty");
            map_ = std::move(other);
        }
    }

    seeded& choose_;
    Map& map_;
    std::size_t most_;
    std::uint64_t next_ = 0;
    std::vector<key_type> keys_; // all keys that the map has returned
    std::unordered_map<key_type, std::size_t> given_;
    std::unordered_map<key_type, std::uint64_t> live_, detached_;
};

template <class Make>
void run_programs(std::size_t most, std::size_t steps, Make make)
{
    auto const first = static_cast<std::size_t>(GTEST_FLAG_GET(random_seed));
    for (std::size_t seed = first; seed < first + 4; ++seed) {
        doing = "seed " + std::to_string(seed);
        seeded choose(seed);
        failing_source heap;
        {
            auto map = make(heap);
            program(choose, *map, most).run(repeated(steps, 2000));
        }
        require(element::live == 0, "the destructor of a map destroys all elements");
    }
    doing.clear();
}

template <class Map>
auto of_nothing()
{
    return [](failing_source&) { return std::make_unique<Map>(); };
}

TEST(random_slot_map, in_a_reserved_range_agrees_with_a_standard_map)
{
    run_programs(3000, 20'000, of_nothing<slot_map<element>>());
    run_programs(20, 20'000, of_nothing<slot_map<element>>());
}

TEST(random_slot_map, with_few_generations_and_slots_agrees_with_a_standard_map)
{
    constexpr slot_map_options checked{.checks = check::on};
    run_programs(200, 3000, of_nothing<slot_map<element, key<8, 4>, reserved<>, checked>>());
    run_programs(5, 3000, of_nothing<slot_map<element, key<6, 3>, reserved<>, checked>>());
}

TEST(random_slot_map, with_fixed_storage_agrees_with_a_standard_map)
{
    run_programs(100, 20'000, of_nothing<slot_map<element, key64, fixed<80>>>());
}

TEST(random_slot_map, over_a_failing_source_agrees_with_a_standard_map)
{
    run_programs(5000, 20'000, [](failing_source& heap) {
        using map = slot_map<element, key<13, 19>, ref<failing_source>>;
        heap.fail_every(3);
        return std::make_unique<map>(ref(heap));
    });
}

} // namespace
