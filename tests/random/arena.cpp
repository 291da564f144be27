#include "../support/arena_program.hpp"
#include "../support/length.hpp"

#include <gtest/gtest.h>

namespace {

using namespace mallard::testing;
using mallard::arena_options;
using mallard::check;
using mallard::growth;

template <arena_options O>
void run_arenas()
{
    auto const first = static_cast<std::size_t>(GTEST_FLAG_GET(random_seed));
    for (std::size_t seed = first; seed < first + repeated(40, 4); ++seed) {
        doing = "seed " + std::to_string(seed);
        seeded choose(seed);
        arena_program<seeded, O>(choose).run(1000);
    }
    doing.clear();
}

TEST(random_arena, agrees_with_a_model_as_it_grows_by_default)
{
    run_arenas<arena_options{}>();
}

TEST(random_arena, agrees_with_a_model_in_chunks_of_one_size)
{
    run_arenas<arena_options{.grow = growth::fixed(500), .min_align = 8}>();
}

TEST(random_arena, agrees_with_a_model_until_the_memory_limit_is_reached)
{
    run_arenas<arena_options{.grow = {.first = 100, .num = 3, .den = 2, .add = 10, .limit = 20'000},
                             .min_align = 2}>();
}

TEST(random_arena, agrees_with_a_model_on_a_single_chunk)
{
    run_arenas<arena_options{.grow = growth::none(5000), .min_align = 16}>();
}

TEST(random_arena, agrees_with_a_model_under_checks)
{
    run_arenas<arena_options{.grow = growth::linear(64, 64), .checks = check::on}>();
}

} // namespace
