#include <mallard/arena.hpp>
#include <mallard/persist/protected_pages.hpp>

#include "../support/child.hpp"
#include "../support/refused_call.hpp"
#include "pages.hpp"

#include <string>
#include <type_traits>

#include <sys/syscall.h>

namespace {

using namespace mallard::testing;
using mallard::arena;
using mallard::chunk;
using mallard::page_bytes;
using mallard::pages_options;
using mallard::protected_pages;
using mallard::unsealed;

using in_a_range = protected_pages<pages_options{.guard = true, .reserve_bytes = gib}>;

static_assert(mallard::chunk_source<protected_pages<>>);
static_assert(!std::is_copy_constructible_v<protected_pages<>>);
static_assert(std::is_nothrow_move_constructible_v<protected_pages<>>);
static_assert(std::is_nothrow_move_assignable_v<protected_pages<>>);

// Writes to `p` in a child process, which handles SIGSEGV itself, because ThreadSanitizer and
// AddressSanitizer would print a report and exit instead of letting the signal kill the child.
std::string write_to(std::byte* p)
{
    return in_a_child([p] {
        std::signal(SIGSEGV, [](int) { ::_exit(77); });
        *const_cast<volatile std::byte*>(p) = std::byte{2};
    });
}
constexpr char faults[] = "exit 77";

template <class Source>
void seals_and_unseals_every_chunk_from_first_byte_to_last()
{
    Source source;
    std::vector<chunk> chunks;
    for (std::size_t i = 0; i < 200; ++i) // more chunks than fit into the first page of the list
        chunks.push_back(source.try_take({(i % 3 + 1) * page_bytes, page_bytes << i % 5}));
    for (chunk const c : chunks)
        *begin(c) = *(end(c) - 1) = std::byte{1};
    for (int round = 0; round < 2; ++round) {
        ASSERT_TRUE(source.seal()) << source.last_failure();
        EXPECT_TRUE(source.is_sealed());
        for (std::size_t i = 0; i < chunks.size(); i += 33) {
            EXPECT_EQ(write_to(begin(chunks[i])), faults) << i;
            EXPECT_EQ(write_to(end(chunks[i]) - 1), faults) << i;
        }
        for (chunk const c : chunks)
            ASSERT_EQ(*begin(c), std::byte{1});
        ASSERT_TRUE(source.unseal()) << source.last_failure();
        EXPECT_FALSE(source.is_sealed());
        for (chunk const c : chunks)
            *begin(c) = *(end(c) - 1) = std::byte{1};
    }
    for (chunk const c : chunks)
        source.give(c);
}

TEST(protected_pages, are_read_only_from_the_first_to_the_last_byte_while_sealed)
{
    seals_and_unseals_every_chunk_from_first_byte_to_last<protected_pages<>>();
    seals_and_unseals_every_chunk_from_first_byte_to_last<in_a_range>();
}

TEST(protected_pages, cannot_supply_chunks_while_sealed_and_report_why)
{
    protected_pages<> source;
    chunk const c = source.try_take({1});
    ASSERT_TRUE(source.seal());
    EXPECT_EQ(source.try_take({1}).data, nullptr);
    EXPECT_EQ(source.last_error(), EPERM);
    EXPECT_TRUE(says(source.last_failure(), "unseal()"));
    ASSERT_TRUE(source.unseal());
    chunk const d = source.try_take({1});
    EXPECT_NE(d.data, nullptr);
    source.give(c);
    source.give(d);
}

TEST(protected_pages, can_be_sealed_before_the_first_chunk)
{
    protected_pages<> source;
    EXPECT_TRUE(source.seal());
    EXPECT_EQ(source.try_take({1}).data, nullptr);
    EXPECT_TRUE(source.unseal());
}

TEST(protected_pages, can_be_freed_while_sealed)
{
    std::vector<chunk> chunks(300);
    std::size_t const before = mapped_pages();
    {
        protected_pages<> source;
        for (chunk& c : chunks)
            c = source.try_take({page_bytes});
        ASSERT_TRUE(source.seal());
        for (std::size_t i = 0; i < chunks.size(); ++i)
            source.give(chunks[i * 77 % chunks.size()]);
    }
    EXPECT_EQ(mapped_pages(), before);
}

TEST(protected_pages, are_writable_again_when_a_range_reuses_sealed_pages)
{
    in_a_range source;
    chunk const c = source.try_take({page_bytes});
    ASSERT_TRUE(source.seal());
    source.give(c);
    ASSERT_TRUE(source.unseal());
    chunk const again = source.try_take({page_bytes});
    ASSERT_EQ(again.data, c.data);
    *begin(again) = std::byte{1};
}

TEST(protected_pages, stay_sealed_when_the_source_is_moved)
{
    protected_pages<> source;
    chunk const c = source.try_take({page_bytes});
    ASSERT_TRUE(source.seal());
    protected_pages<> moved = std::move(source);
    EXPECT_TRUE(moved.is_sealed());
    EXPECT_FALSE(source.is_sealed());
    protected_pages<> assigned;
    assigned = std::move(moved);
    EXPECT_EQ(write_to(begin(c)), faults);
    ASSERT_TRUE(assigned.unseal());
    *begin(c) = std::byte{1};
    assigned.give(c);
}

TEST(unsealed, makes_pages_writable_for_a_scope)
{
    protected_pages<> source;
    chunk const c = source.try_take({page_bytes});
    {
        unsealed const not_sealed_before(source);
    }
    EXPECT_FALSE(source.is_sealed()) << "as it was";
    ASSERT_TRUE(source.seal());
    {
        unsealed const writable(source);
        *begin(c) = std::byte{1};
        unsealed const inner(source);
    }
    EXPECT_TRUE(source.is_sealed());
    EXPECT_EQ(write_to(begin(c)), faults);
    source.give(c);
}

struct settings {
    int answer;
    std::string_view name;
};

TEST(an_arena_of_protected_pages, can_be_read_and_destroyed_while_sealed)
{
    std::size_t const before = mapped_pages();
    {
        arena<protected_pages<>> built;
        built.make_array<char>(100'000);
        built.reset(); // makes some chunks idle
        auto& s = built.make<settings>(42, built.copy("mallard"));
        built.make_array<char>(3'000'000);
        ASSERT_TRUE(built.upstream().seal());
        EXPECT_EQ(s.answer, 42);
        EXPECT_EQ(s.name, "mallard");
        EXPECT_EQ(write_to(reinterpret_cast<std::byte*>(&s)), faults);
        EXPECT_EQ(built.try_allocate({10'000'000}), nullptr) << "it does not grow";
    }
    EXPECT_EQ(mapped_pages(), before);
}

TEST(protected_pages, explain_a_failure_of_the_system_call_and_change_nothing)
{
    EXPECT_EQ(in_a_child([] {
                  protected_pages<> source;
                  chunk const c = source.try_take({page_bytes});
                  if (!refuse_call(SYS_mprotect, EACCES))
                      return;
                  require(!source.seal(), "seal fails");
                  require(!source.is_sealed() && source.last_error() == EACCES, "with the errno");
                  require(says(source.last_failure(), "does not let"),
                          "with a line that explains it");
                  *begin(c) = std::byte{1};
              }),
              "fine");
    EXPECT_EQ(in_a_child([] {
                  protected_pages<> source;
                  static_cast<void>(source.try_take({page_bytes}));
                  require(source.seal(), "while it is allowed");
                  if (!refuse_call(SYS_mprotect, ENOMEM))
                      return;
                  bool thrown = false;
                  try {
                      unsealed const writable(source);
                  } catch (const std::bad_alloc&) {
                      thrown = true;
                  }
                  require(thrown && source.is_sealed(), "a scope that cannot open throws");
                  require(says(source.last_failure(), "max_map_count"), "the limit is named");
              }),
              "fine");
}

TEST(protected_pages, are_all_unsealed_again_if_one_cannot_be_sealed)
{
    // The kernel fails to protect an address range that is not mapped. So the test unmaps a chunk
    // of which the source does not know that it is gone.
    EXPECT_EQ(in_a_child([] {
                  protected_pages<pages_options{.guard = true}> source;
                  chunk const first = source.try_take({page_bytes});
                  chunk const gone = source.try_take({page_bytes});
                  ::munmap(gone.data, gone.bytes);
                  require(!source.seal() && source.last_error() == ENOMEM, "there is no mapping");
                  *begin(first) = std::byte{1};
              }),
              "fine");
}

TEST(unsealed, stops_the_process_when_the_pages_cannot_be_sealed_again)
{
    EXPECT_DEATH(
        {
            protected_pages<> source;
            static_cast<void>(source.try_take({page_bytes}));
            static_cast<void>(source.seal());
            unsealed const writable(source);
            if (!refuse_call(SYS_mprotect, EACCES))
                mallard::fatal_not_sealed("nothing can be refused here");
        },
        "^mallard: protected pages cannot be sealed again\n  [^\n]+\n  help: call seal\\(\\)");
}

} // namespace
