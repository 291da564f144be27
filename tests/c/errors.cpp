// Tests error codes, explanations and NULL handles.
#include "support.hpp"

#include <cstring>
#include <set>
#include <thread>

using namespace mallard::testing;

TEST(c_errors, are_none_in_a_thread_without_a_failure)
{
    mallard_pool_create(nullptr); // a call that fails, in this thread only
    std::thread([] {
        EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_NONE);
        EXPECT_EQ(explanation().substr(0, explanation().find('\n')),
                  "mallard: no call of this thread has failed");
    }).join();
    EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_NULL);
}

TEST(c_errors, stay_until_the_next_failure)
{
    mallard_pool_create(nullptr);
    mallard_arena* const arena = mallard_arena_create(nullptr);
    EXPECT_NE(mallard_arena_allocate(arena, 8, 8), nullptr);
    EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_NULL);
    EXPECT_EQ(mallard_arena_allocate(arena, 8, 3), nullptr);
    EXPECT_EQ(mallard_last_error(), MALLARD_ERROR_ALIGN);
    mallard_arena_destroy(arena);
}

TEST(c_errors, have_distinct_descriptions)
{
    std::set<std::string> words;
    for (int error = MALLARD_ERROR_NONE; error <= MALLARD_ERROR_PLACE; ++error)
        EXPECT_TRUE(words.insert(mallard_strerror(error)).second) << error;
    EXPECT_EQ(words.count("no error"), 1U);
    std::string const unknown = mallard_strerror(MALLARD_ERROR_PLACE + 1);
    EXPECT_EQ(unknown, "not an error of Mallard");
    EXPECT_EQ(mallard_strerror(-1), unknown);
    EXPECT_EQ(words.count(unknown), 0U);
}

TEST(c_errors, are_explained_up_to_the_size_of_the_buffer)
{
    mallard_pool_create(nullptr);
    std::string const all = explanation();
    for (std::size_t bytes = 1; bytes <= all.size() + 1; ++bytes) {
        char text[MALLARD_EXPLANATION_BYTES];
        std::memset(text, '#', sizeof text);
        EXPECT_EQ(mallard_explain(text, bytes), text);
        EXPECT_EQ(text, all.substr(0, bytes - 1));
        EXPECT_EQ(text[bytes], '#');
    }
}

TEST(c_errors, are_described_briefly_without_a_buffer)
{
    mallard_pool_create(nullptr);
    char text[] = "#";
    EXPECT_STREQ(mallard_explain(text, 0), "a handle or argument is NULL");
    EXPECT_STREQ(mallard_explain(nullptr, 100), "a handle or argument is NULL");
    EXPECT_STREQ(text, "#");
}

TEST(c_errors, are_explained_in_three_lines)
{
    mallard_pool_create(nullptr);
    EXPECT_EQ(explanation(), "mallard_pool_create: options is NULL\n"
                             "  nothing was done\n"
                             "  help: pass the address of a struct with block_bytes\n");
}

TEST(c_errors, name_the_function_that_got_a_null_pool)
{
    auto const tells = [](const char* function) {
        expect_failure(MALLARD_ERROR_NULL, std::string(function) + ": the pool is NULL");
    };
    void* blocks[2];
    auto stats = sized<mallard_stats>();
    EXPECT_EQ(mallard_pool_allocate(nullptr), nullptr);
    tells("mallard_pool_allocate");
    EXPECT_EQ(mallard_pool_allocate_batch(nullptr, blocks, 2), MALLARD_ERROR_NULL);
    tells("mallard_pool_allocate_batch");
    EXPECT_EQ(mallard_pool_block_bytes(nullptr), 0U);
    tells("mallard_pool_block_bytes");
    EXPECT_EQ(mallard_pool_block_align(nullptr), 0U);
    tells("mallard_pool_block_align");
    EXPECT_EQ(mallard_pool_owns(nullptr, blocks), 0);
    tells("mallard_pool_owns");
    EXPECT_EQ(mallard_pool_classify(nullptr, blocks), MALLARD_MISS);
    tells("mallard_pool_classify");
    EXPECT_EQ(mallard_pool_stats(nullptr, &stats), MALLARD_ERROR_NULL);
    tells("mallard_pool_stats");
    EXPECT_EQ(mallard_pool_for_each(nullptr, [](void*, void*) {}, nullptr), MALLARD_ERROR_NULL);
    tells("mallard_pool_for_each");
}

TEST(c_errors, name_the_function_that_got_a_null_arena)
{
    auto const tells = [](const char* function) {
        expect_failure(MALLARD_ERROR_NULL, std::string(function) + ": the arena is NULL");
    };
    int block = 0;
    mallard_mark mark;
    auto stats = sized<mallard_stats>();
    EXPECT_EQ(mallard_arena_allocate(nullptr, 8, 8), nullptr);
    tells("mallard_arena_allocate");
    EXPECT_EQ(mallard_arena_allocate(nullptr, 8, 0), nullptr);
    tells("mallard_arena_allocate");
    EXPECT_EQ(mallard_arena_expand(nullptr, &block, 4, 8), MALLARD_ERROR_NULL);
    tells("mallard_arena_expand");
    EXPECT_EQ(mallard_arena_mark(nullptr, &mark), MALLARD_ERROR_NULL);
    tells("mallard_arena_mark");
    EXPECT_EQ(mallard_arena_stats(nullptr, &stats), MALLARD_ERROR_NULL);
    tells("mallard_arena_stats");
}

TEST(c_errors, name_the_function_that_got_a_null_multipool)
{
    auto const tells = [](const char* function) {
        expect_failure(MALLARD_ERROR_NULL, std::string(function) + ": the multipool is NULL");
    };
    int block = 0;
    auto stats = sized<mallard_stats>();
    EXPECT_EQ(mallard_multipool_allocate(nullptr, 8, 8), nullptr);
    tells("mallard_multipool_allocate");
    EXPECT_EQ(mallard_multipool_owns(nullptr, &block), 0);
    tells("mallard_multipool_owns");
    EXPECT_EQ(mallard_multipool_classify(nullptr, &block), MALLARD_MISS);
    tells("mallard_multipool_classify");
    EXPECT_EQ(mallard_multipool_stats(nullptr, &stats), MALLARD_ERROR_NULL);
    tells("mallard_multipool_stats");
}

TEST(c_errors, do_not_occur_when_null_is_freed)
{
    int block = 0;
    void* const blocks[] = {&block};
    mallard_mark const mark{};
    errno = 0;
    mallard_pool_destroy(nullptr);
    mallard_pool_free(nullptr, nullptr);
    mallard_pool_free(nullptr, &block);
    mallard_pool_free_batch(nullptr, blocks, 1);
    mallard_pool_reset(nullptr);
    mallard_pool_release(nullptr);
    mallard_pool_trim(nullptr, 0);
    mallard_arena_destroy(nullptr);
    mallard_arena_free(nullptr, &block, 4, 4);
    mallard_arena_rewind(nullptr, &mark);
    mallard_arena_reset(nullptr);
    mallard_arena_release(nullptr);
    mallard_arena_trim(nullptr, 0);
    mallard_multipool_destroy(nullptr);
    mallard_multipool_free(nullptr, &block, 4, 4);
    mallard_multipool_reset(nullptr);
    mallard_multipool_release(nullptr);
    mallard_multipool_trim(nullptr, 0);
    EXPECT_EQ(errno, 0);
}

TEST(c_errors, name_the_argument_that_is_null)
{
    auto options = pool_of(8);
    mallard_pool* const pool = mallard_pool_create(&options);
    mallard_arena* const arena = mallard_arena_create(nullptr);

    EXPECT_EQ(mallard_pool_allocate_batch(pool, nullptr, 1), MALLARD_ERROR_NULL);
    expect_failure(MALLARD_ERROR_NULL, "mallard_pool_allocate_batch: out is NULL");
    EXPECT_EQ(mallard_pool_stats(pool, nullptr), MALLARD_ERROR_NULL);
    expect_failure(MALLARD_ERROR_NULL, "mallard_pool_stats: out is NULL");
    EXPECT_EQ(mallard_pool_for_each(pool, nullptr, nullptr), MALLARD_ERROR_NULL);
    expect_failure(MALLARD_ERROR_NULL, "mallard_pool_for_each: visit is NULL");
    EXPECT_EQ(mallard_arena_expand(arena, nullptr, 4, 8), MALLARD_ERROR_NULL);
    expect_failure(MALLARD_ERROR_NULL, "mallard_arena_expand: block is NULL");
    EXPECT_EQ(mallard_arena_mark(arena, nullptr), MALLARD_ERROR_NULL);
    expect_failure(MALLARD_ERROR_NULL, "mallard_arena_mark: out is NULL");

    mallard_pool_free_batch(pool, nullptr, 3); // ignored, like a free of NULL
    mallard_arena_rewind(arena, nullptr);
    EXPECT_EQ(errno, 0);
    mallard_pool_destroy(pool);
    mallard_arena_destroy(arena);
}

TEST(c_version, is_that_of_the_project)
{
    EXPECT_EQ(mallard_version(), MALLARD_VERSION);
    std::string const version = std::to_string(MALLARD_VERSION_MAJOR) + "." +
                                std::to_string(MALLARD_VERSION_MINOR) + "." +
                                std::to_string(MALLARD_VERSION_PATCH);
    EXPECT_EQ(version, MALLARD_PROJECT_VERSION);
}
