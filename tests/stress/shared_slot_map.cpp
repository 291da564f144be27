// A key finds either its own element or nothing, while other threads insert and remove elements.
#include "../support/choices.hpp"
#include "../support/threads.hpp"

#include <mallard/shared_slot_map.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <memory>

namespace {

using namespace mallard::testing;
using namespace mallard;

constexpr std::size_t threads = 4;
constexpr std::size_t places = 64;

/// An element in which every word depends on its number. So a torn copy, which would mix the words
/// of two elements, is detected.
struct stamp {
    std::uint64_t number, again, inverse;
    explicit stamp(std::uint64_t n) : number(n), again(n), inverse(~n) {}
    bool is_whole() const { return number == again && number == ~inverse; }
};

/// A stamp that also counts the live elements.
struct counted_stamp : stamp {
    static inline std::atomic<std::int64_t> live = 0;
    explicit counted_stamp(std::uint64_t n) : stamp(n) { live += 1; }
    counted_stamp(counted_stamp&& other) noexcept : stamp(other) { live += 1; }
    ~counted_stamp()
    {
        require(is_whole(), "an element is destroyed once");
        number = again = inverse = 0;
        live -= 1;
    }
};

/// The keys that threads exchange. Some of the keys are stale.
template <class Map>
struct board {
    using key_type = typename Map::key_type;
    struct note {
        std::atomic<typename key_type::raw_type> key{0};
    };
    Map map;
    std::array<note, places> notes;
    std::atomic<std::uint64_t> inserted{0}, removed{0};
};

template <class Map>
void mingle(board<Map>& b, std::size_t number, std::size_t steps)
{
    using key_type = typename Map::key_type;
    using raw = typename key_type::raw_type;
    seeded choose(number + 1);
    for (std::size_t i = 0; i < steps; ++i) {
        auto& note = b.notes[choose(places)];
        key_type const seen(note.key.load(std::memory_order_acquire));
        switch (choose(8)) {
        case 0:
        case 1: {
            key_type const fresh = b.map.emplace(i << 8 | number);
            b.inserted += 1;
            key_type const before(note.key.exchange(fresh.value()));
            b.removed += b.map.remove(before);
            break;
        }
        case 2:
            b.removed += b.map.remove(seen);
            break;
        case 3:
            if (auto first = b.map.get(seen)) { // the element is removed while a guard holds it
                std::uint64_t const was = first->number;
                b.removed += b.map.remove(seen);
                require(!b.map.get(seen), "a removed key is stale at once");
                require(first->is_whole() && first->number == was, "a guard keeps its element");
            }
            break;
        case 4:
            b.map.with(key_type(static_cast<raw>(seen.value() - (raw{1} << key_type::index_bits))),
                       [](auto& s) { require(s.is_whole(), "an element is whole"); });
            break;
        default:
            if constexpr (requires { b.map.read(seen); }) {
                auto const copy = b.map.read(seen);
                require(!copy || copy->is_whole(), "a copy is of one element");
            }
            b.map.with(seen, [](auto& s) { require(s.is_whole(), "an element is whole"); });
        }
    }
}

template <class Map>
void stress(std::size_t steps)
{
    auto const b = std::make_unique<board<Map>>();
    in_threads(threads, [&](std::size_t number) { mingle(*b, number, rounds(steps)); });
    EXPECT_EQ(b->map.size(), b->inserted - b->removed);
    std::size_t met = 0;
    b->map.for_each([&](auto k, auto& s) {
        met += s.is_whole();
        EXPECT_TRUE(b->map.contains(k));
    });
    EXPECT_EQ(met, b->map.size());
    b->map.clear();
    EXPECT_EQ(b->map.size(), 0U);
}

TEST(shared_slot_map, returns_a_complete_copy_of_an_element_or_nothing)
{
    stress<shared_slot_map<stamp>>(50'000);
}

TEST(shared_slot_map, returns_an_element_that_is_still_alive_or_nothing)
{
    stress<shared_slot_map<counted_stamp, key32>>(50'000);
    EXPECT_EQ(counted_stamp::live, 0);
}

TEST(shared_slot_map, returns_the_right_element_or_nothing_when_slots_retire)
{
    stress<shared_slot_map<counted_stamp, key<20, 3>>>(50'000);
    EXPECT_EQ(counted_stamp::live, 0);
}

TEST(shared_slot_map, lets_exactly_one_thread_remove_an_element)
{
    shared_slot_map<counted_stamp> map;
    std::atomic<std::uint64_t> removed = 0;
    std::vector<key64> keys;
    for (std::uint64_t i = 0; i < rounds(20'000); ++i)
        keys.push_back(map.emplace(i));
    in_threads(threads, [&](std::size_t) {
        for (key64 const k : keys) {
            auto const held = map.get(k);
            removed += map.remove(k);
        }
    });
    EXPECT_EQ(removed, keys.size());
    EXPECT_EQ(counted_stamp::live, 0);
}

} // namespace
