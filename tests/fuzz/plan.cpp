// Fuzzes the reader of compiled plans. Makes a plan from numbers that are mostly in range, with a
// matching header and the right checksum. Then changes bytes anywhere, and cuts off the end. If the
// reader accepts the plan, the target reads every part, as the library does. All parts must lie in
// the file.
#include "../../src/plan/plan.hpp"
#include "../support/choices.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace {

using namespace mallard::plan;
using mallard::testing::recorded;

template <class T>
void put(std::vector<std::byte>& to, T const& value)
{
    auto const* const at = reinterpret_cast<std::byte const*>(&value);
    to.insert(to.end(), at, at + sizeof value);
}

/// Returns a number that is mostly below `end`.
std::uint32_t some(recorded& choose, std::uint32_t end)
{
    static constexpr std::uint32_t odd[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x40000041};
    if (choose(200) == 0)
        return odd[choose(std::size(odd))];
    return static_cast<std::uint32_t>(choose(end + 1));
}

mallard_plan_text some_text(recorded& choose, std::uint32_t bytes)
{
    std::uint32_t const at = some(choose, bytes);
    return {at, some(choose, at < bytes ? bytes - at : 0)};
}

std::uint32_t some_answer(recorded& choose, std::uint32_t rules, bool of_a_caller)
{
    switch (choose(of_a_caller ? 4 : 3)) {
    case 0:
        return mallard_plan_malloc;
    case 3:
        return mallard_plan_by_stack + 2 + some(choose, 62);
    default:
        return some(choose, rules - 1);
    }
}

void set_checksum(std::vector<std::byte>& file)
{
    std::uint64_t sum = 0;
    auto const add = [&](std::size_t begin, std::size_t end) {
        for (; begin + 8 <= end; begin += 8) {
            std::uint64_t word;
            std::memcpy(&word, file.data() + begin, 8);
            sum = mallard_replay_mix(sum, word);
        }
    };
    add(sizeof(mallard_plan_header), file.size());
    add(0, offsetof(mallard_plan_header, checksum));
    std::memcpy(file.data() + offsetof(mallard_plan_header, checksum), &sum, sizeof sum);
}

std::vector<std::byte> make_plan(recorded& choose)
{
    mallard_plan_header h{};
    unsigned char const magic[8] = {0x89, 'M', 'P', 'L', 'A', 'N', '\r', '\n'};
    std::memcpy(h.magic, magic, sizeof magic);
    h.byte_order = mallard_plan_byte_order;
    h.version = mallard_plan_version;
    h.modules = static_cast<std::uint32_t>(choose(4));
    h.rules = static_cast<std::uint32_t>(1 + choose(4));
    h.callers = h.modules == 0 ? 0 : static_cast<std::uint32_t>(choose(8));
    h.stacks = static_cast<std::uint32_t>(choose(4));
    h.frames = h.modules == 0 ? 0 : static_cast<std::uint32_t>(choose(8));
    h.ranges = h.modules == 0 ? 0 : static_cast<std::uint32_t>(choose(8));
    h.text_bytes = static_cast<std::uint32_t>(8 * choose(4));
    std::vector<std::byte> file;
    put(file, h);
    for (std::uint32_t i = 0; i < h.modules; ++i)
        put(file, mallard_plan_module{some_text(choose, h.text_bytes),
                                      some(choose, 32),
                                      some(choose, 1),
                                      choose(256),
                                      {}});
    for (std::uint32_t i = 0; i < h.rules; ++i)
        put(file, mallard_plan_rule{some_text(choose, h.text_bytes), 1 + some(choose, 3),
                                    1 + some(choose, mallard_plan_block_max - 1), choose(1000), 0});
    for (std::uint32_t i = 0; i < h.callers; ++i)
        put(file,
            mallard_plan_place{i * 100U, some(choose, 0), some_answer(choose, h.rules, true)});
    for (std::uint32_t i = 0; i < h.stacks; ++i) {
        std::uint32_t const first = some(choose, h.frames);
        put(file, mallard_plan_stack{first, some(choose, h.frames < first ? 0 : h.frames - first),
                                     some_answer(choose, h.rules, false), 0});
    }
    for (std::uint32_t i = 0; i < h.frames; ++i)
        put(file, mallard_plan_place{choose(1000), some(choose, h.modules - 1), 0});
    for (std::uint32_t i = 0; i < h.ranges; ++i)
        put(file, mallard_plan_range{i * 10U, i * 10U + 1 + choose(100), some(choose, 0),
                                     some(choose, h.rules - 1)});
    file.resize(file.size() + h.text_bytes, std::byte{'x'});
    return file;
}

void require(bool fine)
{
    if (!fine)
        std::abort();
}

/// Reads all parts of a plan that the library reads.
std::uint64_t use(plan const& p)
{
    std::uint64_t sum = 0;
    auto const add_text = [&](mallard_plan_text text) {
        for (char const c : p.text_of(text))
            sum += static_cast<unsigned char>(c);
    };
    auto const is_answer = [&](std::uint32_t answer) {
        return answer < p.rules.size() || answer == mallard_plan_malloc;
    };
    for (auto const& m : p.modules) {
        add_text(m.name);
        for (std::uint32_t i = 0; i < m.build_id_bytes; ++i)
            sum += m.build_id[i];
    }
    for (auto const& r : p.rules) {
        add_text(r.name);
        require(r.block_bytes >= 1 && r.block_bytes <= mallard_plan_block_max);
    }
    for (auto const& c : p.callers) {
        sum += p.modules[c.module].key;
        require(is_answer(c.answer) || (c.answer >= mallard_plan_by_stack + 2U &&
                                        c.answer <= mallard_plan_by_stack + 64U));
    }
    for (auto const& s : p.stacks) {
        require(is_answer(s.answer) && s.frames >= 1 && s.frames <= mallard_plan_frames_max);
        for (auto const& f : p.frames.subspan(s.first, s.frames))
            sum += f.address;
    }
    for (auto const& f : p.frames)
        sum += p.modules[f.module].key;
    for (auto const& r : p.ranges) {
        sum += p.modules[r.module].key + p.rules[r.rule].peak_bytes;
        require(r.begin < r.end);
    }
    return sum;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    recorded choose({data, bytes});
    std::vector<std::byte> file;
    if (choose(4) == 0) { // the input after its first byte is the file
        auto const rest = std::as_bytes(std::span(data, bytes).subspan(bytes == 0 ? 0 : 1));
        file.assign(rest.begin(), rest.end());
    } else {
        file = make_plan(choose);
    }
    if (choose(2) == 0 && !file.empty())
        for (std::size_t i = choose(4); i > 0; --i)
            file[choose(file.size())] = static_cast<std::byte>(choose(256));
    if (choose(4) != 0 && file.size() >= sizeof(mallard_plan_header))
        set_checksum(file);
    if (choose(8) == 0)
        file.resize(choose(file.size() + 1));
    // The block has exactly the size of the file, so that AddressSanitizer detects a read past the
    // end.
    auto const exact = std::make_unique<std::byte[]>(file.size());
    std::copy(file.begin(), file.end(), exact.get());
    plan p;
    [[maybe_unused]] static volatile std::uint64_t sum;
    if (read_plan({exact.get(), file.size()}, p) == nullptr)
        sum = use(p);
    return 0;
}
