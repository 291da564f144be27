// Uses up the mappings that the process may have. malloc then allocates from memory that it already
// has, or fails. When mappings are available again, malloc works as before.
#include "../family.hpp"
#include "check.hpp"

#include <fstream>

#include <sys/mman.h>

namespace {

using namespace mallard::testing;

constexpr std::size_t page = 4096;

/// Allocates blocks of all sizes. Returns the number of failed allocations.
int allocate_some()
{
    void* blocks[100];
    int refused = 0;
    for (std::size_t i = 0; i < std::size(blocks); ++i) {
        std::size_t const bytes = i * i * i * 4;
        blocks[i] = std::malloc(bytes);
        refused += blocks[i] == nullptr;
        if (blocks[i] != nullptr)
            fill(blocks[i], bytes, static_cast<unsigned>(i));
    }
    for (std::size_t i = 0; i < std::size(blocks); ++i) {
        check(blocks[i] == nullptr || holds(blocks[i], i * i * i * 4, static_cast<unsigned>(i)),
              "a block keeps its bytes");
        std::free(blocks[i]);
    }
    return refused;
}

} // namespace

int main()
{
    std::size_t most = 0;
    std::ifstream("/proc/sys/vm/max_map_count") >> most;
    if (most > 1'000'000)
        return 77;
    check(allocate_some() == 0, "at first there is memory");
    // Neighbouring pages get different protections, so that each page is a separate mapping.
    void* const area =
        ::mmap(nullptr, most * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    check(area != MAP_FAILED, "there are addresses");
    for (std::size_t i = 0; i < most; i += 2)
        if (::mprotect(static_cast<char*>(area) + i * page, page, PROT_READ) != 0)
            break;
    int const refused = allocate_some() + allocate_some();
    ::munmap(area, most * page);
    check(allocate_some() == 0, "at last there is memory again");
    std::printf("%d of 200 refused\n", refused);
}
