// The same work under each of the fourteen strategies.
#include <mallard/strategy.hpp>

#include <cassert>
#include <set>
#include <string>

template <class Strategy>
std::size_t count_different(std::initializer_list<std::string_view> words)
{
    using string = std::basic_string<char, std::char_traits<char>,
                                     typename Strategy::template allocator_type<char>>;
    using string_set =
        std::set<string, std::less<>, typename Strategy::template allocator_type<string>>;

    typename Strategy::resource_type memory;
    return Strategy::template run<string_set>(memory, [&](string_set& seen) {
        for (std::string_view const word : words)
            seen.emplace(word);
        return seen.size();
    });
}

int main()
{
    int strategies = 0;
    mallard::for_each_strategy([&](auto s) {
        assert(count_different<decltype(s)>({"to", "be", "or", "not", "to", "be"}) == 4);
        ++strategies;
    });
    assert(strategies == 14);
    static_assert(mallard::strategy<4>::words == "arena, type parameter, wink-out");
}
