// The C++ example of README.md, with the lines of code in its table.
#include <mallard/mallard.hpp>

#include <list>
#include <string>
#include <vector>

int main()
{
    mallard::pmr::arena request; // a std::pmr::memory_resource
    std::pmr::vector<std::pmr::string> lines(&request);
    lines.emplace_back("the vector and this text are freed together, with the arena");

    mallard::pmr::multipool nodes; // blocks of any size, freed one by one
    std::pmr::list<int> queue({1, 2, 3}, &nodes);
    queue.pop_front();

    mallard::slot_map<std::string> players;
    mallard::key32 const key = players.insert("duck");
    players.erase(key);
    return players.get(key) == nullptr ? 0 : 1; // a stale key finds nothing
}
