// Searches the dynamic symbols of loaded modules. The functions lock no lock and allocate no
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <link.h>

namespace mallard::record {

/// The dynamic section of a loaded module.
class dynamic_module {
public:
    dynamic_module(std::uintptr_t bias, std::span<const ElfW(Phdr)> headers) noexcept;

    /// Returns the address of the function that the module defines under this name, or null if it
    /// defines no such function.
    void* definition(const char* name) const noexcept;

    /// A relocation that stores the address of a symbol in one word.
    struct relocation {
        std::uintptr_t* at;
        const char* name;
    };

    /// Calls `each` for all relocations that store the address of a symbol.
    template <class Each>
    void relocations(Each each) const noexcept
    {
        for (auto const part : {immediate_, lazy_})
            for (ElfW(Rela) const& r : part)
                if (stores_address(r))
                    each(relocation{reinterpret_cast<std::uintptr_t*>(bias_ + r.r_offset),
                                    strings_ + symbols_[ELF64_R_SYM(r.r_info)].st_name});
    }

    /// Returns whether the module has code or data at the address.
    bool contains(std::uintptr_t address) const noexcept;

    /// Returns whether the module names directories in which its libraries are searched.
    bool has_search_path() const noexcept { return has_search_path_; }

    /// The pages that the loader made read-only after it had relocated the module.
    std::uintptr_t relro_begin() const noexcept { return relro_begin_; }
    std::uintptr_t relro_end() const noexcept { return relro_end_; }

private:
    void read(ElfW(Dyn) const* dynamic) noexcept;
    bool stores_address(ElfW(Rela) const& r) const noexcept;
    bool is(ElfW(Sym) const& symbol, std::size_t index, const char* name) const noexcept;
    void* address(ElfW(Sym) const& symbol) const noexcept;

    std::uintptr_t bias_;
    std::span<const ElfW(Phdr)> headers_;
    std::uintptr_t relro_begin_ = 0;
    std::uintptr_t relro_end_ = 0;
    std::span<const ElfW(Rela)> immediate_;
    std::span<const ElfW(Rela)> lazy_;
    ElfW(Sym) const* symbols_ = nullptr;
    const char* strings_ = nullptr;
    std::uint32_t const* gnu_hash_ = nullptr;
    std::uint32_t const* hash_ = nullptr;
    ElfW(Half) const* versions_ = nullptr;
    bool has_search_path_ = false;
};

} // namespace mallard::record
