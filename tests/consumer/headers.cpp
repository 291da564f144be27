// Uses only the headers.
#include <mallard/mallard.hpp>

#include <cstdio>
#include <map>
#include <memory_resource>
#include <vector>

int main()
{
    mallard::pool<mallard::default_heap, mallard::pool_options{.block = 64}> blocks;
    blocks.deallocate(blocks.allocate());

    mallard::multipool<> nodes;
    using entry = std::pair<const int, int>;
    std::map<int, int, std::less<>, mallard::allocator<entry, mallard::multipool<>>> squares(nodes);
    mallard::pmr::arena scratch;
    std::pmr::vector<int> keys(&scratch);
    for (int i = 0; i < 1000; ++i) {
        squares[i] = i * i;
        keys.push_back(i);
    }
    std::printf("%d\n", squares[keys.back()]);
    return squares[keys.back()] == 998001 ? 0 : 1;
}
