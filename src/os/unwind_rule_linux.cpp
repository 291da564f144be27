// Reads the unwind tables of x86-64. .eh_frame_hdr is a search table. .eh_frame contains FDEs and
// CIEs. An FDE describes one function, and a CIE the properties that many FDEs have in common. FDEs
// and CIEs contain programs that compute the rules for each code address. The DWARF standard,
// section 6.4, and the Linux Standard Base specify these programs. This file uses only the rules
// for the CFA, rbp and the return address.
#include "processor.hpp"
#include "unwind_rule.hpp"

#include <cstring>

namespace mallard::os {
namespace {

constexpr unsigned rbp = 6;
constexpr unsigned rsp = 7;
constexpr unsigned return_address = 16;

/// Reads numbers in several encodings from a range of bytes. Returns each number as 64 bits. Signed
/// numbers are sign-extended. After a failure, the range is empty, and every further number is 0.
class table_reader {
public:
    table_reader() = default;
    table_reader(std::span<const std::byte> range, std::uintptr_t at) noexcept
    {
        auto const offset = at - reinterpret_cast<std::uintptr_t>(range.data());
        if (offset < range.size())
            rest_ = range.subspan(offset);
    }

    bool empty() const noexcept { return rest_.empty(); }
    bool failed() const noexcept { return failed_; }
    std::size_t bytes() const noexcept { return rest_.size(); }
    std::uintptr_t address() const noexcept
    {
        return reinterpret_cast<std::uintptr_t>(rest_.data());
    }

    std::uint64_t fail() noexcept
    {
        rest_ = {};
        failed_ = true;
        return 0;
    }

    /// Removes the next `bytes` bytes from the range, and returns them as a separate range.
    table_reader part(std::uint64_t bytes) noexcept
    {
        table_reader first;
        if (bytes > rest_.size()) {
            fail();
        } else {
            first.rest_ = rest_.first(bytes);
            rest_ = rest_.subspan(bytes);
        }
        return first;
    }

    template <class T>
    std::uint64_t get() noexcept
    {
        T value{};
        if (table_reader const number = part(sizeof(T)); !number.empty())
            std::memcpy(&value, number.rest_.data(), sizeof(T));
        return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
    }

    std::uint64_t uleb() noexcept { return leb(false); }
    std::uint64_t sleb() noexcept { return leb(true); }

    /// Reads a pointer in a DW_EH_PE encoding. `base` is the base for encodings that are relative
    /// to data.
    std::uintptr_t pointer(unsigned encoding, std::uintptr_t base = 0) noexcept
    {
        std::uintptr_t const here = address();
        std::uintptr_t const number = number_of_pointer(encoding & 0xf);
        switch (encoding & 0xf0) {
        case 0x00: // absolute
            return number;
        case 0x10: // relative to its own address
            return number + here;
        case 0x30:
            return number + base;
        default: // indirect, or relative to other sections
            return fail();
        }
    }

private:
    std::uint64_t leb(bool is_signed) noexcept
    {
        std::uint64_t value = 0;
        std::uint64_t byte = 0;
        unsigned shift = 0;
        do {
            byte = get<std::uint8_t>();
            value |= shift < 64 ? (byte & 0x7f) << shift : 0;
            shift += 7;
        } while ((byte & 0x80) != 0);
        if (is_signed && (byte & 0x40) != 0 && shift < 64)
            value |= ~std::uint64_t{0} << shift;
        return value;
    }

    std::uint64_t number_of_pointer(unsigned encoding) noexcept
    {
        switch (encoding) {
        case 0x0:
        case 0x4:
        case 0xc:
            return get<std::uint64_t>();
        case 0x1:
            return uleb();
        case 0x2:
            return get<std::uint16_t>();
        case 0x3:
            return get<std::uint32_t>();
        case 0x9:
            return sleb();
        case 0xa:
            return get<std::int16_t>();
        case 0xb:
            return get<std::int32_t>();
        default:
            return fail();
        }
    }

    std::span<const std::byte> rest_;
    bool failed_ = false;
};

/// A description of a value, or of the place where a register is saved.
struct place {
    enum bases : std::uint8_t { unknown, unchanged, undefined, number, sp, bp, cfa, word_at_bp };

    bases base = unknown;
    std::uint64_t offset = 0;
    bool operator==(place const&) const = default;
};

/// Applies a DWARF operator to two operands.
place apply(std::uint64_t op, place a, place b) noexcept
{
    if (op == 0x22 && b.base == place::number) // plus
        return {a.base, a.offset + b.offset};
    if (a.base != place::number || b.base != place::number)
        return {};
    switch (op) {
    case 0x1a: // and
        return {place::number, a.offset & b.offset};
    case 0x24: // shl
        return {place::number, b.offset < 64 ? a.offset << b.offset : 0};
    case 0x2a: // ge
        return {place::number, std::uint64_t{static_cast<std::int64_t>(a.offset) >=
                                             static_cast<std::int64_t>(b.offset)}};
    default:
        return {};
    }
}

/// Evaluates a DWARF expression for the code at `code`. Supports two expressions. The first is rsp
/// + 8 + ((rip & 15) >= 11) * 8, which linkers write for the PLT. The second is the word at rbp -
/// 8, which compilers write for a function that aligns its stack.
place evaluate(table_reader from, std::uintptr_t code) noexcept
{
    place stack[8];
    unsigned depth = 0;
    while (!from.empty()) {
        std::uint64_t const op = from.get<std::uint8_t>();
        place value;
        if (op >= 0x30 && op <= 0x4f) { // lit0 to lit31
            value = {place::number, op - 0x30};
        } else if (op >= 0x70 && op <= 0x8f) { // breg0 to breg31
            std::uint64_t const offset = from.sleb();
            if (op == 0x70 + return_address)
                value = {place::number, code + offset};
            else if (op == 0x70 + rsp || op == 0x70 + rbp)
                value = {op == 0x70 + rsp ? place::sp : place::bp, offset};
        } else if (op == 0x06 && depth > 0 && stack[depth - 1].base == place::bp) { // deref
            depth -= 1;
            value = {place::word_at_bp, stack[depth].offset};
        } else if (depth >= 2) {
            depth -= 2;
            value = apply(op, stack[depth], stack[depth + 1]);
        }
        if (value.base == place::unknown || depth == std::size(stack))
            return {};
        stack[depth] = value;
        depth += 1;
    }
    return depth == 1 && !from.failed() ? stack[0] : place{};
}

/// The rules for one code address. The DWARF standard calls them a row of the table that a program
/// computes.
struct table_row {
    place cfa;
    place bp{place::unchanged};
    place pc{place::unchanged};
    place others;

    place& of(std::uint64_t reg) noexcept
    {
        return reg == rbp ? bp : reg == return_address ? pc : others;
    }

    unwind_rule rule() const noexcept
    {
        if (pc.base == place::undefined)
            return unwind_rule(unwind_rule::outermost);
        if (pc != place{place::cfa, std::uint64_t(-8)})
            return {};
        if (cfa.base == place::word_at_bp && bp == place{place::bp, 0})
            return unwind_rule::of(unwind_rule::realigned, cfa.offset, 0);
        bool const is_saved = bp.base == place::cfa;
        if ((!is_saved && bp.base != place::unchanged) ||
            (cfa.base != place::sp && cfa.base != place::bp))
            return {};
        return unwind_rule::of(cfa.base == place::sp ? unwind_rule::by_sp : unwind_rule::by_bp,
                               cfa.offset, is_saved ? bp.offset : 0);
    }
};

/// Runs the program of a CIE, and then the program of an FDE.
struct table_program {
    std::uint64_t code_factor;
    std::uint64_t data_factor;
    unsigned encoding; // how code addresses are encoded

    std::uintptr_t code = UINTPTR_MAX; // the program stops after the row of this address
    std::uintptr_t at = 0;
    table_reader program{};
    table_row row{};
    table_row first{}; // the row that the CIE defines
    table_row remembered[8]{};
    unsigned remembered_count = 0;

    /// Runs a program. Returns false if the program is corrupt.
    bool run(table_reader from) noexcept
    {
        program = from;
        while (!program.empty())
            execute(static_cast<unsigned>(program.get<std::uint8_t>()));
        return !program.failed();
    }

    void advance(std::uintptr_t to) noexcept
    {
        at = to;
        if (at > code && !program.failed())
            program = {};
    }

    void set_cfa(std::uint64_t reg, std::uint64_t offset) noexcept
    {
        auto const base = reg == rsp ? place::sp : reg == rbp ? place::bp : place::unknown;
        row.cfa = {base, offset};
    }

    void remember() noexcept
    {
        if (remembered_count == std::size(remembered))
            program.fail();
        else
            remembered[remembered_count++] = row;
    }

    void recall() noexcept
    {
        if (remembered_count == 0)
            program.fail();
        else
            row = remembered[--remembered_count];
    }

    void execute(unsigned instruction) noexcept
    {
        auto const number = [&] { return program.uleb(); };
        auto const factored = [&] { return program.uleb() * data_factor; };
        auto const signed_factored = [&] { return program.sleb() * data_factor; };
        auto const expression = [&] { return evaluate(program.part(program.uleb()), code); };

        // Three instructions contain an operand in their low bits.
        std::uint64_t reg = instruction & 0x3f;
        switch (instruction < 0x40 ? instruction : instruction & 0xc0) {
        case 0x40: // advance_loc
            return advance(at + reg * code_factor);
        case 0x80: // offset
            row.of(reg) = {place::cfa, factored()};
            return;
        case 0xc0: // restore
            row.of(reg) = first.of(reg);
            return;
        case 0x00: // nop
            return;
        case 0x01: // set_loc
            return advance(program.pointer(encoding));
        case 0x02: // advance_loc1
            return advance(at + program.get<std::uint8_t>() * code_factor);
        case 0x03: // advance_loc2
            return advance(at + program.get<std::uint16_t>() * code_factor);
        case 0x04: // advance_loc4
            return advance(at + program.get<std::uint32_t>() * code_factor);
        case 0x05: // offset_extended
            reg = number();
            row.of(reg) = {place::cfa, factored()};
            return;
        case 0x06: // restore_extended
            reg = number();
            row.of(reg) = first.of(reg);
            return;
        case 0x07: // undefined
            row.of(number()) = {place::undefined};
            return;
        case 0x08: // same_value
            row.of(number()) = {place::unchanged};
            return;
        case 0x0a: // remember_state
            return remember();
        case 0x0b: // restore_state
            return recall();
        case 0x0c: // def_cfa
            reg = number();
            return set_cfa(reg, number());
        case 0x0d: // def_cfa_register
            return set_cfa(number(), row.cfa.offset);
        case 0x0e: // def_cfa_offset
            row.cfa.offset = number();
            return;
        case 0x0f: // def_cfa_expression
            row.cfa = expression();
            return;
        case 0x10: // expression
            reg = number();
            row.of(reg) = expression();
            return;
        case 0x11: // offset_extended_sf
            reg = number();
            row.of(reg) = {place::cfa, signed_factored()};
            return;
        case 0x12: // def_cfa_sf
            reg = number();
            return set_cfa(reg, signed_factored());
        case 0x13: // def_cfa_offset_sf
            row.cfa.offset = signed_factored();
            return;
        case 0x09: // register
        case 0x14: // val_offset
        case 0x15: // val_offset_sf
            row.of(number()) = {};
            program.uleb();
            return;
        case 0x16: // val_expression
            row.of(number()) = {};
            program.part(number());
            return;
        case 0x2e: // GNU_args_size
            program.uleb();
            return;
        default:
            program.fail();
        }
    }
};

/// Returns the bytes of a CIE or an FDE after its length field. Lengths of 64 bits are not
/// supported, because no compiler writes them.
table_reader entry_at(std::span<const std::byte> readable, std::uintptr_t at) noexcept
{
    table_reader all(readable, at);
    return all.part(all.get<std::uint32_t>());
}

} // namespace

unwind_rule read_rule(std::span<const std::byte> readable, std::uintptr_t entry,
                      std::uintptr_t code) noexcept
{
    table_reader fde = entry_at(readable, entry);
    std::uintptr_t const here = fde.address();
    table_reader cie = entry_at(readable, here - fde.get<std::uint32_t>());
    std::uint64_t const mark = cie.get<std::uint32_t>(); // an FDE has the distance to its CIE here
    std::uint64_t const version = cie.get<std::uint8_t>();
    char augmentation[8] = {};
    for (char& letter : augmentation)
        if (letter = static_cast<char>(cie.get<std::uint8_t>()); letter == 0)
            break;
    table_program program{cie.uleb(), cie.sleb(), 0};
    std::uint64_t const column = version == 1 ? cie.get<std::uint8_t>() : cie.uleb();
    if (cie.failed() || mark != 0 || column != return_address)
        return {};

    bool const has_data = augmentation[0] == 'z';
    table_reader data = has_data ? cie.part(cie.uleb()) : table_reader{};
    for (char const letter : std::span(augmentation).subspan(has_data ? 1 : 0)) {
        if (letter == 0)
            break;
        if (letter == 'R')
            program.encoding = static_cast<unsigned>(data.get<std::uint8_t>());
        else if (letter == 'P') // skip the personality routine
            data.pointer(data.get<std::uint8_t>() & 0xf);
        else if (letter == 'L')
            data.get<std::uint8_t>();
        else if (letter == 'S')
            return unwind_rule(unwind_rule::signal);
        else
            return {};
    }

    std::uintptr_t const start = fde.pointer(program.encoding);
    std::uintptr_t const bytes = fde.pointer(program.encoding & 0xf);
    if (has_data)
        fde.part(fde.uleb());
    if (fde.failed() || data.failed())
        return {};
    if (code - start >= bytes)
        return unwind_rule(unwind_rule::no_function);
    if (!program.run(cie))
        return {};
    program.first = program.row;
    program.at = start;
    program.code = code;
    return program.run(fde) ? program.row.rule() : unwind_rule{};
}

table_entry find_entry(std::span<const std::byte> readable, std::uintptr_t header,
                       std::uintptr_t code) noexcept
{
    table_reader table(readable, header);
    std::uint64_t const encodings = table.get<std::uint32_t>();
    table.pointer(encodings >> 8 & 0xff, header);
    std::uint64_t const count = table.pointer(encodings >> 16 & 0xff, header);
    // Accept only version 1 with pairs of 32-bit offsets from `header`. No linker writes anything
    // else.
    if ((encodings & 0xff) != 1 || encodings >> 24 != 0x3b || count > table.bytes() / 8)
        return {};

    // Word 0 of pair `i` is the start of a function, word 1 its FDE.
    auto const offset = [&](std::uint64_t i, std::uint64_t word) {
        table_reader pairs = table;
        pairs.part(8 * i + 4 * word);
        return static_cast<std::intptr_t>(pairs.get<std::int32_t>());
    };
    auto const of_code = static_cast<std::intptr_t>(code - header);
    std::uint64_t below = 0; // number of functions that begin at or before `code`
    for (std::uint64_t end = count; below < end;) {
        std::uint64_t const middle = below + (end - below) / 2;
        if (offset(middle, 0) <= of_code)
            below = middle + 1;
        else
            end = middle;
    }
    if (below == 0)
        return {};
    auto const at = [&](std::uint64_t word) {
        return header + static_cast<std::uintptr_t>(offset(below - 1, word));
    };
    return {at(0), at(1)};
}

} // namespace mallard::os
