// In render_document (render.cpp:40)
#include <mallard/allocator.hpp>
#include <mallard/multipool.hpp>
#include <string>
#include <string_view>
#include <vector>

using memory_type = mallard::multipool<>;
template <class T>
using from_memory = mallard::allocator<T, memory_type>;
using text = std::basic_string<char, std::char_traits<char>, from_memory<char>>;
using state_type = std::vector<text, from_memory<text>>;

// One for the program: the next call uses the blocks again that a call has freed. One that
// each call makes anew saves much less.
memory_type& memory()
{
    static memory_type all;
    return all;
}

class structure {
public:
    void render_document(std::string_view value) { entries_.emplace_back(value); }
    void clear() { entries_.clear(); }

private:
    state_type entries_{memory()};
};
