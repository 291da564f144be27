// Reads the unwind tables of x86-64: .eh_frame_hdr, a search table, and .eh_frame, which describes
// functions by a CIE (common part) and an FDE (one function). Both contain small programs that
// compute the rules of each address: see the DWARF standard, section 6.4, and the Linux Standard
// Base. Only rules for the CFA, rbp and the return address matter here.
#include "unwind_rule.hpp"

#include <cstring>

namespace mallard::os {
namespace {

constexpr std::uint64_t rbp = 6;
constexpr std::uint64_t rsp = 7;
constexpr std::uint64_t return_address = 16;

/// Reads numbers from a range of bytes. After an attempt to read past the end, the reader is empty
/// and all numbers are 0.
class table_reader {
public:
    table_reader() = default;
    table_reader(std::span<const std::byte> range, std::uintptr_t at) noexcept
    {
        auto const begin = reinterpret_cast<std::uintptr_t>(range.data());
        if (at - begin < range.size())
            rest_ = range.subspan(at - begin);
    }

    bool empty() const noexcept { return rest_.empty(); }
    bool failed() const noexcept { return failed_; }
    std::size_t bytes() const noexcept { return rest_.size(); }
    std::uintptr_t address() const noexcept
    {
        return reinterpret_cast<std::uintptr_t>(rest_.data());
    }

    template <class T>
    T get() noexcept
    {
        T value{};
        if (skip(sizeof(T)))
            std::memcpy(&value, rest_.data() - sizeof(T), sizeof(T));
        return value;
    }

    std::uint64_t uleb() noexcept { return leb().value; }

    std::int64_t sleb() noexcept
    {
        leb_number const number = leb();
        std::uint64_t const sign = number.bits == 0 ? 0 : std::uint64_t{1} << (number.bits - 1);
        return static_cast<std::int64_t>((number.value ^ sign) - sign);
    }

    /// A pointer in one of the encodings DW_EH_PE. `base` is that of encodings relative to data.
    std::uintptr_t pointer(unsigned encoding, std::uintptr_t base = 0) noexcept
    {
        std::uintptr_t const here = address();
        std::uintptr_t const value = number(encoding & 0xf);
        switch (encoding & 0xf0) {
        case 0x00: // absolute
            return value;
        case 0x10: // relative to its own address
            return value + here;
        case 0x30: // relative to data
            return value + base;
        default: // relative to other sections, or indirect
            return fail();
        }
    }

    std::uintptr_t number(unsigned encoding) noexcept
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
            return static_cast<std::uintptr_t>(sleb());
        case 0xa:
            return static_cast<std::uintptr_t>(std::intptr_t{get<std::int16_t>()});
        case 0xb:
            return static_cast<std::uintptr_t>(std::intptr_t{get<std::int32_t>()});
        default:
            return fail();
        }
    }

    bool skip(std::uint64_t bytes) noexcept
    {
        if (bytes > rest_.size()) {
            fail();
            return false;
        }
        rest_ = rest_.subspan(bytes);
        return true;
    }

    /// The next bytes as a range of their own.
    table_reader part(std::uint64_t bytes) noexcept
    {
        table_reader first;
        if (skip(bytes))
            first.rest_ = {rest_.data() - bytes, bytes};
        return first;
    }

private:
    struct leb_number {
        std::uint64_t value;
        unsigned bits; // 0: as many as the value has
    };

    leb_number leb() noexcept
    {
        std::uint64_t value = 0;
        for (unsigned shift = 0;; shift += 7) {
            auto const byte = get<std::uint8_t>();
            if (shift < 64)
                value |= std::uint64_t{byte & 0x7fu} << shift;
            if ((byte & 0x80) == 0)
                return {value, shift + 7 < 64 ? shift + 7 : 0};
        }
    }

    std::uintptr_t fail() noexcept
    {
        rest_ = {};
        failed_ = true;
        return 0;
    }

    std::span<const std::byte> rest_;
    bool failed_ = false;
};

/// Where a value is: an offset from a register, or the word there.
struct place {
    enum bases : std::uint8_t { number, at_sp, at_bp, word_at_bp, unknown } base = unknown;
    std::int64_t offset = 0;
};

std::int64_t product(std::uint64_t a, std::int64_t b) noexcept
{
    return static_cast<std::int64_t>(a * static_cast<std::uint64_t>(b));
}

/// Applies an operator with two operands. One of them may be relative to a register if the operator
/// is `plus`.
place apply(unsigned op, place a, place b) noexcept
{
    auto const x = static_cast<std::uint64_t>(a.offset);
    auto const y = static_cast<std::uint64_t>(b.offset);
    if (op == 0x22 && (a.base == place::number || b.base == place::number)) // plus
        return {a.base == place::number ? b.base : a.base, static_cast<std::int64_t>(x + y)};
    if (a.base != place::number || b.base != place::number)
        return {};
    switch (op) {
    case 0x1a: // and
        return {place::number, static_cast<std::int64_t>(x & y)};
    case 0x24: // shl
        return {place::number, static_cast<std::int64_t>(y < 64 ? x << y : 0)};
    case 0x2a: // ge
        return {place::number, a.offset >= b.offset ? 1 : 0};
    default:
        return {};
    }
}

/// Evaluates an expression of DWARF for code at `code`. Knows what linkers write for the PLT,
/// rsp + 8 + ((rip & 15) >= 11) * 8, and compilers for functions that align their stack,
/// the word at rbp - 8.
place evaluate(table_reader from, std::uintptr_t code) noexcept
{
    place stack[8];
    unsigned depth = 0;
    while (!from.empty()) {
        auto const op = from.get<std::uint8_t>();
        place value;
        if (op >= 0x30 && op <= 0x4f) { // lit0 to lit31
            value = {place::number, op - 0x30};
        } else if (op >= 0x70 && op <= 0x8f) { // breg0 to breg31
            std::int64_t const offset = from.sleb();
            if (op == 0x70 + return_address)
                value = {place::number, static_cast<std::int64_t>(code) + offset};
            else if (op == 0x70 + rsp || op == 0x70 + rbp)
                value = {op == 0x70 + rsp ? place::at_sp : place::at_bp, offset};
        } else if (op == 0x06 && depth > 0 && stack[depth - 1].base == place::at_bp) { // deref
            depth -= 1;
            value = {place::word_at_bp, stack[depth].offset};
        } else if (depth >= 2) {
            depth -= 2;
            value = apply(op, stack[depth], stack[depth + 1]);
        }
        if (value.base == place::unknown || depth == 8)
            return {};
        stack[depth] = value;
        depth += 1;
    }
    return depth == 1 && !from.failed() ? stack[0] : place{};
}

/// What a program has computed so far: a row of the table that it stands for.
struct table_row {
    enum saved_bp : std::uint8_t { unchanged, below_cfa, at_bp, lost };

    place cfa;
    saved_bp bp = unchanged;
    std::int64_t bp_offset = 0;
    bool has_return_address = true;
    bool return_address_is_moved = false;
};

/// A program of a CIE or an FDE.
class table_program {
public:
    table_program(std::uint64_t code_factor, std::int64_t data_factor, unsigned encoding) noexcept
        : code_factor_(code_factor), data_factor_(data_factor), encoding_(encoding)
    {
    }

    /// Runs `program`, which describes code from `start` on, up to the row of `code`. False if the
    /// program is damaged.
    bool run(table_reader program, std::uintptr_t start, std::uintptr_t code) noexcept
    {
        program_ = program;
        at_ = start;
        code_ = code;
        while (!program_.empty() && at_ <= code_)
            if (!execute(program_.get<std::uint8_t>()))
                return false;
        return !program_.failed();
    }

    /// Ends the program of the CIE.
    void keep_first_row() noexcept { first_ = before_ = row_; }

    /// The row of `code`.
    table_row const& row() const noexcept { return at_ <= code_ ? row_ : before_; }

private:
    // All instructions before an advance beyond `code_` are executed. Then the row is complete.
    bool advance(std::uintptr_t at) noexcept
    {
        before_ = row_;
        at_ = at;
        return true;
    }

    bool advance_by(std::uint64_t units) noexcept { return advance(at_ + units * code_factor_); }

    bool offset(std::uint64_t reg, std::int64_t value) noexcept
    {
        if (reg == rbp) {
            row_.bp = table_row::below_cfa;
            row_.bp_offset = value;
        } else if (reg == return_address) {
            row_.return_address_is_moved = value != -8;
        }
        return true;
    }

    bool restore(std::uint64_t reg) noexcept
    {
        if (reg == rbp) {
            row_.bp = first_.bp;
            row_.bp_offset = first_.bp_offset;
        } else if (reg == return_address) {
            row_.has_return_address = first_.has_return_address;
            row_.return_address_is_moved = first_.return_address_is_moved;
        }
        return true;
    }

    bool lose(std::uint64_t reg) noexcept
    {
        if (reg == rbp)
            row_.bp = table_row::lost;
        else if (reg == return_address)
            row_.return_address_is_moved = true;
        return true;
    }

    bool same(std::uint64_t reg) noexcept
    {
        if (reg == rbp)
            row_.bp = table_row::unchanged;
        return true;
    }

    bool saved_at(std::uint64_t reg, place where) noexcept
    {
        lose(reg);
        if (reg == rbp && where.base == place::at_bp && where.offset == 0)
            row_.bp = table_row::at_bp;
        return true;
    }

    bool cfa(std::uint64_t reg, std::int64_t value) noexcept
    {
        row_.cfa = {reg == rsp ? place::at_sp : reg == rbp ? place::at_bp : place::unknown, value};
        return true;
    }

    bool cfa_offset(std::int64_t value) noexcept
    {
        row_.cfa.offset = value;
        return true;
    }

    bool cfa_register(std::uint64_t reg) noexcept { return cfa(reg, row_.cfa.offset); }

    bool remember() noexcept
    {
        if (remembered_ == sizeof(stack_) / sizeof(stack_[0]))
            return false;
        stack_[remembered_] = row_;
        remembered_ += 1;
        return true;
    }

    bool recall() noexcept
    {
        if (remembered_ == 0)
            return false;
        remembered_ -= 1;
        row_ = stack_[remembered_];
        return true;
    }

    bool execute(unsigned instruction) noexcept
    {
        unsigned const operand = instruction & 0x3f;
        switch (instruction & 0xc0) {
        case 0x40: // advance_loc
            return advance_by(operand);
        case 0x80: // offset
            return offset(operand, product(program_.uleb(), data_factor_));
        case 0xc0: // restore
            return restore(operand);
        default:
            return execute_extended(instruction);
        }
    }

    bool execute_extended(unsigned instruction) noexcept
    {
        // Operands are read from left to right.
        auto const number = [&] { return program_.uleb(); };
        auto const factored = [&] { return product(program_.uleb(), data_factor_); };
        auto const factored_signed = [&] {
            return product(static_cast<std::uint64_t>(program_.sleb()), data_factor_);
        };
        auto const expression = [&] { return evaluate(program_.part(program_.uleb()), code_); };
        std::uint64_t reg = 0;
        switch (instruction) {
        case 0x00: // nop
            return true;
        case 0x01: // set_loc
            return advance(program_.pointer(encoding_));
        case 0x02: // advance_loc1
            return advance_by(program_.get<std::uint8_t>());
        case 0x03: // advance_loc2
            return advance_by(program_.get<std::uint16_t>());
        case 0x04: // advance_loc4
            return advance_by(program_.get<std::uint32_t>());
        case 0x05: // offset_extended
            reg = number();
            return offset(reg, factored());
        case 0x06: // restore_extended
            return restore(number());
        case 0x07: // undefined
            reg = number();
            if (reg == return_address)
                row_.has_return_address = false;
            return true;
        case 0x08: // same_value
            return same(number());
        case 0x09: // register
            reg = number();
            number();
            return lose(reg);
        case 0x0a: // remember_state
            return remember();
        case 0x0b: // restore_state
            return recall();
        case 0x0c: // def_cfa
            reg = number();
            return cfa(reg, static_cast<std::int64_t>(number()));
        case 0x0d: // def_cfa_register
            return cfa_register(number());
        case 0x0e: // def_cfa_offset
            return cfa_offset(static_cast<std::int64_t>(number()));
        case 0x0f: // def_cfa_expression
            row_.cfa = expression();
            return true;
        case 0x10: // expression
            reg = number();
            return saved_at(reg, expression());
        case 0x11: // offset_extended_sf
            reg = number();
            return offset(reg, factored_signed());
        case 0x12: // def_cfa_sf
            reg = number();
            return cfa(reg, factored_signed());
        case 0x13: // def_cfa_offset_sf
            return cfa_offset(factored_signed());
        case 0x14: // val_offset
        case 0x15: // val_offset_sf
            reg = number();
            number();
            return lose(reg);
        case 0x16: // val_expression
            reg = number();
            program_.skip(number());
            return lose(reg);
        case 0x2e: // GNU_args_size
            number();
            return true;
        case 0x2f: // GNU_negative_offset_extended
            reg = number();
            return offset(reg, -factored());
        default:
            return false;
        }
    }

    std::uint64_t code_factor_;
    std::int64_t data_factor_;
    unsigned encoding_;
    table_reader program_;
    std::uintptr_t at_ = 0;
    std::uintptr_t code_ = 0;
    table_row row_;
    table_row before_; // the row before the last advance
    table_row first_;
    table_row stack_[8];
    unsigned remembered_ = 0;
};

unwind_rule rule_of(table_row const& row) noexcept
{
    if (!row.has_return_address)
        return unwind_rule(unwind_rule::outermost);
    if (row.return_address_is_moved || row.bp == table_row::lost)
        return {};
    if (row.cfa.base == place::word_at_bp && row.bp == table_row::at_bp)
        return unwind_rule::of(unwind_rule::realigned, row.cfa.offset, 0);
    if (row.bp == table_row::at_bp ||
        (row.cfa.base != place::at_sp && row.cfa.base != place::at_bp))
        return {};
    return unwind_rule::of(row.cfa.base == place::at_sp ? unwind_rule::by_sp : unwind_rule::by_bp,
                           row.cfa.offset, row.bp == table_row::below_cfa ? row.bp_offset : 0);
}

/// A CIE or an FDE, after its length.
table_reader entry_at(std::span<const std::byte> readable, std::uintptr_t at) noexcept
{
    table_reader all(readable, at);
    auto const bytes = all.get<std::uint32_t>();
    return bytes == 0xffffffff ? table_reader{} : all.part(bytes); // no 64-bit form: never written
}

/// Reads an FDE.
unwind_rule rule_in(std::span<const std::byte> readable, std::uintptr_t at,
                    std::uintptr_t code) noexcept
{
    table_reader fde = entry_at(readable, at);
    std::uintptr_t const back = fde.address();
    table_reader cie = entry_at(readable, back - fde.get<std::uint32_t>());
    if (fde.failed() || cie.get<std::uint32_t>() != 0)
        return {};
    auto const version = cie.get<std::uint8_t>();
    char augmentation[8] = {};
    for (char& letter : augmentation) {
        letter = cie.get<char>();
        if (letter == 0)
            break;
    }
    std::uint64_t const code_factor = cie.uleb();
    std::int64_t const data_factor = cie.sleb();
    std::uint64_t const column = version == 1 ? cie.get<std::uint8_t>() : cie.uleb();
    if (cie.failed() || augmentation[7] != 0 || column != return_address)
        return {};

    unsigned encoding = 0;
    if (augmentation[0] == 'z') {
        table_reader data = cie.part(cie.uleb());
        for (char const* letter = augmentation + 1; *letter != 0; ++letter) {
            if (*letter == 'R')
                encoding = data.get<std::uint8_t>();
            else if (*letter == 'L')
                data.skip(1);
            else if (*letter == 'P') // read as an offset, since its target is not needed
                data.number(data.get<std::uint8_t>() & 0xf);
            else if (*letter == 'S')
                return unwind_rule(unwind_rule::signal);
            else
                return {};
        }
        if (data.failed())
            return {};
    } else if (augmentation[0] != 0) {
        return {};
    }

    std::uintptr_t const start = fde.pointer(encoding);
    std::uintptr_t const bytes = fde.number(encoding & 0xf);
    if (augmentation[0] == 'z')
        fde.skip(fde.uleb());
    table_program program(code_factor, data_factor, encoding);
    if (fde.failed() || code - start >= bytes || !program.run(cie, 0, 0))
        return {};
    program.keep_first_row();
    return program.run(fde, start, code) ? rule_of(program.row()) : unwind_rule{};
}

} // namespace

unwind_rule find_rule(std::span<const std::byte> readable, const std::byte* header,
                      std::uintptr_t code) noexcept
{
    auto const base = reinterpret_cast<std::uintptr_t>(header);
    table_reader table(readable, base);
    auto const version = table.get<std::uint8_t>();
    auto const section_encoding = table.get<std::uint8_t>();
    auto const count_encoding = table.get<std::uint8_t>();
    auto const table_encoding = table.get<std::uint8_t>();
    table.pointer(section_encoding, base);
    std::uint64_t const count = table.pointer(count_encoding, base);
    if (version != 1 || table_encoding != 0x3b || count > table.bytes() / 8)
        return {}; // every linker writes pairs of 32-bit offsets from the header

    // The last function that begins at or before `code`.
    auto const entry = [&](std::uint64_t index, std::uint64_t half) {
        table_reader pair = table;
        pair.skip(8 * index + 4 * half);
        return base + static_cast<std::uintptr_t>(std::intptr_t{pair.get<std::int32_t>()});
    };
    std::uint64_t first = 0;
    std::uint64_t end = count;
    while (first < end) {
        std::uint64_t const middle = first + (end - first) / 2;
        if (static_cast<std::intptr_t>(entry(middle, 0) - base) <=
            static_cast<std::intptr_t>(code - base))
            first = middle + 1;
        else
            end = middle;
    }
    return first == 0 ? unwind_rule{} : rule_in(readable, entry(first - 1, 1), code);
}

} // namespace mallard::os
