// Runs the programs of spec/, and checks that errors in programs are reported.
#include "block_subject.hpp"
#include "key_subject.hpp"
#include "object_subject.hpp"
#include "program.hpp"

#include <mallard/sync.hpp>

#include <gtest/gtest.h>
#include <spec_folder.hpp>

#include <filesystem>
#include <fstream>

namespace {

using namespace mallard;
using namespace mallard::testing::spec;
using mallard::testing::failing_source;
using heap = ref<failing_source>;
using subjects = std::unique_ptr<subject>;

constexpr manner manners[] = {
    {"lifo", reuse::lifo, check::off, sync::none},
    {"lifo, check::on", reuse::lifo, check::on, sync::none},
    {"ordered", reuse::ordered, check::off, sync::none},
    {"ordered, check::on", reuse::ordered, check::on, sync::none},
    {"behind a mutex", reuse::lifo, check::off, sync::mutex},
    {"thread_cached", reuse::ordered, check::off, sync::thread_cached},
    // A lock-free pool cannot grow. So this manner is the last one, and `growing_manners` omits it.
    {"lock_free", reuse::ordered, check::off, sync::lock_free},
};
constexpr std::size_t growing_manners = std::size(manners) - 1;

/// Calls `f` with the index of the manner `how`, one of the first `Count` manners, as a constant.
/// An allocator that does not support a manner runs in the first one.
template <std::size_t Count, std::size_t I = Count - 1, class F>
subjects in_manner(const manner& how, F f)
{
    if constexpr (I != 0)
        if (how.name != manners[I].name)
            return in_manner<Count, I - 1>(how, f);
    return f(std::integral_constant<std::size_t, I>());
}

subjects make_arena(line& l, ground& on, const manner& how)
{
    growth const rule = growth_from(l, growth{});
    auto const make = [&]<check Checks>() -> subjects {
        constexpr arena_options options{.grow = growth::at_run_time(), .checks = Checks};
        return std::make_unique<block_subject<arena<heap, options>>>(on, rule, on.source);
    };
    return how.checks == check::on ? make.operator()<check::on>() : make.operator()<check::off>();
}

subjects make_pool(line& l, ground& on, const manner& how)
{
    std::size_t const bytes = l.number("bytes of a block");
    std::size_t const align = l.number("the alignment of a block");
    growth const rule = growth_from(l, pool_options{}.grow);
    // A limit is exact only without thread caches, and a lock-free pool does not grow.
    bool const limited = rule.limit != growth{}.limit;
    bool const possible = how.threads == sync::thread_cached ? !limited
                          : how.threads == sync::lock_free   ? rule.is_single()
                                                             : true;
    return in_manner<std::size(manners)>(possible ? how : manners[0], [&](auto i) -> subjects {
        constexpr pool_options options{.grow = growth::at_run_time(),
                                       .threads = manners[i].threads,
                                       .order = manners[i].order,
                                       .checks = manners[i].checks};
        return std::make_unique<block_subject<pool<heap, options>>>(on, bytes, align, on.source,
                                                                    rule);
    });
}

subjects make_multipool(ground& on, const manner& how)
{
    return in_manner<growing_manners>(how, [&](auto i) -> subjects {
        constexpr multipool_options options{
            .threads = manners[i].threads, .order = manners[i].order, .checks = manners[i].checks};
        return std::make_unique<block_subject<multipool<heap, options>>>(on, on.source);
    });
}

template <class T, bool Counted = false>
subjects make_objects(ground& on, const manner& how)
{
    return in_manner<growing_manners>(how, [&](auto i) -> subjects {
        constexpr counts of_threads =
            manners[i].threads == sync::none ? counts::local : counts::shared;
        constexpr object_pool_options options{.counts = Counted ? of_threads : counts::none,
                                              .threads = manners[i].threads,
                                              .order = manners[i].order,
                                              .checks = manners[i].checks};
        return std::make_unique<object_subject<object_pool<T, heap, options>>>(on);
    });
}

subjects make_object_pool(line& l, ground& on, const manner& how)
{
    if (l.take("empty"))
        return make_objects<empty_element>(on, how);
    if (l.take("aligned"))
        return make_objects<aligned_element>(on, how);
    if (l.take("shared"))
        return make_objects<plain_element, true>(on, how);
    return make_objects<plain_element>(on, how);
}

template <class Key, slot_map_options Options>
subjects make_slots(ground& on)
{
    return std::make_unique<key_subject<slot_map<plain_element, Key, heap, Options>>>(on);
}

subjects make_slot_map(line& l, ground& on, const manner& how)
{
    std::size_t const index = l.number("bits of an index");
    std::size_t const generation = l.number("bits of a generation");
    bool const wrapping = l.take("wrapping");
    auto const make = [&]<class Key>() {
        if (wrapping)
            return make_slots<Key, slot_map_options{.wrapping = true}>(on);
        return how.checks == check::on ? make_slots<Key, slot_map_options{.checks = check::on}>(on)
                                       : make_slots<Key, slot_map_options{}>(on);
    };
    if (index == 20 && generation == 12)
        return make.operator()<key32>();
    if (index == 32 && generation == 32)
        return make.operator()<key64>();
    if (index == 4 && generation == 2)
        return make.operator()<key<4, 2>>();
    throw broken{"keys are 20 12, 32 32 or 4 2"};
}

subjects make_subject(const std::string& kind, line& l, ground& on, const manner& how)
{
    if (kind == "arena")
        return make_arena(l, on, how);
    if (kind == "pool")
        return make_pool(l, on, how);
    if (kind == "multipool")
        return make_multipool(on, how);
    if (kind == "object_pool")
        return make_object_pool(l, on, how);
    if (kind == "slot_map")
        return make_slot_map(l, on, how);
    return nullptr;
}

std::string run_text(const std::string& text, const manner& how = manners[0])
{
    std::istringstream lines(text);
    return program(make_subject, how).run("spec/it.ops", lines);
}

class a_program : public ::testing::Test {
public:
    explicit a_program(std::filesystem::path path) : path_(std::move(path)) {}

private:
    void TestBody() override
    {
        for (manner const& how : manners) {
            std::ifstream text(path_);
            ASSERT_TRUE(text) << path_;
            std::string const name = "spec/" + path_.filename().string();
            std::string const failure = program(make_subject, how).run(name, text);
            EXPECT_TRUE(failure.empty()) << failure;
        }
    }

    std::filesystem::path path_;
};

/// Registers a test for each file of spec/, with the name of the file.
const std::size_t programs = [] {
    std::size_t count = 0;
    for (auto const& entry : std::filesystem::directory_iterator(spec_folder)) {
        std::filesystem::path const path = entry.path();
        if (path.extension() != ".ops")
            continue;
        count += 1;
        ::testing::RegisterTest("spec", path.stem().c_str(), nullptr, nullptr, path.c_str(), 1,
                                [path]() -> ::testing::Test* { return new a_program(path); });
    }
    return count;
}();

TEST(spec_runner, finds_the_programs)
{
    EXPECT_GE(programs, 10u);
}

TEST(spec_runner, passes_a_program_whose_expectations_are_true)
{
    EXPECT_EQ(run_text("# A comment.\n\narena first 4096 # and another\na = allocate 40 8\n"
                       "expect a holds\nin rust expect a walks\n"),
              "");
}

TEST(spec_runner, reports_the_line_of_an_unmet_expectation)
{
    EXPECT_EQ(run_text("arena\na = allocate 40 8\n\nb = allocate 40 8\nexpect b is a\n"),
              "spec/it.ops:5: failed: expect b is a\n  in this manner: lifo");
    EXPECT_EQ(run_text("pool 48 8\n  expect block_bytes is 40 # no\n", manners[1]),
              "spec/it.ops:2: failed: expect block_bytes is 40\n  block_bytes is 48\n"
              "  in this manner: lifo, check::on");
}

TEST(spec_runner, rejects_invalid_lines)
{
    auto const why = [](const char* text) {
        std::string const said = run_text(text);
        std::size_t const first = said.find("\n  ") + 3;
        return said.substr(0, said.find(':', 12)) + ": " +
               said.substr(first, said.rfind("\n  ") - first);
    };
    EXPECT_EQ(why("arena\na = conjure 40 8\n"), "spec/it.ops:2: there is no verb conjure here");
    EXPECT_EQ(why("slot_map 20 12\na = allocate 40 8\n"),
              "spec/it.ops:2: there is no verb allocate here");
    EXPECT_EQ(why("arena\na = allocate 40 8\nexpect a walks\n"),
              "spec/it.ops:3: there is no expectation walks here");
    EXPECT_EQ(why("arena\nin c expect taken is 0\n"), "spec/it.ops:2: there is no language c");
    EXPECT_EQ(why("a = allocate 40 8\n"), "spec/it.ops:1: there is no allocator yet");
    EXPECT_EQ(why("arena\na = allocate 40 8 8\n"),
              "spec/it.ops:2: nothing should follow, but there is 8");
    EXPECT_EQ(why("arena\na = allocate 4O 8\n"), "spec/it.ops:2: 4O should be bytes");
    EXPECT_EQ(why("arena\nfree a\n"), "spec/it.ops:2: there is no a");
    EXPECT_EQ(why("arena\na = allocate 8 8\nfree a\nfree a\n"), "spec/it.ops:4: a is free");
    EXPECT_EQ(why("arena last 4096\n"), "spec/it.ops:1: growth has no last");
}

TEST(spec_runner, reports_a_call_that_succeeds_although_it_must_fail)
{
    EXPECT_NE(run_text("arena\nrefuses allocate 40 8\n"), "");
    EXPECT_NE(run_text("object_pool\nthrows free a\n"), "");
    EXPECT_NE(run_text("slot_map 20 12\nrefuses insert 7\n"), "");
}

} // namespace
