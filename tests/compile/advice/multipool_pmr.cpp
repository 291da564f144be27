// In render_document (render.cpp:40)
#include <map>
#include <memory_resource>
#include <string>
#include <string_view>

class structure {
public:
    void render_document(int key, std::string_view value) { entries_[key] = value; }
    void remove(int key) { entries_.erase(key); }

private:
    std::pmr::unsynchronized_pool_resource memory_; // before the containers that use it
    std::pmr::map<int, std::pmr::string> entries_{&memory_};
};
