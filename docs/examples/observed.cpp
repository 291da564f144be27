// Observes events on slow paths as they happen. Reports them without allocating.
#include <mallard/adapt/counted.hpp>
#include <mallard/adapt/observed.hpp>
#include <mallard/arena.hpp>
#include <mallard/debug/report.hpp>
#include <mallard/multipool.hpp>
#include <mallard/pool.hpp>

#include <array>
#include <cassert>
#include <cstdio>

namespace {

struct growth_log {
    std::size_t* bytes;
    void grew(mallard::chunk c) noexcept { *bytes += c.bytes; }
    void failed(mallard::layout l) noexcept { std::printf("no %zu bytes\n", l.bytes); }
};

struct last_words {
    mallard::snapshot* last;
    void destroyed(const mallard::snapshot& s) noexcept { *last = s; }
};

void observe()
{
    std::size_t bytes = 0;
    using heap = mallard::observed<mallard::default_heap, growth_log>;
    heap source(growth_log{&bytes});
    mallard::pool<mallard::ref<heap>> nodes(64, 0, source);
    nodes.deallocate(nodes.allocate());
    assert(bytes == nodes.stats().bytes_taken);

    mallard::snapshot last; // what was not freed
    {
        mallard::observed<mallard::arena<>, last_words> scratch(last_words{&last});
        static_cast<void>(scratch.allocate({100, 1}));
    }
    assert(last.memory->bytes_live == 100);
}

void report()
{
    mallard::counted<mallard::multipool<>> orders;
    void* const block = orders.allocate({40, 8});

    std::array<char, 1024> room;
    mallard::snapshot const now = mallard::snapshot_of(orders); // counts and statistics
    std::string_view const text = mallard::report_text(room, "orders", now);
    std::fwrite(text.data(), 1, text.size(), stdout);

    mallard::written const json = mallard::report_json(room, "orders", now);
    assert(!json.is_cut() && json.text.starts_with(R"({"name":"orders","calls":{"alloc)"));

    std::array<char, 20> small;
    mallard::written const cut = mallard::report_json(small, "orders", now);
    assert(cut.text == R"({"name":"orders",...)" && cut.bytes_needed == json.text.size());

    orders.deallocate(block, {40, 8});
}

} // namespace

int main()
{
    observe();
    report();
}
