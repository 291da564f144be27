// Compiles the examples in the comments of the public headers.
#include <mallard/mallard.hpp>

#include <cassert>
#include <string>
#include <vector>

namespace {

struct enemy {
    int health = 0;
};
struct session {
    int touched = 0;
};
struct my_source {
    mallard::chunk try_take(mallard::layout l) noexcept;
    void give(mallard::chunk c) noexcept;
};
static_assert(mallard::chunk_source<my_source>);
static_assert(mallard::is_winkable<std::pmr::vector<int>, mallard::pmr::arena>);

constexpr mallard::slot_map_options wrapping{.wrapping = true};
constexpr mallard::shared_slot_map_options small{.bytes_max = 1 << 20};
constexpr mallard::checked_options with_calls{.redzone = 64, .frames = 8};
constexpr mallard::guarded_options one_in_a_thousand{.one_in = 1000};

[[maybe_unused]] constinit mallard::slot_map<enemy, mallard::key32, mallard::fixed<100>> timers;

[[maybe_unused]] void sources(std::span<std::byte> bytes)
{
    mallard::pages<mallard::pages_options{.guard = true, .reserve_bytes = 1 << 30}> source;
    mallard::pool<mallard::borrowed> in_bytes(64, 0, mallard::borrowed(bytes));
    mallard::multipool<mallard::buffer<4096>> in_itself;
    mallard::arena<> request;
    mallard::pool<mallard::ref<mallard::arena<>>> nodes(64, 0, request);
}

[[maybe_unused]] void arenas(std::span<std::byte> buffer)
{
    mallard::arena<mallard::default_heap, mallard::arena_options{.checks = mallard::check::on}> a;
    mallard::arena<> on_buffer(buffer);
    mallard::arena<mallard::null> on_buffer_alone(buffer);
    auto by_pages = [](std::size_t, std::size_t asked) noexcept { return asked + 4096; };
    mallard::arena<> scratch(by_pages);
    auto const before = scratch.mark();
    std::span<int> const zeros = scratch.make_array<int>(100);
    assert(zeros[99] == 0);
    scratch.rewind(before);
}

[[maybe_unused]] void slot_maps()
{
    mallard::slot_map<enemy, mallard::key32, mallard::reserved<1 << 30>, wrapping> enemies;
    mallard::key32 const first = enemies.insert({7});
    mallard::key32 const second = enemies.insert({8});
    [[maybe_unused]] auto const [a, b] = enemies.get_disjoint(first, second);
    enemies.retain([](auto, const enemy& e) { return e.health > 0; });
    std::optional<enemy> away = enemies.detach(first);
    enemies.reattach(first, std::move(*away));

    mallard::shared_slot_map<session, mallard::key64, small> sessions;
    mallard::key64 const id = sessions.insert({});
    sessions.with(id, [](session& s) { s.touched += 1; });

    mallard::sparse_secondary_map<mallard::key32, std::string> nicknames;
    nicknames.set(first, "duck");
}

[[maybe_unused]] void adaptors(std::span<std::byte> buffer)
{
    mallard::counted<mallard::arena<>> scratch(std::in_place, buffer);
    mallard::counted<mallard::multipool<>> memory;
    mallard::call_counts const before = memory.counts();
    assert(memory.counts().since(before).is_balanced());

    mallard::failing<mallard::multipool<>> fails({.first = 3});
    fails.rule().first = fails.calls(); // the next call fails

    char room[1024];
    mallard::snapshot const s = mallard::snapshot_of(memory);
    if (mallard::written const w = mallard::report_json(room, "orders", s); !w.is_cut())
        assert(!w.text.empty());
}

[[maybe_unused]] void debugging()
{
    mallard::checked<mallard::multipool<>, with_calls> orders("orders");
    mallard::checked<> printing({"orders", mallard::print_faults});
    mallard::guarded<mallard::multipool<>, one_in_a_thousand> sampled("orders");
}

[[maybe_unused]] void resources()
{
    static mallard::pmr::shared_multipool shared;
    mallard::pmr::multipool memory;
    mallard::pmr::pool nodes(64);
    std::pmr::vector<int> v(&memory);
    v.push_back(1);
}

[[maybe_unused]] void persistence()
{
    mallard::file_arena file;
    [[maybe_unused]] bool const opened =
        file.open("words.idx", {.access = mallard::file_access::read});
    if (auto const e = mallard::shared_memory::remove("orders"))
        assert(e.error != 0);
    mallard::trace_file trace("app.trace");
    [[maybe_unused]] mallard::trace_channel const orders = trace.channel("orders");
}

} // namespace
