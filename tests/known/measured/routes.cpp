// expected advice: convert AS4 in find_route
//
// Finds shortest routes through a city on a grid with walls. Each search makes a node for each
// crossing that it reaches, and drops all of them when the route is known.
#include "../known.hpp"

#include <memory>
#include <queue>
#include <unordered_map>

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
    std::shared_ptr<node> from;
};

struct open_node {
    int estimate;
    std::shared_ptr<node> what;
    bool operator<(const open_node& other) const
    {
        return estimate != other.estimate ? estimate > other.estimate
                                          : what->walked < other.what->walked;
    }
};

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
std::vector<point> find_route(const city& where, point begin, point end)
{
    std::unordered_map<point, int, hash_of_point> best;
    std::priority_queue<open_node> open;
    open.push({distance(begin, end), std::make_shared<node>(begin, 0, nullptr)});
    best[begin] = 0;
    while (!open.empty()) {
        auto const reached = open.top().what;
        open.pop();
        if (reached->at == end) {
            std::vector<point> route;
            for (auto const* step = reached.get(); step != nullptr; step = step->from.get())
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
            open.push(
                {walked + distance(next, end), std::make_shared<node>(next, walked, reached)});
        }
    }
    return {};
}

int main(int count, char** arguments)
{
    int const rounds = known::rounds(count, arguments, 1100);
    known::random_numbers random(37);
    city const where(random);
    std::uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i) {
        point ends[2];
        for (auto& one : ends)
            do
                one = {static_cast<int>(random.below(width)),
                       static_cast<int>(random.below(height))};
            while (!where.is_free(one));
        for (auto [x, y] : find_route(where, ends[0], ends[1]))
            sum = sum * 31 + static_cast<std::uint64_t>(x * 1'000 + y);
    }
    known::print(sum);
}
