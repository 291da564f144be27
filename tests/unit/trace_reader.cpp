#include "../support/choices.hpp"
#include "../support/traces.hpp"

#include <gtest/gtest.h>
#include <spec_folder.hpp>

#include <cstring>
#include <filesystem>

namespace {

using namespace mallard;
using namespace mallard::testing;

std::vector<std::byte> golden()
{
    return bytes_of_file(std::filesystem::path(spec_folder) / "trace_format.golden");
}

TEST(trace_reader, reads_the_golden_trace)
{
    auto const bytes = golden();
    trace_reader trace(bytes);
    ASSERT_TRUE(trace.is_readable()) << trace.remark();
    EXPECT_EQ(trace.header().pid, 42);
    EXPECT_EQ(trace.header().clock, mallard_trace_clock_monotonic);
    auto const events = events_of(trace);
    EXPECT_EQ(
        ops_of(events),
        (std::vector{
            mallard_trace_name,         mallard_trace_thread,       mallard_trace_allocate,
            mallard_trace_allocate,     mallard_trace_allocate,     mallard_trace_deallocate,
            mallard_trace_process,      mallard_trace_module,       mallard_trace_thread_start,
            mallard_trace_thread,       mallard_trace_malloc,       mallard_trace_calloc,
            mallard_trace_realloc_from, mallard_trace_realloc_to,   mallard_trace_posix_memalign,
            mallard_trace_free,         mallard_trace_region_begin, mallard_trace_region_name,
            mallard_trace_region_end,   mallard_trace_region_name,  mallard_trace_memory,
            mallard_trace_cpu,          mallard_trace_checkpoint,   mallard_trace_thread_end,
            mallard_trace_process_end,  mallard_trace_thread,       mallard_trace_lost,
            mallard_trace_reset,        mallard_trace_end}));
    EXPECT_EQ(events[0].name, "orders of the day, and of the night");
    EXPECT_EQ(events[2].t, 1100);
    EXPECT_EQ(events[2].addr, 0x7f0000001000);
    EXPECT_EQ(events[2].bytes, 48);
    EXPECT_EQ(events[2].align, 16);
    EXPECT_EQ(events[2].dur, 50);
    EXPECT_EQ(events[2].thread, 4242);
    EXPECT_EQ(events[3].flags, mallard_trace_size_cut);
    EXPECT_EQ(events[4].flags, mallard_trace_dur_cut);
    EXPECT_EQ(events[4].align, 4096);
    // Two events are missing.
    EXPECT_NE(std::string(trace.remark()).find("missing"), std::string::npos);
}

std::vector<std::uint64_t> addresses_in(std::span<const std::byte> frames)
{
    std::vector<std::uint64_t> addresses(frames.size() / sizeof(std::uint64_t));
    std::memcpy(addresses.data(), frames.data(), frames.size());
    return addresses;
}

TEST(trace_reader, reads_the_texts_and_call_stacks_of_the_golden_trace)
{
    auto const bytes = golden();
    trace_reader trace(bytes);
    auto const events = events_of(trace);
    EXPECT_EQ(events[6].name, "start /usr/bin/orders");
    EXPECT_EQ(events[7].name, "555555560000 1000 0123456789abcdef /usr/bin/orders of the day");
    trace_event const& first = events[10];
    EXPECT_EQ(first.thread, 0);
    EXPECT_EQ(first.flags, mallard_trace_from_new);
    EXPECT_EQ(mallard_trace_kept(first.stack), 0);
    EXPECT_EQ(addresses_in(first.frames),
              (std::vector<std::uint64_t>{0x555555550111, 0x555555550222, 0x555555550333,
                                          0x555555550444, 0x555555550555}));
    EXPECT_EQ(mallard_trace_kept(events[11].stack), 3);
    EXPECT_EQ(addresses_in(events[11].frames), (std::vector<std::uint64_t>{0x555555550666}));
    EXPECT_TRUE(events[12].frames.empty());
    EXPECT_EQ(events[15].flags, mallard_trace_from_new | mallard_trace_sized);
}

TEST(trace_reader, packs_a_record_as_in_the_golden_trace)
{
    auto const bytes = golden();
    mallard_trace_record const expected[] = {
        {1100, 0x7f0000001000, mallard_trace_pack(48, 4, mallard_trace_allocate, 0), 1, 50},
        {1200, 0, mallard_trace_pack(std::uint64_t{1} << 41, 3, mallard_trace_allocate, 0), 1, 70},
        {1300, 0x7f0000002000,
         mallard_trace_pack(4096, 12, mallard_trace_allocate, mallard_trace_dur_cut), 1,
         UINT32_MAX}};
    ASSERT_GE(bytes.size(), 64 + 32 * 7);
    EXPECT_EQ(std::memcmp(bytes.data() + 64 + 32 * 4, expected, sizeof expected), 0);
}

TEST(trace_reader, reads_every_complete_event_of_a_truncated_trace)
{
    auto const whole = golden();
    std::size_t events_before = 0;
    for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes) {
        trace_reader trace(std::span<const std::byte>(whole).first(bytes));
        std::size_t const events = events_of(trace).size();
        EXPECT_EQ(trace.is_readable(), bytes >= 64);
        EXPECT_STRNE(trace.remark(), "") << bytes;
        EXPECT_GE(events, events_before);
        events_before = events;
    }
}

TEST(trace_reader, rejects_an_unreadable_file_and_reports_why)
{
    struct change {
        std::size_t at;
        unsigned char to;
        const char* says;
    };
    for (change const c :
         {change{0, 'M', "not a trace"}, change{7, '\r', "not a trace"}, change{8, 1, "byte order"},
          change{12, 2, "version"}, change{16, 63, "contradicts"}, change{17, 255, "contradicts"},
          change{20, 31, "contradicts"}}) {
        auto bytes = golden();
        bytes[c.at] = std::byte{c.to};
        trace_reader trace(bytes);
        EXPECT_FALSE(trace.is_readable());
        EXPECT_NE(std::string(trace.remark()).find(c.says), std::string::npos) << trace.remark();
        EXPECT_FALSE(trace.next());
    }
}

TEST(trace_reader, survives_arbitrary_bytes)
{
    for (std::size_t seed = 1; seed <= 2000; ++seed) {
        seeded choose(seed);
        auto bytes = golden();
        for (std::size_t changes = 1 + choose(8); changes > 0; --changes)
            bytes[64 + choose(bytes.size() - 64)] = static_cast<std::byte>(choose(256));
        trace_reader trace(bytes);
        EXPECT_LE(events_of(trace).size(), bytes.size() / 32);
    }
}

} // namespace
