// The C++ example of README.md.
#include <mallard/mallard.hpp>

#include <string>
#include <vector>

int main()
{
    mallard::pmr::arena request; // a std::pmr::memory_resource
    std::pmr::vector<std::pmr::string> lines(&request);
    lines.emplace_back("the vector and this text are freed together, with the arena");
}
