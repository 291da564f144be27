// In render_document (render.cpp:40)
#include <mallard/allocator.hpp>
#include <mallard/multipool.hpp>
#include <map>
#include <string>
#include <string_view>

class structure {
public:
    void render_document(int key, std::string_view value) { entries_[key] = value; }
    void remove(int key) { entries_.erase(key); }

private:
    using memory_type = mallard::multipool<>;
    template <class T>
    using from_memory = mallard::allocator<T, memory_type>;
    using text = std::basic_string<char, std::char_traits<char>, from_memory<char>>;

    memory_type memory_; // before the containers that use it
    std::map<int, text, std::less<>, from_memory<std::pair<const int, text>>> entries_{memory_};
};
