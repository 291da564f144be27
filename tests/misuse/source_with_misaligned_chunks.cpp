// dies: mallard: a source returned a chunk at ADDRESS, not at a multiple of 65536
#include <mallard/pool.hpp>

struct misaligned {
    static constexpr std::size_t begin = 64;

    mallard::chunk try_take(mallard::layout l) noexcept
    {
        alignas(1 << 16) static std::byte bytes[1 << 18];
        return {bytes + begin, l.bytes, l.align};
    }
    void give(mallard::chunk) noexcept {}
};

int main()
{
    using namespace mallard;
    pool<misaligned, pool_options{.block = 48, .checks = check::on}> blocks;
    blocks.deallocate(blocks.allocate());
}
