#include "definitions.hpp"

#include <cstring>

#include <elf.h>

namespace mallard::record {

namespace {

constexpr std::uintptr_t in_page = 4095;

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

std::uint32_t gnu_hash_of(const char* name) noexcept
{
    std::uint32_t hash = 5381;
    for (; *name != '\0'; ++name)
        hash = hash * 33 + static_cast<unsigned char>(*name);
    return hash;
}

} // namespace

dynamic_module::dynamic_module(std::uintptr_t bias, std::span<const ElfW(Phdr)> headers) noexcept
    : bias_(bias), headers_(headers)
{
    ElfW(Dyn) const* dynamic = nullptr;
    for (ElfW(Phdr) const& header : headers) {
        if (header.p_type == PT_DYNAMIC)
            dynamic = reinterpret_cast<ElfW(Dyn) const*>(bias + header.p_vaddr);
        if (header.p_type == PT_GNU_RELRO) { // the loader rounds both ends down
            relro_begin_ = (bias + header.p_vaddr) & ~in_page;
            relro_end_ = (bias + header.p_vaddr + header.p_memsz) & ~in_page;
        }
    }
    if (dynamic == nullptr)
        return;
    // glibc adds the bias to the addresses in the section, but not in that of the vDSO.
    auto const at = [&](ElfW(Addr) address) { return address < bias ? address + bias : address; };
    std::size_t immediate_bytes = 0;
    std::size_t lazy_bytes = 0;
    ElfW(Rela) const* immediate = nullptr;
    ElfW(Rela) const* lazy = nullptr;
    bool has_addends = true;
    for (; dynamic->d_tag != DT_NULL; ++dynamic) {
        std::uintptr_t const address = at(dynamic->d_un.d_ptr);
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            symbols_ = reinterpret_cast<ElfW(Sym) const*>(address);
            break;
        case DT_STRTAB:
            strings_ = reinterpret_cast<const char*>(address);
            break;
        case DT_GNU_HASH:
            gnu_hash_ = reinterpret_cast<std::uint32_t const*>(address);
            break;
        case DT_HASH:
            hash_ = reinterpret_cast<std::uint32_t const*>(address);
            break;
        case DT_VERSYM:
            versions_ = reinterpret_cast<ElfW(Half) const*>(address);
            break;
        case DT_RELA:
            immediate = reinterpret_cast<ElfW(Rela) const*>(address);
            break;
        case DT_RELASZ:
            immediate_bytes = dynamic->d_un.d_val;
            break;
        case DT_JMPREL:
            lazy = reinterpret_cast<ElfW(Rela) const*>(address);
            break;
        case DT_PLTRELSZ:
            lazy_bytes = dynamic->d_un.d_val;
            break;
        case DT_PLTREL:
            has_addends = dynamic->d_un.d_val == DT_RELA;
            break;
        case DT_RPATH:
        case DT_RUNPATH:
            has_search_path_ = true;
            break;
        default:
            break;
        }
    }
    if (symbols_ == nullptr || strings_ == nullptr)
        return;
    if (immediate != nullptr)
        immediate_ = {immediate, immediate_bytes / sizeof(ElfW(Rela))};
    if (lazy != nullptr && has_addends)
        lazy_ = {lazy, lazy_bytes / sizeof(ElfW(Rela))};
}

bool dynamic_module::stores_address(ElfW(Rela) const& r) const noexcept
{
    std::uint32_t const type = ELF64_R_TYPE(r.r_info);
    return ELF64_R_SYM(r.r_info) != 0 &&
           (type == jump_slot || type == glob_dat || (type == absolute && r.r_addend == 0));
}

bool dynamic_module::contains(std::uintptr_t address) const noexcept
{
    for (ElfW(Phdr) const& header : headers_)
        if (header.p_type == PT_LOAD && address - (bias_ + header.p_vaddr) < header.p_memsz)
            return true;
    return false;
}

/// Whether the module defines the symbol as a function of this name, in the version that a program
/// gets which is linked now.
bool dynamic_module::is(ElfW(Sym) const& symbol, std::size_t index, const char* name) const noexcept
{
    constexpr ElfW(Half) hidden = 0x8000;
    unsigned const type = ELF64_ST_TYPE(symbol.st_info);
    return symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 &&
           (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE) &&
           ELF64_ST_BIND(symbol.st_info) != STB_LOCAL &&
           (versions_ == nullptr || (versions_[index] & hidden) == 0) &&
           std::strcmp(strings_ + symbol.st_name, name) == 0;
}

void* dynamic_module::address(ElfW(Sym) const& symbol) const noexcept
{
    std::uintptr_t const at = bias_ + symbol.st_value;
    if (ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC)
        return reinterpret_cast<void* (*)()>(at)();
    return reinterpret_cast<void*>(at);
}

void* dynamic_module::definition(const char* name) const noexcept
{
    if (symbols_ == nullptr || strings_ == nullptr)
        return nullptr;
    if (gnu_hash_ != nullptr) {
        std::uint32_t const buckets = gnu_hash_[0];
        std::uint32_t const first = gnu_hash_[1];
        std::uint32_t const words = gnu_hash_[2];
        std::uint32_t const* const bucket = gnu_hash_ + 4 + std::size_t{words} * 2;
        std::uint32_t const* const chain = bucket + buckets;
        std::uint32_t const hash = gnu_hash_of(name);
        std::uint32_t index = buckets == 0 ? 0 : bucket[hash % buckets];
        for (; index >= first && index != 0; ++index) {
            std::uint32_t const found = chain[index - first];
            if ((found | 1) == (hash | 1) && is(symbols_[index], index, name))
                return address(symbols_[index]);
            if ((found & 1) != 0)
                break;
        }
    } else if (hash_ != nullptr) {
        for (std::size_t index = 1; index < hash_[1]; ++index)
            if (is(symbols_[index], index, name))
                return address(symbols_[index]);
    }
    return nullptr;
}

} // namespace mallard::record
