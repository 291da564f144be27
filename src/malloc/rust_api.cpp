// The functions that the crate mallard-malloc calls. Sizes and alignments come from Rust's
// `Layout`, so a free passes the same values as the allocation did. The crate's build script
// compiles this file, and the C and C++ libraries do not contain it.
#include "report.hpp"

#include "../heap/heap.hpp"
#include "../heap/large.hpp"
#include "../heap/requests.hpp"
#include "../heap/threads.hpp"

#include "../os/system.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include <dlfcn.h>
#include <elf.h>
#include <sys/auxv.h>

namespace engine = mallard::engine;

using engine::heap;
using engine::slice_bytes;
using mallard::page_bytes;

// The crate declares structures with the same layout.
static_assert(engine::class_count == 80 && sizeof(engine::class_statistics) == 32);
static_assert(offsetof(engine::heap_statistics, threads) == 72);
static_assert(offsetof(engine::heap_statistics, classes) == 80);

namespace {

/// Copies the contents of a small block in units of 16 bytes, and so up to 15 bytes more than
/// `bytes`. These bytes are inside both blocks, because the sizes of both blocks are multiples of
/// 16.
void copy_small(void* to, const void* from, std::size_t bytes) noexcept
{
    if (bytes > 256) {
        std::memcpy(to, from, bytes);
        return;
    }
    for (std::size_t i = 0; i < bytes; i += 16)
        std::memcpy(static_cast<std::byte*>(to) + i, static_cast<const std::byte*>(from) + i, 16);
}

struct from_malloc {
    void* allocate(std::size_t bytes) const noexcept { return engine::allocate(bytes); }
    void* allocate(std::size_t bytes, std::size_t align) const noexcept
    {
        return engine::allocate_aligned(bytes, align);
    }
    void deallocate(void* block) const noexcept { engine::deallocate(block); }
};

struct from_heap {
    heap& h;

    void* allocate(std::size_t bytes) const noexcept { return engine::allocate(h, bytes); }
    void* allocate(std::size_t bytes, std::size_t align) const noexcept
    {
        return engine::allocate_slowly(h, bytes, align);
    }
    void deallocate(void* block) const noexcept { engine::deallocate(h, block); }
};

/// Reallocates a block whose alignment the engine's `reallocate` would not preserve. Leaves the
/// block in place if the new size fits and is at least half of the block.
template <class From>
void* reallocate_aligned(From from, void* block, std::size_t bytes, std::size_t align,
                         std::size_t bytes_new) noexcept
{
    std::size_t const now = engine::usable_bytes(block, "realloc");
    if (bytes_new <= now && bytes_new >= now / 2)
        return block;
    void* const fresh = from.allocate(bytes_new, align);
    if (fresh == nullptr)
        return bytes_new <= now ? block : nullptr;
    std::memcpy(fresh, block, std::min(bytes, bytes_new));
    from.deallocate(block);
    return fresh;
}

/// Reallocates a block. If a small block grows, `bytes` determines the size class, so the block is
/// not looked up. If a block shrinks, the block is looked up, because its size may be much larger
/// than `bytes`. Otherwise the block could stay too large through many reallocations.
template <class From>
[[gnu::always_inline]] inline void* reallocate(From from, void* block, std::size_t bytes,
                                               std::size_t align, std::size_t bytes_new) noexcept
{
    // Spans are aligned to slices, and mappings to pages.
    if (align > 16 && (align > page_bytes || std::min(bytes, bytes_new) < slice_bytes))
        return reallocate_aligned(from, block, bytes, align, bytes_new);
    if (bytes_new < bytes || bytes_new >= slice_bytes)
        return engine::reallocate(block, bytes_new);
    if (engine::block_class::of(bytes) == engine::block_class::of(bytes_new))
        return block;
    void* const fresh = from.allocate(bytes_new);
    if (fresh == nullptr)
        return nullptr;
    copy_small(fresh, block, bytes);
    from.deallocate(block);
    return fresh;
}

/// Makes the calling thread the owner of a confined heap. Rust's borrow rules ensure that only one
/// thread at a time uses the heap.
void adopt(heap& h) noexcept
{
    auto const thread_of_heap = engine::thread_of(h);
    const void* const thread = thread_of_heap.load(std::memory_order_relaxed);
    if (thread != nullptr && thread != engine::this_thread()) [[unlikely]]
        thread_of_heap.store(engine::this_thread(), std::memory_order_relaxed);
}

void* cleared(void* block, std::size_t bytes, bool zero) noexcept
{
    if (block != nullptr && !zero)
        std::memset(block, 0, bytes);
    return block;
}

/// Prevents that the shared object with this code (for example a plugin) is unloaded, because
/// threads that have allocated call this code when they exit.
[[gnu::constructor(103)]] void stay_loaded() noexcept
{
    // The linker defines this symbol. NOLINTNEXTLINE(clang-diagnostic-undefined-internal)
    extern const char begin[] __asm__("__ehdr_start") __attribute__((visibility("hidden")));
    auto const& header = *reinterpret_cast<const Elf64_Ehdr*>(begin);
    if (::getauxval(AT_PHDR) == reinterpret_cast<std::uintptr_t>(begin) + header.e_phoff)
        return; // the code is in the program itself, which is never unloaded
    Dl_info self{};
    if (::dladdr(begin, &self) != 0 && self.dli_fname != nullptr)
        ::dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

} // namespace

extern "C" {

void* mallard_rust_heap_allocate(heap* h, std::size_t bytes, std::size_t align);

// --- malloc ------------------------------------------------------------------

/// Allocates from the free list at the class offset `c`, which is the byte offset of a size class's
/// list in a thread cache. If `bytes` is a constant, the Rust compiler computes `c` at compile
/// time.
void* mallard_rust_pop(std::size_t bytes, std::size_t c)
{
    if (c >= engine::class_offset_end)
        __builtin_unreachable();
    return engine::pop(engine::shown_cache(), static_cast<engine::class_offset>(c), bytes);
}

/// Returns the class offset of a size. A test compares the result with the crate's own computation.
std::uint32_t mallard_rust_class_offset_of(std::size_t bytes)
{
    return engine::offset_of_class(engine::block_class::of(bytes));
}

void* mallard_rust_allocate(std::size_t bytes, std::size_t align)
{
    return align <= 16 ? engine::allocate(bytes) : engine::allocate_aligned(bytes, align);
}

void* mallard_rust_allocate_zeroed(std::size_t bytes, std::size_t align)
{
    if (align <= 16 || (align <= slice_bytes && bytes >= slice_bytes))
        return engine::allocate_zeroed(bytes);
    bool zero = false;
    void* const block = align > slice_bytes ? engine::allocate_large(bytes, align, &zero)
                                            : engine::allocate_aligned(bytes, align);
    return cleared(block, bytes, zero);
}

/// Frees a block of malloc or of a heap. A size is not needed, because a free reads the owner from
/// the map entry, which also contains the size class.
void mallard_rust_deallocate(void* block)
{
    engine::deallocate(block);
}

/// Reallocates a block of malloc.
void* mallard_rust_reallocate(void* block, std::size_t bytes, std::size_t align,
                              std::size_t bytes_new)
{
    return reallocate(from_malloc{}, block, bytes, align, bytes_new);
}

// --- heaps -------------------------------------------------------------------

void* mallard_rust_heap_pop(heap* h, std::size_t bytes, std::size_t c)
{
    if (c >= engine::class_offset_end)
        __builtin_unreachable();
    if (engine::is_confined_to_caller(*h)) [[likely]]
        if (void* const block = engine::allocate_cached(*h, static_cast<engine::class_offset>(c)))
            [[likely]]
            return block;
    return mallard_rust_heap_allocate(h, bytes, 1);
}

void* mallard_rust_heap_allocate(heap* h, std::size_t bytes, std::size_t align)
{
    adopt(*h);
    return engine::allocate_slowly(*h, bytes, align);
}

void* mallard_rust_heap_allocate_zeroed(heap* h, std::size_t bytes, std::size_t align)
{
    adopt(*h);
    if (align <= 16)
        return engine::allocate_zeroed(*h, bytes);
    bool zero = false;
    return cleared(engine::allocate_slowly(*h, bytes, align, &zero), bytes, zero);
}

void mallard_rust_heap_deallocate(heap* h, void* block)
{
    engine::deallocate(*h, block);
}

void* mallard_rust_heap_reallocate(heap* h, void* block, std::size_t bytes, std::size_t align,
                                   std::size_t bytes_new)
{
    adopt(*h);
    return reallocate(from_heap{*h}, block, bytes, align, bytes_new);
}

// --- statistics ----------------------------------------------------------------

void mallard_rust_statistics(engine::heap_statistics* out)
{
    *out = {};
    engine::collect_statistics(*out);
}

/// Writes a report to `to` and returns its length.
std::size_t mallard_rust_report(const engine::heap_statistics* s, bool json, char* to,
                                std::size_t room)
{
    mallard::malloc_report const r(*s, json);
    std::size_t const bytes = std::min(r.out.written(), room);
    std::memcpy(to, r.text, bytes);
    return bytes;
}

void mallard_rust_print_report(bool json)
{
    mallard::print_malloc_report(json);
}

} // extern "C"
