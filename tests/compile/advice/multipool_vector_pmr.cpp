// In render_document (render.cpp:40)
#include <memory_resource>
#include <string>
#include <string_view>
#include <vector>

using state_type = std::pmr::vector<std::pmr::string>;

// One for the program: the next call uses the blocks again that a call has freed. One that
// each call makes anew saves much less.
std::pmr::unsynchronized_pool_resource& memory()
{
    static std::pmr::unsynchronized_pool_resource all;
    return all;
}

class structure {
public:
    void render_document(std::string_view value) { entries_.emplace_back(value); }
    void clear() { entries_.clear(); }

private:
    state_type entries_{&memory()};
};
