#include <mallard/adapt/traced.hpp>
#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>
#include <mallard/debug/checked.hpp>
#include <mallard/multipool.hpp>

#include "../support/child.hpp"
#include "../support/sources.hpp"
#include "../support/threads.hpp"
#include "../support/traces.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <list>
#include <map>
#include <set>

#include <sys/resource.h>

namespace {

using namespace mallard;
using namespace mallard::testing;

static_assert(block_allocator<traced<multipool<>>> && resettable<traced<arena<>>>);
static_assert(chunk_source<traced<>>);

/// The path of a file that is removed at the end of the test.
struct temporary {
    temporary() : path(::testing::TempDir() + "mallard-" + std::to_string(::getpid()) + ".trace")
    {
        std::filesystem::remove(path);
    }
    ~temporary() { std::filesystem::remove(path); }
    const char* c_str() const { return path.c_str(); }
    std::vector<std::byte> bytes() const { return bytes_of_file(path); }

    std::string path;
};

TEST(traced, reports_each_call_to_a_callable)
{
    std::vector<mallard_trace_record> told;
    auto tell = [&](const mallard_trace_record& r) { told.push_back(r); };
    traced<multipool<>, decltype(tell)> blocks(tell);
    void* const block = blocks.allocate({40, 8});
    blocks.deallocate(block, {40, 8});
    blocks.reset();
    ASSERT_EQ(told.size(), 3);
    EXPECT_EQ(told[0].addr, reinterpret_cast<std::uintptr_t>(block));
    EXPECT_EQ(told[0].what, mallard_trace_pack(40, 3, mallard_trace_allocate, 0));
    EXPECT_EQ(told[1].addr, told[0].addr);
    EXPECT_EQ(told[1].what, mallard_trace_pack(40, 3, mallard_trace_deallocate, 0));
    EXPECT_EQ(told[1].dur, 0);
    EXPECT_EQ(mallard_trace_op_of(told[2].what), mallard_trace_reset);
    EXPECT_LE(told[0].t, told[1].t);
    EXPECT_LE(told[1].t, told[2].t);
}

TEST(traced, reports_failures_by_null_and_by_exception)
{
    failing_source heap;
    heap.fail_from(1);
    std::vector<mallard_trace_record> told;
    auto tell = [&](const mallard_trace_record& r) { told.push_back(r); };
    traced<ref<failing_source>, decltype(tell)> chunks(tell, std::in_place, heap);
    EXPECT_EQ(chunks.try_take({100}).data, nullptr);
    EXPECT_THROW(static_cast<void>(chunks.take({100})), std::bad_alloc);
    ASSERT_EQ(told.size(), 2);
    for (auto const& r : told) {
        EXPECT_EQ(r.addr, 0);
        EXPECT_EQ(mallard_trace_size(r.what), 100);
    }
}

/// Records in which order the source is called and events are reported.
struct ordered_source : counting_source {
    std::vector<std::string>* order = nullptr;
    chunk try_take(layout l) noexcept
    {
        order->push_back("take");
        return counting_source::try_take(l);
    }
    void give(chunk c) noexcept
    {
        order->push_back("give");
        counting_source::give(c);
    }
};

TEST(traced, reports_an_allocation_after_the_call_and_a_free_before_the_call)
{
    std::vector<std::string> order;
    auto tell = [&](const mallard_trace_record&) { order.push_back("event"); };
    traced<ordered_source, decltype(tell)> chunks(tell);
    chunks.upstream().order = &order;
    chunks.give(chunks.take({100}));
    EXPECT_EQ(order, (std::vector<std::string>{"take", "event", "event", "give"}));
}

TEST(traced, writes_several_allocators_to_one_file)
{
    temporary const file;
    {
        trace_file trace(file.c_str());
        ASSERT_EQ(trace.last_error(), 0) << trace.last_failure();
        traced<multipool<>> orders(trace.channel("orders"));
        traced<arena<>> scratch(trace.channel(std::string(300, 'x')));
        orders.deallocate(orders.allocate({40}), {40});
        static_cast<void>(scratch.allocate({7, 1}));
        scratch.release();
        EXPECT_TRUE(trace.close()) << trace.last_failure();
        EXPECT_EQ(trace.events_lost(), 0);
    }
    auto const bytes = file.bytes();
    trace_reader trace(bytes);
    auto const events = events_of(trace);
    EXPECT_TRUE(trace.is_whole()) << trace.remark();
    EXPECT_EQ(trace.header().pid, ::getpid());
    EXPECT_EQ(ops_of(events),
              (std::vector{mallard_trace_name, mallard_trace_name, mallard_trace_thread,
                           mallard_trace_allocate, mallard_trace_deallocate, mallard_trace_allocate,
                           mallard_trace_reset, mallard_trace_end}));
    EXPECT_EQ(events[0].name, "orders");
    EXPECT_EQ(events[1].name, std::string(255, 'x'));
    EXPECT_EQ(events[3].stack, events[0].stack);
    EXPECT_EQ(events[5].stack, events[1].stack);
    EXPECT_EQ(events[5].bytes, 7);
    EXPECT_EQ(events[5].thread, ::gettid());
    EXPECT_GE(events[5].t, trace.header().start);
}

TEST(traced, writes_the_calls_of_a_container_and_the_reader_finds_the_same_blocks)
{
    temporary const file;
    trace_file trace(file.c_str());
    using stack = traced<checked<multipool<>>>;
    stack blocks(trace.channel("numbers"));
    {
        std::list<int, allocator<int, stack>> numbers(blocks);
        for (int i = 0; i < 5000; ++i)
            numbers.push_back(i);
    }
    EXPECT_TRUE(trace.close());
    auto const bytes = file.bytes();
    trace_reader reader(bytes);
    std::set<std::uint64_t> live;
    std::size_t most = 0;
    for (auto const& e : events_of(reader)) {
        if (e.op == mallard_trace_allocate) {
            EXPECT_TRUE(live.insert(e.addr).second);
        }
        if (e.op == mallard_trace_deallocate) {
            EXPECT_EQ(live.erase(e.addr), 1);
        }
        most = std::max(most, live.size());
    }
    EXPECT_TRUE(live.empty());
    EXPECT_EQ(most, 5000);
    EXPECT_TRUE(reader.is_whole()) << reader.remark();
}

TEST(traced, records_the_thread_of_each_event)
{
    temporary const file;
    trace_file trace(file.c_str());
    constexpr std::size_t pairs = 2000;
    in_threads(4, [&](std::size_t number) {
        traced<multipool<>> blocks(trace.channel(std::to_string(number)));
        for (std::size_t i = 0; i < pairs; ++i)
            blocks.deallocate(blocks.allocate({number + 1}), {number + 1});
    });
    EXPECT_TRUE(trace.close());
    auto const bytes = file.bytes();
    trace_reader reader(bytes);
    std::map<std::uint32_t, std::string_view> names;
    std::map<std::uint32_t, std::set<std::uint32_t>> threads;
    std::map<std::uint32_t, std::size_t> events;
    for (auto const& e : events_of(reader)) {
        if (e.op == mallard_trace_name)
            names[e.stack] = e.name;
        if (e.op != mallard_trace_allocate && e.op != mallard_trace_deallocate)
            continue;
        EXPECT_EQ(names[e.stack], std::to_string(e.bytes - 1));
        threads[e.stack].insert(e.thread);
        events[e.stack] += 1;
    }
    EXPECT_EQ(events.size(), 4);
    for (auto const& [stack, count] : events) {
        EXPECT_EQ(count, 2 * pairs);
        EXPECT_EQ(threads[stack].size(), 1);
    }
}

TEST(traced, explains_why_a_file_cannot_be_opened_and_continues)
{
    trace_file trace("/no/such/folder/app.trace");
    EXPECT_EQ(trace.last_error(), ENOENT);
    EXPECT_NE(std::string(trace.last_failure()).find("mkdir"), std::string::npos);
    traced<multipool<>> blocks(trace.channel("orders"));
    for (int i = 0; i < 1000; ++i)
        blocks.deallocate(blocks.allocate({40}), {40});
    EXPECT_EQ(trace.events_lost(), 2000);
    EXPECT_FALSE(trace.flush());
    EXPECT_FALSE(trace.close());
}

TEST(traced, explains_a_full_disk)
{
    trace_file trace("/dev/full"); // on this device, even the header cannot be written
    EXPECT_EQ(trace.last_error(), ENOSPC);
    EXPECT_NE(std::string(trace.last_failure()).find("df"), std::string::npos);
    EXPECT_FALSE(trace.close());
}

TEST(traced, counts_lost_events_and_records_where_they_are_missing)
{
    temporary const file;
    EXPECT_EQ(in_a_child([&] {
                  std::signal(SIGXFSZ, SIG_IGN);
                  rlimit limit{};
                  ::getrlimit(RLIMIT_FSIZE, &limit);
                  trace_file trace(file.c_str());
                  traced<multipool<>> blocks(trace.channel("orders"));
                  auto const pairs = [&](int count) {
                      for (int i = 0; i < count; ++i)
                          blocks.deallocate(blocks.allocate({40}), {40});
                  };
                  limit.rlim_cur = 64 + 100 * 32 + 5; // the limit is in the middle of a record
                  ::setrlimit(RLIMIT_FSIZE, &limit);
                  pairs(2000);
                  std::uint64_t const lost = trace.events_lost();
                  require(lost > 3000 && lost < 3900, "events are lost");
                  require(trace.last_error() == EFBIG, "and why");
                  limit.rlim_cur = limit.rlim_max;
                  ::setrlimit(RLIMIT_FSIZE, &limit);
                  pairs(2000);
                  require(!trace.close(), "something is missing");
              }),
              "fine");
    auto const bytes = file.bytes();
    trace_reader reader(bytes);
    std::uint64_t lost = 0, seen = 0, lost_in_all = 0;
    for (auto const& e : events_of(reader)) {
        seen += e.op == mallard_trace_allocate || e.op == mallard_trace_deallocate;
        lost += e.op == mallard_trace_lost ? e.bytes : 0;
        lost_in_all += e.op == mallard_trace_end ? e.bytes : 0;
    }
    EXPECT_GT(lost, 3000);
    EXPECT_EQ(lost, lost_in_all);
    EXPECT_EQ(seen + lost, 8000);
    EXPECT_FALSE(reader.is_whole());
    EXPECT_NE(std::string(reader.remark()).find("missing"), std::string::npos);
}

TEST(traced, leaves_a_readable_file_when_the_process_is_killed)
{
    temporary const file;
    EXPECT_EQ(in_a_child([&] {
                  trace_file trace(file.c_str());
                  traced<multipool<>> blocks(trace.channel("orders"));
                  for (int i = 0; i < 3000; ++i)
                      blocks.deallocate(blocks.allocate({40}), {40});
                  ::kill(::getpid(), SIGKILL);
              }),
              "signal 9");
    auto const bytes = file.bytes();
    trace_reader reader(bytes);
    EXPECT_GT(events_of(reader).size(), 5000);
    EXPECT_FALSE(reader.is_whole());
    EXPECT_NE(std::string(reader.remark()).find("killed"), std::string::npos);
}

TEST(traced, writes_nothing_in_the_child_of_a_fork)
{
    temporary const file;
    trace_file trace(file.c_str());
    traced<multipool<>> blocks(trace.channel("orders"));
    blocks.deallocate(blocks.allocate({40}), {40});
    EXPECT_EQ(in_a_child([&] {
                  for (int i = 0; i < 3000; ++i)
                      blocks.deallocate(blocks.allocate({40}), {40});
                  require(!trace.close(), "not ours");
              }),
              "fine");
    EXPECT_TRUE(trace.close());
    auto const bytes = file.bytes();
    trace_reader reader(bytes);
    EXPECT_EQ(events_of(reader).size(), 5); // a name, a thread, a pair of events, and the end
    EXPECT_TRUE(reader.is_whole()) << reader.remark();
}

} // namespace
