// Fuzzes the reader of unwind tables. Makes a table of one function, whose CIE and FDE contain
// programs from the input. Then changes bytes anywhere in the table, and cuts off its end. The
// reader must not read outside of the table, whatever the table contains.
#include "../../src/os/unwind_rule.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

namespace {

using namespace mallard::os;

constexpr std::size_t header_bytes = 20;
constexpr std::int32_t code_offset = 1 << 20; // distance of the code from the header
constexpr std::int32_t code_bytes = 256;

class table {
public:
    template <class T>
    void put(T value)
    {
        auto const* const begin = reinterpret_cast<std::uint8_t const*>(&value);
        bytes.insert(bytes.end(), begin, begin + sizeof(value));
    }
    void put(std::span<const std::uint8_t> program)
    {
        bytes.insert(bytes.end(), program.begin(), program.end());
    }

    std::vector<std::uint8_t> bytes;
};

/// Makes a well-formed table. Only the two programs may be malformed.
std::vector<std::uint8_t> make_table(std::span<const std::uint8_t> of_cie,
                                     std::span<const std::uint8_t> of_fde)
{
    table t;
    t.put(std::uint32_t{0x3b031b01}); // version 1; pcrel sdata4, udata4, datarel sdata4
    t.put(std::int32_t{0});           // .eh_frame: not read
    t.put(std::uint32_t{1});          // number of functions
    auto const cie_bytes = static_cast<std::uint32_t>(13 + of_cie.size());
    auto const fde = static_cast<std::int32_t>(header_bytes + 4 + cie_bytes);
    t.put(code_offset);
    t.put(fde);

    t.put(cie_bytes);
    t.put(std::uint32_t{0});                              // a CIE
    t.put(std::to_array<std::uint8_t>({1, 'z', 'R', 0})); // version, augmentation
    t.put(std::to_array<std::uint8_t>({1, 0x78, 16, 1})); // factors 1 and -8, column, bytes
    t.put(std::uint8_t{0x1b});                            // pcrel sdata4
    t.put(of_cie);

    t.put(static_cast<std::uint32_t>(13 + of_fde.size()));
    t.put(static_cast<std::uint32_t>(fde + 4 - static_cast<std::int32_t>(header_bytes)));
    t.put(code_offset - (fde + 8)); // address of the function, relative to this field
    t.put(code_bytes);
    t.put(std::uint8_t{0});
    t.put(of_fde);
    return t.bytes;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes)
{
    if (bytes < 8)
        return 0;
    std::span const input(data, bytes);
    std::size_t const changes = input[0] % 4;
    std::size_t const changes_end = 4 + 3 * changes;
    if (bytes < changes_end)
        return 0;
    auto const programs = input.subspan(changes_end);
    std::size_t const cut = std::min<std::size_t>(input[1] % 32, programs.size());
    auto made = make_table(programs.first(cut), programs.subspan(cut));
    for (std::size_t i = 0; i < changes; ++i) {
        auto const change = input.subspan(4 + 3 * i, 3);
        made[(change[0] | std::size_t{change[1]} << 8) % made.size()] = change[2];
    }

    // The table gets a separate block, so that AddressSanitizer detects each read outside of the
    // table.
    std::size_t const size = made.size() - std::min<std::size_t>(input[2] / 64, made.size() - 4);
    auto const block = std::make_unique<std::byte[]>(size);
    std::memcpy(block.get(), made.data(), size);
    std::span<const std::byte> const readable(block.get(), size);
    auto const header = reinterpret_cast<std::uintptr_t>(block.get());
    auto const code = header + code_offset;
    for (std::uintptr_t at : {code, code + input[3], code + code_bytes, code - 1}) {
        unwind_rule const rule = read_rule(readable, find_entry(readable, header, at).fde, at);
        bool const is_known =
            rule.kind() <= unwind_rule::realigned || rule.kind() == unwind_rule::no_function;
        if (!is_known || rule.cfa() % 8 != 0 || rule.saved_bp() > 504)
            __builtin_trap();
    }
    return 0;
}
