#include <mallard/allocator.hpp>
#include <mallard/multipool.hpp>
#include <mallard/persist/file_arena.hpp>
#include <mallard/pmr.hpp>

#include "../support/files.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace {

using namespace mallard::testing;
using mallard::file_arena;
using mallard::file_blocks;

static_assert(mallard::block_allocator<file_arena> && mallard::block_allocator<file_blocks>);

/// A container that is in the file and allocates from the file.
using numbers = std::vector<int, mallard::allocator<int, file_blocks>>;
using table = std::map<int, numbers, std::less<>,
                       mallard::allocator<std::pair<const int, numbers>, file_blocks>>;

TEST(file_arena, stores_standard_containers_that_grow_after_the_file_is_reopened)
{
    temporary_folder const folder;
    std::string const path = folder / "table";
    for (int round = 0; round < 4; ++round) {
        file_arena file;
        ASSERT_TRUE(file.open(path.c_str())) << file.last_failure();
        auto* const rows = file.root_or_make<table>(file.blocks());
        ASSERT_NE(rows, nullptr) << file.last_failure();
        ASSERT_EQ(rows->size(), static_cast<std::size_t>(100 * round));
        for (int i = 0; i < 100; ++i)
            for (int row = 0; row <= 100 * round + i; row += 50)
                (*rows)[100 * round + i].push_back(row);
        ASSERT_TRUE(file.commit()) << file.last_failure();
    }
    file_arena file;
    ASSERT_TRUE(file.open(path.c_str(), {.access = mallard::file_access::read}));
    for (auto const& [key, row] : *file.root<table>())
        EXPECT_EQ(row.size(), static_cast<std::size_t>(1 + key / 50));
}

TEST(file_arena, works_with_every_kind_of_allocator_binding)
{
    temporary_folder const folder;
    mallard::pmr_resource<file_arena> resource;
    ASSERT_TRUE(resource.open((folder / "pmr").c_str()));
    std::pmr::vector<int> const some({1, 2, 3}, &resource);
    EXPECT_GT(resource.stats().bytes_used, 64U);

    file_arena file;
    ASSERT_TRUE(file.open((folder / "multipool").c_str()));
    std::vector<int, mallard::allocator<int, file_arena>> const same({1, 2, 3}, file);
    mallard::multipool<mallard::ref<file_arena>> blocks(file);
    void* const block = blocks.allocate({48});
    blocks.deallocate(block, {48});
    EXPECT_EQ(blocks.allocate({48}), block);
    EXPECT_TRUE(file.commit());
}

} // namespace
