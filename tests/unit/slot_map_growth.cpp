#include "../support/asan.hpp"
#include "../support/element.hpp"
#include "../support/sources.hpp"
#include "pages.hpp"

#include <mallard/secondary_map.hpp>
#include <mallard/shared_slot_map.hpp>
#include <mallard/slot_map.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

using namespace mallard::testing;
using namespace mallard;

TEST(slot_map_growth, allocates_no_memory_before_the_first_element)
{
    failing_source heap;
    slot_map<int, key32, ref<failing_source>> numbers{ref(heap)};
    EXPECT_FALSE(numbers.contains(key32(1)));
    numbers.clear();
    EXPECT_EQ(heap.calls(), 0U);
    slot_map<int> const reserved;
    EXPECT_EQ(reserved.stats().bytes_taken, 0U);
    EXPECT_EQ(reserved.capacity(), 0U);
}

TEST(slot_map_growth, changes_nothing_when_the_source_fails)
{
    for_each_refusal([](failing_source& heap) {
        slot_map<element, key32, ref<failing_source>> elements{ref(heap)};
        std::vector<key32> keys;
        std::size_t refused = 0;
        while (keys.size() < 20'000) { // more chunks than fit in the first directory
            std::size_t const before = elements.size();
            bool const throws = keys.size() % 2 == 0;
            key32 k;
            try {
                k = throws ? elements.emplace(keys.size()) : elements.try_emplace(keys.size());
            } catch (const std::bad_alloc&) {
            }
            refused += !k;
            require(elements.size() == before + bool(k), "a failure changes nothing");
            if (k)
                keys.push_back(k);
        }
        require(refused == heap.failures(), "each failure is reported");
        for (std::size_t i = 0; i < keys.size(); ++i)
            require(elements.get(keys[i])->number() == i, "each element is there");
        require(elements.stats().bytes_taken == heap.bytes(), "bytes are counted");
    });
    EXPECT_EQ(element::live, 0U);
}

TEST(slot_map_growth, propagates_the_exceptions_of_a_memory_resource)
{
    failing_resource upstream;
    upstream.source.fail_from(1);
    slot_map<int, key32, pmr_source> numbers{pmr_source(&upstream)};
    EXPECT_THROW(numbers.insert(1), refusal);
    EXPECT_FALSE(numbers.try_emplace(1));
    upstream.source.fail_never();
    EXPECT_TRUE(numbers.try_emplace(1));
}

TEST(slot_map_growth, accepts_chunks_larger_than_requested)
{
    generous_source heap;
    slot_map<std::string, key32, ref<generous_source>> words{ref(heap)};
    for (int i = 0; i < 3000; ++i)
        words.insert("word");
    EXPECT_EQ(words.stats().bytes_taken, heap.bytes());
}

template <class Map>
void fill_and_refuse()
{
    Map map;
    std::size_t count = 0;
    while (map.try_emplace(1))
        ++count;
    EXPECT_EQ(count, Map::key_type::index_mask); // no key names slot 0
    EXPECT_THROW(map.insert(1), std::bad_alloc);
    EXPECT_EQ(map.capacity(), count);
    std::size_t met = 0;
    map.for_each([&](auto, auto&) { ++met; });
    EXPECT_EQ(met, count);
    map.clear();
    EXPECT_TRUE(map.try_emplace(1));
}

TEST(slot_map_growth, uses_every_slot_that_a_key_can_name)
{
    fill_and_refuse<slot_map<int, key<1, 31>>>();
    fill_and_refuse<slot_map<char, key<3, 4>, default_heap>>();
    fill_and_refuse<slot_map<int, key<12, 20>>>();
    fill_and_refuse<slot_map<short, key<15, 4>, default_heap>>();
}

TEST(slot_map_growth, fails_when_every_slot_has_retired)
{
    slot_map<int, key<3, 2>> numbers;
    std::size_t elements = 0;
    while (auto const k = numbers.try_emplace(1)) {
        numbers.erase(k);
        elements += 1;
    }
    EXPECT_EQ(elements, 7U * 3U);
    EXPECT_EQ(numbers.retired(), 7U);
    EXPECT_EQ(numbers.capacity(), 0U);
    for (std::uint32_t value = 0; value < 32; ++value)
        EXPECT_FALSE((numbers.contains(key<3, 2>(value))));
}

TEST(slot_map_growth, allocates_the_memory_of_later_elements_in_reserve)
{
    failing_source heap;
    slot_map<int, key32, ref<failing_source>> numbers{ref(heap)};
    numbers.reserve(10'000);
    EXPECT_GE(numbers.capacity(), 10'000U);
    heap.fail_from(1);
    for (int i = 0; i < 10'000; ++i)
        numbers.insert(i);
    EXPECT_FALSE(numbers.try_reserve(1'000'000));
    slot_map<int> reserved;
    reserved.reserve(100'000);
    EXPECT_GE(reserved.capacity(), 100'000U);
    EXPECT_FALSE((slot_map<int, key<4, 4>>().try_reserve(16)));
}

TEST(slot_map_growth, touches_pages_only_when_they_are_used)
{
    slot_map<std::array<char, 4096>> pages;
    pages.reserve(10'000);
    key32 const first = pages.emplace();
    auto* const begin = reinterpret_cast<std::byte*>(pages.get(first));
    EXPECT_LE(resident_pages(begin, std::size_t{4096} * 9'000), 1U);
}

constexpr std::size_t word_and_value = 4 + 4096;

/// Returns whether the map keeps its elements after a failure whose message contains `words`.
template <class Map>
bool survives_refusal(int resource, rlim_t bytes, std::string_view words)
{
    Map map;
    std::vector<key32> keys;
    rlimit before{};
    ::getrlimit(static_cast<decltype(RLIMIT_AS)>(resource), &before);
    keys.reserve(100'000);
    limit(resource, bytes);
    while (keys.size() < 100'000) {
        key32 const k = map.try_emplace();
        if (!k)
            break;
        keys.push_back(k);
    }
    bool good = keys.size() < 100'000 && map.storage().last_error() == ENOMEM &&
                says(map.storage().last_failure(), words);
    limit(resource, RLIM_INFINITY);
    good = good && bool(map.try_emplace());
    for (key32 const k : keys)
        good = good && map.contains(k);
    return good && map.size() == keys.size() + 1;
}

TEST(slot_map_growth, survives_when_the_system_commits_no_more_memory)
{
    if (!may_refuse_memory())
        GTEST_SKIP() << refuses_sanitizers;
    using map = slot_map<std::array<char, 4096>>;
    EXPECT_EXIT(report(survives_refusal<map>(RLIMIT_DATA, page_bytes, "ulimit -d")),
                ::testing::ExitedWithCode(0), "");
    EXPECT_EXIT(report(survives_refusal<map>(RLIMIT_DATA, data_bytes() + 200 * mib, "ulimit -d")),
                ::testing::ExitedWithCode(0), "");
}

/// Returns whether a map reserves less address space when the address space is limited.
template <class Map>
bool makes_do_with_less()
{
    limit(RLIMIT_AS, (mapped_pages() * page_bytes) + 128 * mib);
    Map map; // the values of all 2^20 keys would need 4 GiB of addresses
    std::size_t count = 0;
    while (count < 100'000 && map.try_emplace())
        ++count;
    bool const fits = count > 1000 && count * word_and_value < 128 * mib;
    slot_map<int> other; // address space is left for other maps
    return fits && bool(other.try_emplace(1));
}

TEST(slot_map_growth, works_with_a_limited_address_space)
{
    if (!may_refuse_memory())
        GTEST_SKIP() << refuses_sanitizers;
    using page = std::array<char, 4096>;
    EXPECT_EXIT(report(makes_do_with_less<slot_map<page>>()), ::testing::ExitedWithCode(0), "");
    EXPECT_EXIT(report(makes_do_with_less<shared_slot_map<page, key32>>()),
                ::testing::ExitedWithCode(0), "");
}

/// Returns whether a rejected key leaves a secondary map unchanged, and whether the key works after
/// the limit is removed.
bool refuses_a_made_up_key()
{
    limit(RLIMIT_AS, (mapped_pages() * page_bytes) + 128 * mib);
    secondary_map<key64, int> numbers;
    key64 const made_up(~std::uint64_t{0});
    key64 const modest((std::uint64_t{1} << 32) + 1);
    bool good = numbers.try_emplace(made_up, 1) == nullptr && numbers.stats().bytes_taken == 0;
    good = good && numbers.set(modest, 1) != nullptr;
    std::size_t const bytes = numbers.stats().bytes_taken;
    good = good && numbers.try_emplace(made_up, 1) == nullptr;
    good = good && numbers.stats().bytes_taken == bytes && numbers.size() == 1;
    limit(RLIMIT_AS, RLIM_INFINITY);
    secondary_map<key64, int> others;
    return good && others.set(made_up, 1) != nullptr;
}

TEST(slot_map_growth, changes_nothing_in_a_secondary_map_when_the_system_has_no_memory)
{
    if (!may_refuse_memory())
        GTEST_SKIP() << refuses_sanitizers;
    EXPECT_EXIT(report(refuses_a_made_up_key()), ::testing::ExitedWithCode(0), "");
}

TEST(slot_map_growth, changes_nothing_in_a_secondary_map_when_the_source_fails)
{
    for_each_refusal([](failing_source& heap) {
        secondary_map<key64, element, ref<failing_source>> second{ref(heap)};
        std::uint64_t far = 1;
        for (std::uint32_t i = 1; i < 20'000; i += 997, far = far * 5 % 0xffff'fffb) {
            key64 const k((std::uint64_t{1} << 32) + (i % 2 == 0 ? i : far));
            element* made = nullptr;
            while (made == nullptr) {
                statistics const before = second.stats();
                try {
                    made = i % 3 == 0 ? second.try_emplace(k, i) : second.emplace(k, i);
                } catch (const std::bad_alloc&) {
                }
                require(made != nullptr || second.stats().bytes_taken == before.bytes_taken,
                        "a failure changes nothing");
                require(second.stats().bytes_taken == heap.bytes(), "bytes are counted");
            }
            require(second.get(k)->number() == i, "it is there");
        }
    });
    EXPECT_EQ(element::live, 0U);
}

} // namespace
