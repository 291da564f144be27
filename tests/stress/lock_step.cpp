// Random programs, compared with a single-threaded model. Each step runs in another thread, and
// only one thread runs at a time.
#include "../random/seeds.hpp"
#include "../support/threads.hpp"

#include <mallard/arena.hpp>

#include <array>
#include <memory>

namespace {

using namespace mallard::testing;
using namespace mallard;

/// A subject of a random program that makes each call in one of four threads, chosen at random.
/// Sometimes a thread exits and a new thread replaces it. The blocks in use are counted after each
/// call.
class in_turns final : public subject {
    template <class F>
    auto elsewhere(F f) const -> decltype(f())
    {
        auto& thread = threads_[choose_(threads_.size())];
        if (choose_(100) == 0) {
            thread.reset();
            thread = std::make_unique<puppet>();
        }
        if constexpr (std::is_void_v<decltype(f())>) {
            (*thread)(f);
        } else {
            decltype(f()) answer{};
            (*thread)([&] { answer = f(); });
            return answer;
        }
    }

public:
    in_turns(subject& of, std::size_t seed) : of_(of), choose_(seed)
    {
        for (auto& thread : threads_)
            thread = std::make_unique<puppet>();
    }

    std::optional<layout> single() const override { return of_.single(); }
    bool is_pooled(layout l) const override { return of_.is_pooled(l); }
    bool counts_source_bytes() const override { return of_.counts_source_bytes(); }

    void* allocate(layout l, bool throws) override
    {
        return counted(elsewhere([&] { return of_.allocate(l, throws); }));
    }
    void* allocate_single(bool throws) override
    {
        return counted(elsewhere([&] { return of_.allocate_single(throws); }));
    }
    bool allocate_batch(std::span<void*> out, bool throws) override
    {
        bool const done = elsewhere([&] { return of_.allocate_batch(out, throws); });
        count(done ? out.size() : 0);
        return done;
    }
    void deallocate(void* block, layout l) override
    {
        elsewhere([&] { of_.deallocate(block, l); });
        count(-std::size_t{1});
    }
    void deallocate_single(void* block) override
    {
        elsewhere([&] { of_.deallocate_single(block); });
        count(-std::size_t{1});
    }
    void deallocate_batch(std::span<void* const> blocks) override
    {
        elsewhere([&] { of_.deallocate_batch(blocks); });
        count(-blocks.size());
    }

    bool owns(const void* p) const override
    {
        return elsewhere([&] { return of_.owns(p); });
    }
    validity classify(const void* p) const override
    {
        return elsewhere([&] { return of_.classify(p); });
    }
    std::vector<void*> in_use() override
    {
        return elsewhere([&] { return of_.in_use(); });
    }
    statistics stats() const override
    {
        return elsewhere([&] { return of_.stats(); });
    }

    void reset() override
    {
        elsewhere([&] { of_.reset(); });
        live_ = 0;
    }
    void release() override
    {
        elsewhere([&] { of_.release(); });
        live_ = 0;
    }
    void trim(std::size_t keep) override
    {
        elsewhere([&] { of_.trim(keep); });
        count(0);
    }
    void move(void (*)(subject&)) override {} // shared pools cannot be moved

private:
    void* counted(void* block)
    {
        count(block != nullptr);
        return block;
    }
    void count(std::size_t more)
    {
        live_ += more;
        require(of_.stats().blocks_live == live_, "blocks are counted");
    }

    subject& of_;
    mutable seeded choose_;
    mutable std::array<std::unique_ptr<puppet>, 4> threads_;
    std::size_t live_ = 0;
};

/// Runs a random program on the allocator that `make(source, choose)` returns.
template <class Make>
void run_in_turns(Make make, std::size_t limit = bytes_max)
{
    auto const seed = static_cast<std::size_t>(GTEST_FLAG_GET(random_seed));
    doing = "seed " + std::to_string(seed);
    seeded choose(seed);
    failing_source source;
    using allocator = decltype(make(source, choose));
    auto const of = std::make_unique<subject_of<allocator>>([&] { return make(source, choose); });
    in_turns turns(*of, seed);
    program<seeded>(source, choose, turns, limit).run(rounds(1500));
    doing.clear();
}

template <class Kind>
class lock_step : public ::testing::Test {
protected:
    template <pool_options O>
    static void run_pools()
    {
        using pool = typename Kind::template pool<O>;
        run_in_turns(
            [](failing_source& source, auto& choose) {
                std::size_t const bytes = choose(4) == 0 ? choose(5000) : choose(150);
                std::size_t const align = choose(2) == 0 ? 0 : std::size_t{1} << choose(13);
                return pool(bytes, align, ref<failing_source>(source));
            },
            saturating_add(O.grow.limit, 5 * Kind::cache_bytes)); // caches of five threads
    }
};
TYPED_TEST_SUITE(lock_step, shared_kinds, kind_names);

TYPED_TEST(lock_step, agrees_with_the_model_for_a_default_pool)
{
    this->template run_pools<pool_options{}>();
}

TYPED_TEST(lock_step, agrees_with_the_model_with_small_chunks_and_arrays)
{
    this->template run_pools<pool_options{
        .chunk = 1024, .grow = growth::fixed(1), .cached_bytes = 256}>();
}

TYPED_TEST(lock_step, agrees_with_the_model_up_to_a_limit)
{
    this->template run_pools<pool_options{.chunk = 4096,
                                          .grow = {.first = 5000, .num = 3, .limit = 100'000}}>();
}

TYPED_TEST(lock_step, agrees_with_the_model_for_a_pool_of_one_chunk)
{
    this->template run_pools<pool_options{.grow = growth::none(50'000)}>();
}

template <class Kind>
class multipool_in_lock_step : public ::testing::Test {};
TYPED_TEST_SUITE(multipool_in_lock_step, growing_kinds, kind_names);

TYPED_TEST(multipool_in_lock_step, agrees_with_the_model)
{
    using multipool = typename TypeParam::template multipool<>;
    run_in_turns(
        [](failing_source& source, auto&) { return multipool(ref<failing_source>(source)); });
}

TYPED_TEST(multipool_in_lock_step, agrees_with_the_model_on_an_arena)
{
    using arena = mallard::arena<ref<failing_source>>;
    using multipool = typename TypeParam::template multipool<arena, 1000>;
    run_in_turns([](failing_source& source, auto&) {
        return multipool(arena(ref<failing_source>(source)));
    });
}

} // namespace
