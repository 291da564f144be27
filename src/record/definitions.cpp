#include "definitions.hpp"

#include "../os/module_file_linux.hpp"

#include <cstring>

namespace mallard::record {

namespace {

constexpr std::uintptr_t in_page = 4095;

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
    if (dynamic != nullptr)
        read(dynamic);
}

/// Reads the dynamic section. glibc has added the bias to the addresses in this section, except in
/// the dynamic section of the vDSO.
void dynamic_module::read(ElfW(Dyn) const* dynamic) noexcept
{
    auto const value = [&](ElfW(Sxword) tag) {
        ElfW(Dyn) const* at = dynamic;
        while (at->d_tag != DT_NULL && at->d_tag != tag)
            ++at;
        return at->d_tag == tag ? at->d_un.d_val : 0;
    };
    auto const find = [&]<class T>(T const*& into, ElfW(Sxword) tag) {
        ElfW(Xword) const address = value(tag);
        std::uintptr_t const at = address < bias_ ? address + bias_ : address;
        into = address == 0 ? nullptr : reinterpret_cast<T const*>(at);
    };
    ElfW(Rela) const* immediate = nullptr;
    ElfW(Rela) const* lazy = nullptr;
    find(symbols_, DT_SYMTAB);
    find(strings_, DT_STRTAB);
    find(gnu_hash_, DT_GNU_HASH);
    find(hash_, DT_HASH);
    find(versions_, DT_VERSYM);
    find(immediate, DT_RELA);
    find(lazy, DT_JMPREL);
    has_search_path_ = value(DT_RPATH) != 0 || value(DT_RUNPATH) != 0;
    if (symbols_ == nullptr || strings_ == nullptr)
        return;
    if (immediate != nullptr)
        immediate_ = {immediate, value(DT_RELASZ) / sizeof(ElfW(Rela))};
    if (lazy != nullptr && value(DT_PLTREL) == DT_RELA)
        lazy_ = {lazy, value(DT_PLTRELSZ) / sizeof(ElfW(Rela))};
}

bool dynamic_module::stores_address(ElfW(Rela) const& r) const noexcept
{
    std::uint32_t const type = ELF64_R_TYPE(r.r_info);
    return ELF64_R_SYM(r.r_info) != 0 && (type == os::jump_slot || type == os::glob_dat ||
                                          (type == os::absolute && r.r_addend == 0));
}

bool dynamic_module::contains(std::uintptr_t address) const noexcept
{
    for (ElfW(Phdr) const& header : headers_)
        if (header.p_type == PT_LOAD && address - (bias_ + header.p_vaddr) < header.p_memsz)
            return true;
    return false;
}

/// Returns whether the module defines the symbol as a function of this name, in the default
/// version, to which newly linked programs are bound.
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
