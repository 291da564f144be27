// Throws exceptions through frames that allocate, and through destructors that allocate.
#include <cstdlib>

static void pair(std::size_t bytes)
{
    void* volatile block = std::malloc(bytes);
    std::free(block);
}

struct guard {
    ~guard() { pair(70002); }
};

static void dive(int depth)
{
    guard const g;
    pair(70001);
    if (depth == 0)
        throw 1;
    dive(depth - 1);
}

int main()
{
    for (int i = 0; i < 20; ++i) {
        try {
            dive(49);
        } catch (int) {
            pair(70003);
        }
    }
}
