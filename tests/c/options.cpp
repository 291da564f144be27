// Tests options: structs of older and newer versions, and every invalid value.
#include "support.hpp"

#include <cstring>
#include <functional>
#include <vector>

using namespace mallard::testing;

namespace {

/// Expects that a pool with these options is not created, and that the failure has this error and
/// this first line.
void expect_refused(const mallard_pool_options& options, mallard_error error,
                    const std::string& what)
{
    EXPECT_EQ(mallard_pool_create(&options), nullptr) << what;
    expect_failure(error, "mallard_pool_create: " + what);
}

/// Expects that a pool with these options is created, and works.
void expect_accepted(const mallard_pool_options& options)
{
    mallard_pool* const pool = mallard_pool_create(&options);
    ASSERT_NE(pool, nullptr) << explanation();
    void* const block = mallard_pool_allocate(pool);
    EXPECT_NE(block, nullptr) << explanation();
    mallard_pool_free(pool, block);
    mallard_pool_destroy(pool);
}

/// The pool options of an imaginary later version, which has more members.
struct newer_options {
    mallard_pool_options known;
    std::size_t unknown[2];
};

} // namespace

TEST(c_options, the_options_of_a_pool_must_set_block_bytes)
{
    expect_refused(sized<mallard_pool_options>(), MALLARD_ERROR_OPTION, "block_bytes is 0");
}

TEST(c_options, are_optional_for_arenas_and_multipools)
{
    mallard_arena* const arena = mallard_arena_create(nullptr);
    mallard_multipool* const multipool = mallard_multipool_create(nullptr);
    EXPECT_NE(mallard_arena_allocate(arena, 100, 0), nullptr);
    EXPECT_NE(mallard_multipool_allocate(multipool, 100, 0), nullptr);
    mallard_arena_destroy(arena);
    mallard_multipool_destroy(multipool);
}

TEST(c_options, begin_with_the_size_of_their_struct)
{
    auto options = pool_of(48);
    for (std::size_t const bytes : {std::size_t{0}, std::size_t{4}, std::size_t{13},
                                    sizeof options - 1, std::size_t{4104}, SIZE_MAX}) {
        options.struct_bytes = bytes;
        expect_refused(options, MALLARD_ERROR_STRUCT,
                       "struct_bytes is " + std::to_string(bytes) +
                           ", and no mallard_pool_options has that size");
    }
    auto arena = sized<mallard_arena_options>();
    arena.struct_bytes = 3;
    EXPECT_EQ(mallard_arena_create(&arena), nullptr);
    expect_failure(MALLARD_ERROR_STRUCT, "mallard_arena_create: struct_bytes is 3, and no "
                                         "mallard_arena_options has that size");
    auto multipool = sized<mallard_multipool_options>();
    multipool.struct_bytes = 3;
    EXPECT_EQ(mallard_multipool_create(&multipool), nullptr);
    expect_failure(MALLARD_ERROR_STRUCT, "mallard_multipool_create: struct_bytes is 3, and no "
                                         "mallard_multipool_options has that size");
}

TEST(c_options, members_that_an_older_caller_lacks_have_default_values)
{
    auto options = pool_of(48);
    std::memset(&options.align, 0xee, sizeof options - offsetof(mallard_pool_options, align));
    // `struct_bytes` ends before `growth_num` or any other member after `align`, so they are not
    // read.
    options.struct_bytes = offsetof(mallard_pool_options, align);
    expect_accepted(options);

    auto arena = sized<mallard_arena_options>();
    std::memset(&arena.growth, 0xee, sizeof arena - offsetof(mallard_arena_options, growth));
    arena.struct_bytes = sizeof arena.struct_bytes;
    mallard_arena* const made = mallard_arena_create(&arena);
    EXPECT_NE(made, nullptr) << explanation();
    mallard_arena_destroy(made);
}

TEST(c_options, a_newer_caller_may_pass_unknown_members_that_are_zero)
{
    newer_options options{pool_of(48), {}};
    options.known.struct_bytes = sizeof options;
    expect_accepted(options.known);

    options.unknown[1] = 1;
    expect_refused(options.known, MALLARD_ERROR_STRUCT,
                   "an option is set that this library does not support");
    EXPECT_NE(explanation().find("the caller's mallard_pool_options has " +
                                 std::to_string(sizeof options) + " bytes, the library's " +
                                 std::to_string(sizeof options.known)),
              std::string::npos)
        << explanation();
}

TEST(c_options, can_be_cleared_in_c89)
{
    mallard_pool_options pool;
    mallard_arena_options arena;
    mallard_multipool_options multipool;
    std::memset(&pool, 0xee, sizeof pool);
    std::memset(&arena, 0xee, sizeof arena);
    std::memset(&multipool, 0xee, sizeof multipool);
    mallard_pool_options_init(&pool, sizeof pool);
    mallard_arena_options_init(&arena, sizeof arena);
    mallard_multipool_options_init(&multipool, sizeof multipool);
    auto const clear_pool = sized<mallard_pool_options>();
    auto const clear_arena = sized<mallard_arena_options>();
    auto const clear_multipool = sized<mallard_multipool_options>();
    EXPECT_EQ(std::memcmp(&pool, &clear_pool, sizeof pool), 0);
    EXPECT_EQ(std::memcmp(&arena, &clear_arena, sizeof arena), 0);
    EXPECT_EQ(std::memcmp(&multipool, &clear_multipool, sizeof multipool), 0);

    mallard_pool_options_init(nullptr, sizeof pool); // a null struct is ignored
    // The struct has no room for struct_bytes, so the call is ignored.
    mallard_pool_options_init(&pool, 3);
    EXPECT_EQ(std::memcmp(&pool, &clear_pool, sizeof pool), 0);
}

TEST(c_options, reject_unknown_values)
{
    struct member {
        const char* name;
        int mallard_pool_options::* at;
        int count;
    };
    for (member const m : {member{"growth", &mallard_pool_options::growth, 5},
                           member{"sync", &mallard_pool_options::sync, 4},
                           member{"reuse", &mallard_pool_options::reuse, 3},
                           member{"check", &mallard_pool_options::check, 2}}) {
        for (int const wrong : {-1, m.count, 1000000}) {
            auto options = pool_of(48);
            options.*m.at = wrong;
            expect_refused(options, MALLARD_ERROR_OPTION,
                           std::string(m.name) + " is " + std::to_string(wrong) +
                               ", which is not a valid value");
            EXPECT_NE(explanation().find(std::string("enum mallard_") + m.name), std::string::npos);
        }
    }
    auto arena = sized<mallard_arena_options>();
    arena.reserved = 7;
    EXPECT_EQ(mallard_arena_create(&arena), nullptr);
    expect_failure(MALLARD_ERROR_OPTION, "mallard_arena_create: reserved is 7, not 0");
}

TEST(c_options, reject_alignments_that_are_not_powers_of_two)
{
    for (std::size_t const align : {std::size_t{3}, std::size_t{24}, SIZE_MAX}) {
        auto options = pool_of(48);
        options.align = align;
        expect_refused(options, MALLARD_ERROR_ALIGN,
                       "align is " + std::to_string(align) + ", which is not a power of two");
    }
}

TEST(c_options, reject_blocks_above_the_address_space)
{
    std::size_t const absurd = SIZE_MAX - 7;
    expect_refused(pool_of(absurd), MALLARD_ERROR_TOO_LARGE,
                   std::to_string(absurd) +
                       " bytes, aligned to 0, are more than any address space has");
    auto options = pool_of(1);
    options.align = std::size_t{1} << 63;
    expect_refused(options, MALLARD_ERROR_TOO_LARGE,
                   "1 bytes, aligned to 9223372036854775808, are more than any address space has");
}

TEST(c_options, reject_numbers_that_a_growth_does_not_use)
{
    struct wrong {
        int growth;
        std::size_t mallard_pool_options::* member;
        const char* what;
    };
    using o = mallard_pool_options;
    for (wrong const w : {
             wrong{MALLARD_GROWTH_DEFAULT, &o::growth_num,
                   "growth_num is 7, and growth is MALLARD_GROWTH_DEFAULT, which does not use it"},
             wrong{MALLARD_GROWTH_DEFAULT, &o::growth_den,
                   "growth_den is 7, and growth is MALLARD_GROWTH_DEFAULT, which does not use it"},
             wrong{MALLARD_GROWTH_DEFAULT, &o::growth_add,
                   "growth_add is 7, and growth is MALLARD_GROWTH_DEFAULT, which does not use it"},
             wrong{MALLARD_GROWTH_NONE, &o::step_max_bytes,
                   "step_max_bytes is 7, and growth is MALLARD_GROWTH_NONE, which does not use it"},
             wrong{MALLARD_GROWTH_FIXED, &o::step_max_bytes,
                   "step_max_bytes is 7, and growth is MALLARD_GROWTH_FIXED, which does not use "
                   "it"},
             wrong{MALLARD_GROWTH_FIXED, &o::growth_add,
                   "growth_add is 7, and growth is MALLARD_GROWTH_FIXED, which does not use it"},
             wrong{MALLARD_GROWTH_LINEAR, &o::growth_num,
                   "growth_num is 7, and growth is MALLARD_GROWTH_LINEAR, which does not use it"},
         }) {
        auto options = pool_of(48);
        options.growth = w.growth;
        options.*w.member = 7;
        expect_refused(options, MALLARD_ERROR_CONFLICT, w.what);
    }
}

TEST(c_options, reject_missing_numbers_of_a_growth)
{
    auto options = pool_of(48);
    options.growth = MALLARD_GROWTH_NONE;
    expect_refused(options, MALLARD_ERROR_OPTION,
                   "growth is MALLARD_GROWTH_NONE, and first_bytes is 0");
    options.growth = MALLARD_GROWTH_LINEAR;
    expect_refused(options, MALLARD_ERROR_OPTION,
                   "growth is MALLARD_GROWTH_LINEAR, and growth_add is 0");
}

TEST(c_options, reject_numbers_that_contradict_each_other)
{
    auto options = pool_of(48);
    options.first_bytes = 4096;
    options.limit_bytes = 4095;
    expect_refused(options, MALLARD_ERROR_CONFLICT,
                   "limit_bytes is 4095, less than first_bytes, which is 4096");
    options.limit_bytes = 0;
    options.step_max_bytes = 100;
    expect_refused(options, MALLARD_ERROR_CONFLICT,
                   "step_max_bytes is 100, less than first_bytes, which is 4096");

    options = pool_of(48);
    options.limit_bytes = 47;
    expect_refused(options, MALLARD_ERROR_CONFLICT,
                   "limit_bytes is 47, less than block_bytes, which is 48");

    options = pool_of(48);
    options.growth = MALLARD_GROWTH_GEOMETRIC;
    options.growth_num = 2;
    options.growth_den = 3;
    expect_refused(options, MALLARD_ERROR_CONFLICT,
                   "growth_num is 2, less than growth_den, which is 3");
    options.growth_num = 0; // 0 means the default, 2
    expect_refused(options, MALLARD_ERROR_CONFLICT,
                   "growth_num is 2, less than growth_den, which is 3");
}

TEST(c_options, reject_incomplete_sources)
{
    char bytes[64];
    auto const with = [](auto set) {
        auto options = pool_of(48);
        set(options);
        return options;
    };
    mallard_take const take = [](void*, std::size_t, std::size_t) -> void* { return nullptr; };
    mallard_give const give = [](void*, void*, std::size_t, std::size_t) {};
    using options = mallard_pool_options;
    expect_refused(with([&](options& o) { o.take = take; }), MALLARD_ERROR_CONFLICT,
                   "take is set and give is not");
    expect_refused(with([&](options& o) { o.give = give; }), MALLARD_ERROR_CONFLICT,
                   "give is set and take is not");
    expect_refused(with([&](options& o) { o.context = bytes; }), MALLARD_ERROR_CONFLICT,
                   "context is set and take is not");
    expect_refused(with([&](options& o) { o.buffer = bytes; }), MALLARD_ERROR_CONFLICT,
                   "buffer is set and buffer_bytes is not");
    expect_refused(with([&](options& o) { o.buffer_bytes = 64; }), MALLARD_ERROR_CONFLICT,
                   "buffer_bytes is set and buffer is not");
    expect_refused(with([&](options& o) {
                       o.take = take;
                       o.give = give;
                       o.buffer = bytes;
                       o.buffer_bytes = sizeof bytes;
                   }),
                   MALLARD_ERROR_CONFLICT, "take and buffer are both set");
}

TEST(c_options, support_all_combinations_of_pool_kinds_and_sources)
{
    for (int sync = MALLARD_SYNC_NONE; sync <= MALLARD_SYNC_THREAD_CACHED; ++sync)
        for (int reuse = MALLARD_REUSE_DEFAULT; reuse <= MALLARD_REUSE_LIFO; ++reuse)
            for (int check = MALLARD_CHECK_OFF; check <= MALLARD_CHECK_ON; ++check)
                for (int growth = MALLARD_GROWTH_DEFAULT; growth <= MALLARD_GROWTH_GEOMETRIC;
                     ++growth) {
                    SCOPED_TRACE(::testing::Message()
                                 << "sync " << sync << ", reuse " << reuse << ", check " << check
                                 << ", growth " << growth);
                    auto options = pool_of(48);
                    options.sync = sync;
                    options.reuse = reuse;
                    options.check = check;
                    options.growth = growth;
                    options.first_bytes = 1 << 16;
                    options.growth_add = growth == MALLARD_GROWTH_LINEAR ? 4096 : 0;
                    if (sync != MALLARD_SYNC_LOCK_FREE || growth == MALLARD_GROWTH_NONE)
                        expect_accepted(options);
                }
}

TEST(c_options, reject_growth_for_a_lock_free_pool)
{
    auto options = pool_of(48);
    options.sync = MALLARD_SYNC_LOCK_FREE;
    expect_refused(options, MALLARD_ERROR_CONFLICT,
                   "sync is MALLARD_SYNC_LOCK_FREE, and growth is MALLARD_GROWTH_DEFAULT");
    options.growth = MALLARD_GROWTH_FIXED;
    options.first_bytes = 4096;
    expect_refused(options, MALLARD_ERROR_CONFLICT,
                   "sync is MALLARD_SYNC_LOCK_FREE, and growth is MALLARD_GROWTH_FIXED");
    options.growth = MALLARD_GROWTH_NONE;
    expect_accepted(options);
}

TEST(c_options, determine_the_chunk_sizes)
{
    struct expected {
        int growth;
        std::size_t num, den, add, step_max;
        std::vector<std::size_t> steps;
    };
    for (expected const& e : {
             expected{MALLARD_GROWTH_DEFAULT, 0, 0, 0, 0, {4096, 8192, 16384}},
             expected{MALLARD_GROWTH_DEFAULT, 0, 0, 0, 10000, {4096, 8192, 10000, 10000}},
             expected{MALLARD_GROWTH_FIXED, 0, 0, 0, 0, {4096, 4096, 4096}},
             expected{MALLARD_GROWTH_LINEAR, 0, 0, 1000, 0, {4096, 5096, 6096}},
             expected{MALLARD_GROWTH_GEOMETRIC, 3, 2, 0, 0, {4096, 6144, 9216}},
             expected{MALLARD_GROWTH_GEOMETRIC, 3, 0, 8, 0, {4096, 12296, 36896}},
             expected{MALLARD_GROWTH_GEOMETRIC, 0, 0, 0, 0, {4096, 8192}},
         }) {
        SCOPED_TRACE(e.growth);
        auto options = pool_of(64);
        options.reuse = MALLARD_REUSE_LIFO;
        options.growth = e.growth;
        options.growth_num = e.num;
        options.growth_den = e.den;
        options.growth_add = e.add;
        options.step_max_bytes = e.step_max;
        options.first_bytes = 4096;
        recording_source source;
        source.serve(options);
        mallard_pool* const pool = mallard_pool_create(&options);
        ASSERT_NE(pool, nullptr) << explanation();
        for (std::size_t const step : e.steps) {
            std::size_t const before = source.bytes_taken();
            while (source.bytes_taken() == before)
                ASSERT_NE(mallard_pool_allocate(pool), nullptr);
            EXPECT_EQ(source.bytes_taken() - before, step);
        }
        mallard_pool_destroy(pool);
    }
}

TEST(c_options, allow_a_first_step_above_the_default_maximum)
{
    auto options = sized<mallard_arena_options>();
    options.first_bytes = 4 << 20;
    recording_source source;
    source.serve(options);
    mallard_arena* const arena = mallard_arena_create(&options);
    EXPECT_NE(mallard_arena_allocate(arena, 8, 8), nullptr);
    EXPECT_GE(source.bytes_taken(), std::size_t{4} << 20);
    mallard_arena_destroy(arena);
}

TEST(c_options, a_pool_without_growth_requests_only_one_chunk)
{
    auto options = pool_of(64);
    options.growth = MALLARD_GROWTH_NONE;
    options.first_bytes = 4096;
    options.reuse = MALLARD_REUSE_LIFO;
    mallard_pool* const pool = mallard_pool_create(&options);
    int count = 0;
    while (mallard_pool_allocate(pool) != nullptr)
        ++count;
    EXPECT_GT(count, 55);
    EXPECT_LE(count, 64);
    expect_failure(MALLARD_ERROR_LIMIT, "mallard_pool_allocate: the limit of 4096 bytes leaves "
                                        "no room for this request");
    auto stats = sized<mallard_stats>();
    EXPECT_EQ(mallard_pool_stats(pool, &stats), 0);
    EXPECT_EQ(stats.growths, 1U);
    mallard_pool_destroy(pool);
}
