// A particle system: each frame makes thousands of objects that exist only for a moment.
//
// An object_pool reuses the slots of dead particles, so after the first frames the pool requests no
// more memory. The pool visits particles in address order, like an array.
#include <mallard/object_pool.hpp>

#include <array>
#include <cassert>
#include <cstdio>
#include <random>

struct particle {
    float x = 0, y = 0, dx = 0, dy = 0;
    int frames_left = 0;
};

namespace {

class fountain {
public:
    /// Makes a burst of particles in one call. The call makes all of them, or throws and makes
    /// none.
    void emit()
    {
        std::array<particle*, 500> burst;
        particles_.make_batch(burst);
        for (particle* const p : burst)
            *p = {0, 0, between(-1, 1), between(2, 4), static_cast<int>(between(20, 60))};
    }

    void step()
    {
        particles_.for_each([this](particle& p) {
            p.x += p.dx;
            p.y += p.dy;
            p.dy -= 0.1F;
            if (--p.frames_left <= 0)
                particles_.destroy(&p);
        });
    }

    mallard::statistics stats() const { return particles_.stats(); }

private:
    float between(float low, float high)
    {
        return std::uniform_real_distribution(low, high)(random_);
    }

    mallard::object_pool<particle> particles_;
    std::mt19937 random_;
};

} // namespace

int main()
{
    fountain water;
    auto const frame = [&] {
        water.emit();
        water.step();
    };
    for (int i = 0; i < 100; ++i) // the first die after 20 frames, the last after 60
        frame();
    mallard::statistics const warm = water.stats();
    for (int i = 0; i < 1000; ++i)
        frame();
    mallard::statistics const later = water.stats();

    assert(later.blocks_live > 15'000 && later.blocks_live < 25'000);
    assert(later.growths <= warm.growths + 1); // half a million particles, no more memory
    std::printf("%zu particles in %zu KiB\n", later.blocks_live, later.bytes_taken / 1024);

    for (int i = 0; i < 60; ++i)
        water.step();
    assert(water.stats().blocks_live == 0);
}
