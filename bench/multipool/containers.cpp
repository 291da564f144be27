// Builds and destroys standard containers with an allocator that keeps its memory. The containers
// have the allocator as a type parameter if the contender supports that. They use std::pmr if the
// name of the contender contains pmr.
#include <bench/barrier.hpp>
#include <bench/measure.hpp>
#include <bench/multipool/contenders.hpp>

#include <list>
#include <map>
#include <memory>
#include <unordered_map>

namespace mallard::bench {
namespace {

constexpr std::size_t element_count = 4096;

struct keys {
    explicit keys(effort how) : shuffled(indices(how.count(element_count), order::shuffled)) {}

    table<std::uint32_t> shuffled;
};

struct list_work {
    template <class C>
    static void once(C& memory, keys const& k)
    {
        auto const allocator = allocator_for<std::uint32_t>(memory);
        std::list<std::uint32_t, std::remove_const_t<decltype(allocator)>> numbers(allocator);
        for (std::uint32_t const key : k.shuffled)
            numbers.push_back(key);
        // Erases every second element, and inserts an equal number of new elements.
        for (auto at = numbers.begin(); at != numbers.end(); ++at)
            at = numbers.erase(at);
        for (std::size_t i = 0; i < k.shuffled.size() / 2; ++i)
            numbers.push_front(k.shuffled[i]);
        keep(&numbers);
    }
};

using pair_type = std::pair<const std::uint32_t, std::uint64_t>;

template <class Map>
void churn(Map& map, keys const& k)
{
    for (std::uint32_t const key : k.shuffled)
        map.emplace(key, key);
    for (std::size_t i = 0; i < k.shuffled.size() / 2; ++i)
        map.erase(k.shuffled[i]);
    for (std::size_t i = 0; i < k.shuffled.size() / 2; ++i)
        map.emplace(k.shuffled[i], i);
    keep(&map);
}

struct map_work {
    template <class C>
    static void once(C& memory, keys const& k)
    {
        auto const allocator = allocator_for<pair_type>(memory);
        std::map<std::uint32_t, std::uint64_t, std::less<>,
                 std::remove_const_t<decltype(allocator)>>
            map(allocator);
        churn(map, k);
    }
};

struct unordered_map_work {
    template <class C>
    static void once(C& memory, keys const& k)
    {
        auto const allocator = allocator_for<pair_type>(memory);
        std::unordered_map<std::uint32_t, std::uint64_t, std::hash<std::uint32_t>, std::equal_to<>,
                           std::remove_const_t<decltype(allocator)>>
            map(allocator);
        churn(map, k);
    }
};

template <class C>
struct container_state {
    explicit container_state(effort how) : numbers(how), timed(how) {}

    C memory;
    keys numbers;
    batch timed;
};

template <class Work>
experiment container(effort how, const char* name)
{
    return {.asks = std::string("A std::") + name +
                    " of 4,096 elements is built, half of them are erased and inserted anew, and "
                    "it is destroyed; the memory is kept for the next. ns for each of the 6,144 "
                    "insertions",
            .figures = {{std::string("containers/") + name}},
            .entrants = entrants_of(multipool_contenders{}, {}, [how]<class C>() -> round_function {
                return [s = std::make_shared<container_state<C>>(how)](std::span<double> out) {
                    double const ns = s->timed.ns_of_one([&](std::size_t times) {
                        for (std::size_t t = 0; t < times; ++t)
                            Work::once(s->memory, s->numbers);
                    });
                    out[0] = ns / (static_cast<double>(s->numbers.shuffled.size()) * 1.5);
                };
            })};
}

} // namespace

std::vector<experiment> multipool_containers(effort how)
{
    return {container<list_work>(how, "list"), container<map_work>(how, "map"),
            container<unordered_map_work>(how, "unordered_map")};
}

} // namespace mallard::bench
