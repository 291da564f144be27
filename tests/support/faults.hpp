// A fault handler that collects fault reports instead of stopping the process.
#pragma once

#include <mallard/debug/fault.hpp>

#include <vector>

namespace mallard::testing {

/// A list of the reported faults, for example: `checked<...> blocks({"blocks", faults});`
class collected_faults {
public:
    struct one {
        fault_kind kind;
        const void* at;
        std::vector<const void*> blocks;
        std::size_t count = 0, bytes = 0;
    };

    void operator()(const fault& f)
    {
        one found{f.kind, f.at, {}, f.count, f.bytes};
        for (const faulty_block& b : f.blocks)
            found.blocks.push_back(b.data);
        all_.push_back(found);
    }

    bool empty() const { return all_.empty(); }
    std::size_t count() const { return all_.size(); }
    const one& last() const { return all_.back(); }
    void clear() { all_.clear(); }

    /// Returns whether exactly one fault was found since the last call, with this kind, this block
    /// and, if given, the address `at`.
    bool were(fault_kind kind, const void* block, const void* at = nullptr)
    {
        bool const were_this =
            all_.size() == 1 && all_[0].kind == kind &&
            (block == nullptr ? all_[0].blocks.empty() : all_[0].blocks == std::vector{block}) &&
            (at == nullptr || all_[0].at == at);
        all_.clear();
        return were_this;
    }

private:
    std::vector<one> all_;
};

/// Inverts a byte that the program must not write. AddressSanitizer does not report this write.
[[gnu::no_sanitize_address, gnu::noinline]] inline void flip(void* p)
{
    auto* const byte = static_cast<volatile unsigned char*>(p);
    *byte = static_cast<unsigned char>(~*byte);
}

} // namespace mallard::testing
