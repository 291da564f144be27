// follows the advice: convert AS4 in find_route
//
// The program routes.cpp with an arena, which is reset before each search. Nodes are never
// destroyed, so they need no reference counts.
#include "../known.hpp"

#include <mallard/arena.hpp>
#include <mallard/winked.hpp>

#include <queue>
#include <unordered_map>

using memory_type = mallard::arena<>;
template <class T>
using from_memory = mallard::allocator<T, memory_type>;

constexpr int width = 220, height = 220;

struct point {
    int x, y;
    bool operator==(const point&) const = default;
};

struct hash_of_point {
    std::size_t operator()(point at) const noexcept
    {
        return static_cast<std::size_t>(at.y * width + at.x);
    }
};

/// A crossing that a search has reached, and from where.
struct node {
    point at;
    int walked;
    const node* from;
};

struct open_node {
    int estimate;
    const node* what;
    bool operator<(const open_node& other) const
    {
        return estimate != other.estimate ? estimate > other.estimate
                                          : what->walked < other.what->walked;
    }
};

using best_type = std::unordered_map<point, int, hash_of_point, std::equal_to<>,
                                     from_memory<std::pair<const point, int>>>;
using queue_type = std::priority_queue<open_node, std::vector<open_node, from_memory<open_node>>>;

template <>
inline constexpr bool mallard::enable_wink_out<queue_type> = true;

class city {
public:
    explicit city(known::random_numbers& random) : free_(width * height)
    {
        for (auto&& crossing : free_)
            crossing = random.below(100) >= 28;
    }

    bool is_free(point at) const
    {
        return at.x >= 0 && at.y >= 0 && at.x < width && at.y < height &&
               free_[static_cast<std::size_t>(at.y * width + at.x)];
    }

private:
    std::vector<bool> free_;
};

int distance(point a, point b)
{
    return std::abs(a.x - b.x) + std::abs(a.y - b.y);
}

/// Returns the points of the shortest route, or nothing if there is none.
std::vector<point> find_route(const city& where, point begin, point end, memory_type& memory)
{
    memory.reset(); // frees the nodes of the previous search
    mallard::winked<best_type> const all_best(memory);
    mallard::winked<queue_type> const all_open(memory);
    best_type& best = *all_best;
    queue_type& open = *all_open;
    open.push({distance(begin, end), &memory.make<node>(begin, 0, nullptr)});
    best[begin] = 0;
    while (!open.empty()) {
        const node* const reached = open.top().what;
        open.pop();
        if (reached->at == end) {
            std::vector<point> route;
            for (auto const* step = reached; step != nullptr; step = step->from)
                route.push_back(step->at);
            return route;
        }
        if (reached->walked > best[reached->at])
            continue; // there was a shorter way to it
        for (auto [x, y] : {point{1, 0}, point{-1, 0}, point{0, 1}, point{0, -1}}) {
            point const next{reached->at.x + x, reached->at.y + y};
            int const walked = reached->walked + 1;
            auto const known = best.find(next);
            if (!where.is_free(next) || (known != best.end() && known->second <= walked))
                continue;
            best[next] = walked;
            open.push({walked + distance(next, end), &memory.make<node>(next, walked, reached)});
        }
    }
    return {};
}

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 1100);
    known::random_numbers random(37);
    city const where(random);
    memory_type memory;
    std::uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i) {
        point ends[2];
        for (auto& one : ends)
            do
                one = {static_cast<int>(random.below(width)),
                       static_cast<int>(random.below(height))};
            while (!where.is_free(one));
        for (auto [x, y] : find_route(where, ends[0], ends[1], memory))
            sum = sum * 31 + static_cast<std::uint64_t>(x * 1'000 + y);
    }
    known::print(sum);
}
