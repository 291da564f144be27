// Identifies the file of a loaded module, by the build-id, which most linkers write, or else by a
// key that is computed from the headers of the file.
#pragma once

#include <mallard/trace/replay_format.h>

#include <cstdint>
#include <cstring>
#include <span>

#include <elf.h>
#include <link.h>

namespace mallard::os {

// The relocation types that store the address of a symbol in a word.
#if defined(__x86_64__)
constexpr std::uint32_t jump_slot = R_X86_64_JUMP_SLOT;
constexpr std::uint32_t glob_dat = R_X86_64_GLOB_DAT;
constexpr std::uint32_t absolute = R_X86_64_64;
#elif defined(__aarch64__)
constexpr std::uint32_t jump_slot = R_AARCH64_JUMP_SLOT;
constexpr std::uint32_t glob_dat = R_AARCH64_GLOB_DAT;
constexpr std::uint32_t absolute = R_AARCH64_ABS64;
#else
#error "Mallard supports x86-64 and AArch64 only"
#endif

/// A module that is loaded in this process.
struct loaded_module {
    std::uintptr_t bias; ///< the difference between addresses in memory and in the file
    std::span<const ElfW(Phdr)> headers;
    const char* path; ///< from the dynamic linker; "" for the program itself

    const char* at(ElfW(Phdr) const& header) const noexcept
    {
        return reinterpret_cast<const char*>(bias + header.p_vaddr);
    }
};

/// Returns the program headers of a library whose first segment is mapped at `begin`. The result is
/// empty if the headers are not in the first page.
inline std::span<const ElfW(Phdr)> headers_at(std::uintptr_t begin) noexcept
{
    ElfW(Ehdr) file;
    if (begin == 0)
        return {};
    std::memcpy(&file, reinterpret_cast<const void*>(begin), sizeof file);
    bool const has_headers = std::memcmp(file.e_ident, ELFMAG, SELFMAG) == 0 &&
                             file.e_phentsize == sizeof(ElfW(Phdr)) && file.e_phoff < 4096 &&
                             file.e_phnum <= (4096 - file.e_phoff) / sizeof(ElfW(Phdr));
    if (!has_headers)
        return {};
    return {reinterpret_cast<const ElfW(Phdr)*>(begin + file.e_phoff), file.e_phnum};
}

/// Returns the difference between addresses in memory and in the file, for a file whose first
/// segment is mapped at `begin`.
inline std::uintptr_t bias_of(std::uintptr_t begin, std::span<const ElfW(Phdr)> headers) noexcept
{
    for (ElfW(Phdr) const& header : headers)
        if (header.p_type == PT_LOAD)
            return begin - (header.p_vaddr & ~std::uintptr_t{4095});
    return begin;
}

/// Returns the build-id from the notes of the module. The result is empty if the module has no
/// build-id.
inline std::span<const unsigned char> build_id(loaded_module const& m) noexcept
{
    for (ElfW(Phdr) const& header : m.headers) {
        if (header.p_type != PT_NOTE)
            continue;
        const char* at = m.at(header);
        const char* const end = at + header.p_memsz;
        while (end - at >= static_cast<std::ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
            ElfW(Nhdr) note;
            std::memcpy(&note, at, sizeof note);
            const char* const name = at + sizeof note;
            std::size_t const name_bytes = (note.n_namesz + std::size_t{3}) & ~std::size_t{3};
            std::size_t const bytes = (note.n_descsz + std::size_t{3}) & ~std::size_t{3};
            if (name_bytes + bytes > static_cast<std::size_t>(end - name))
                break;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                std::memcmp(name, "GNU", 4) == 0)
                return {reinterpret_cast<const unsigned char*>(name + name_bytes), note.n_descsz};
            at = name + name_bytes + bytes;
        }
    }
    return {};
}

/// Returns a key for a module without a build-id. The key is a checksum of the program headers, and
/// of the unwind table, which contains the address of each function.
inline std::uint64_t module_key(loaded_module const& m) noexcept
{
    std::uint64_t key = 0;
    auto const add = [&](const void* from, std::size_t bytes) noexcept {
        auto const* at = static_cast<const char*>(from);
        for (; bytes != 0;) {
            std::size_t const part = bytes < 8 ? bytes : 8;
            std::uint64_t word = 0;
            std::memcpy(&word, at, part);
            key = mallard_replay_mix(key, word);
            at += part;
            bytes -= part;
        }
    };
    add(m.headers.data(), m.headers.size_bytes());
    for (ElfW(Phdr) const& header : m.headers)
        if (header.p_type == PT_GNU_EH_FRAME)
            add(m.at(header), header.p_memsz);
    return key;
}

} // namespace mallard::os
