// A source of whole pages of the operating system. Needs the compiled library, because the system
// calls are in src/os.
#pragma once

#include <mallard/source.hpp>

#include <cstdint>

namespace mallard {

/// The size of a huge page.
inline constexpr std::size_t huge_page_bytes = std::size_t{1} << 21;

/// The kind of pages, as in `pages_options{.huge = mallard::huge::madvise}`. Huge pages save page
/// faults and TLB misses in large chunks that are fully used, and waste memory in all other chunks.
enum class huge {
    none,    ///< ordinary pages
    madvise, ///< 2 MiB pages where the system supplies them (THP), otherwise ordinary pages
    hugetlb  ///< 2 MiB pages that the administrator reserved, otherwise no chunk; needs Linux 5.16
};

/// The NUMA node of the memory, such as `numa::prefer(1)` or `numa::bind(1)`. By default, a page is
/// on the node of the thread that touches the page first.
struct numa {
    int node = -1;       ///< preferred NUMA node; -1: no preference
    bool strict = false; ///< whether to fail if the node has no memory

    /// Returns the option to use memory of that node while the node has free memory, and otherwise
    /// memory of another node.
    static constexpr numa prefer(int node) noexcept { return {.node = node, .strict = false}; }

    /// Returns the option to use memory of that node only. The system allocates the memory of a
    /// page when the page is first touched. If the node has no memory at that time, the system
    /// kills a process. With `populate`, `try_take` touches all pages, and returns null instead.
    static constexpr numa bind(int node) noexcept { return {.node = node, .strict = true}; }

    friend constexpr bool operator==(numa, numa) = default;
};

/// Options of `pages`.
///
///     mallard::pages<mallard::pages_options{.guard = true, .reserve_bytes = 1 << 30}> source;
struct pages_options {
    mallard::huge huge = mallard::huge::none; ///< which huge pages to use
    mallard::numa numa = {};                  ///< the NUMA nodes that may hold the pages
    bool guard = false;                       ///< an inaccessible page before and after each chunk
    bool populate = false; ///< touch all pages in `try_take`, so that later accesses do not fault
    bool locked = false;   ///< lock touched pages in memory (mlock); see `ulimit -l`
    std::size_t reserve_bytes = 0; ///< size of one address range for all chunks; 0: no range
};

namespace os {

/// The implementation of `pages`, compiled once for all options. In src/os.
class page_source {
public:
    /// Makes a source with these options. Maps no memory yet.
    constexpr explicit page_source(pages_options options) noexcept : options_(options) {}
    page_source(page_source&& other) noexcept;
    page_source& operator=(page_source&& other) noexcept;
    ~page_source();

    /// Maps the pages of a chunk, or returns null.
    chunk try_take(layout l) noexcept;
    /// Unmaps the pages of a chunk.
    void give(chunk c) noexcept;
    /// Does the same as `pages::quarantine`.
    bool quarantine(chunk c) noexcept;
    /// Commits all pages of the reserved range that have a byte in the `bytes` at `offset`. Pages
    /// that are committed already keep their content. A range must exist, so `try_take` must have
    /// succeeded before. The caller of this function manages the range, and does not call `give`.
    /// Returns the offset of the end of these pages. Returns 0, and changes nothing, when the
    /// system call fails or the range is too small.
    std::size_t commit_part(std::size_t offset, std::size_t bytes) noexcept;

    /// Returns the `errno` of the last failure, or 0 if nothing failed.
    int last_error() const noexcept { return error_; }
    /// Returns, as one line that is never freed, what failed last and what to do about it.
    const char* last_failure() const noexcept { return failure_; }

protected:
    bool refuse(int error, const char* why) noexcept; ///< records a failure; returns false

private:
    // A range of address space, divided into units that have the size of a page. After the units
    // there is a bit for each unit, which is set while the unit belongs to a chunk:
    //   | unit 0 | unit 1 | ... | a unit that is never committed | bits |
    // No unit below `low` is free. Before the first `try_take`, all members are zero.
    struct range {
        std::byte* base = nullptr;
        std::uint64_t* bits = nullptr;
        std::size_t units = 0;
        std::size_t low = 0;
        std::size_t bytes = 0; // mapped bytes, including the bits
    };

    std::size_t unit_bytes() const noexcept;
    std::size_t guard_bytes() const noexcept;

    std::byte* map(std::size_t bytes, std::size_t align) noexcept;
    void unmap(std::byte* data, std::size_t bytes) noexcept;

    bool reserve(std::size_t align) noexcept;
    std::byte* claim(std::size_t bytes, std::size_t align) noexcept;
    std::size_t claimed_units(std::size_t bytes) const noexcept;

    bool commit(std::byte* data, std::size_t bytes) noexcept;
    bool place_on_node(std::byte* data, std::size_t bytes) noexcept;

    pages_options options_;
    range range_{};
    int error_ = 0;
    const char* failure_ = "";
};

/// A range of address space whose first part is committed memory. The committed part grows in
/// place. Separate parts after it can be committed, too.
class growing_range {
public:
    growing_range() noexcept = default;
    /// Makes a range of `bytes` of address space. The first call of `commit` reserves the range.
    explicit growing_range(std::size_t bytes) noexcept : pages_({.reserve_bytes = bytes}) {}
    growing_range(growing_range&& other) noexcept
        : pages_(std::move(other.pages_)), begin_(std::exchange(other.begin_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0))
    {
    }
    growing_range& operator=(growing_range&& other) noexcept
    {
        pages_ = std::move(other.pages_);
        begin_ = std::exchange(other.begin_, nullptr);
        bytes_ = std::exchange(other.bytes_, 0);
        return *this;
    }

    /// Commits at least the first `bytes`, which are zeroed. The first call fixes the alignment.
    /// Returns false, and changes nothing, when the system call fails.
    bool commit(std::size_t bytes, std::size_t align) noexcept
    {
        if (bytes <= bytes_)
            return true;
        if (bytes_ != 0) {
            std::size_t const end = pages_.commit_part(bytes_, bytes - bytes_);
            bytes_ = std::max(bytes_, end);
            return end != 0;
        }
        chunk const first = pages_.try_take({bytes, align});
        if (first.data == nullptr)
            return false;
        begin_ = static_cast<std::byte*>(first.data);
        bytes_ = first.bytes;
        return true;
    }
    /// Commits a separate part after the committed part, zeroed. The first `commit` must have
    /// succeeded. `bytes()` does not count such a part. If a later `commit` includes the part, the
    /// part keeps its content. Returns false, and changes nothing, when the system call fails.
    bool commit_far(std::size_t offset, std::size_t bytes) noexcept
    {
        return pages_.commit_part(offset, bytes) != 0;
    }

    /// Returns the address of the first byte, or null before the first `commit`.
    std::byte* begin() const noexcept { return begin_; }
    std::size_t bytes() const noexcept { return bytes_; } ///< the size of the committed part
    /// Returns the `errno` of the last failure, or 0 if nothing failed.
    int last_error() const noexcept { return pages_.last_error(); }
    /// Returns, as one line that is never freed, what failed last and what to do about it.
    const char* last_failure() const noexcept { return pages_.last_failure(); }

private:
    page_source pages_{{}};
    std::byte* begin_ = nullptr;
    std::size_t bytes_ = 0;
};

} // namespace os

/// Supplies chunks of whole zeroed pages from the operating system.
///
///     mallard::arena<mallard::pages<>> a;
///
///     mallard::pages<mallard::pages_options{.huge = mallard::huge::hugetlb}> source;
///     if (source.try_take({1 << 24}).data == nullptr)
///         std::puts(source.last_failure()); // no huge pages are configured: ...
///
/// The size of a chunk is rounded up to whole pages, and `chunk::bytes` is the rounded size. For
/// example, a request for 100 bytes gets 4 KiB, or 2 MiB with huge pages. Chunks can have any
/// alignment. When the system call fails, the chunk is null, and nothing stays mapped.
///
/// With `reserve_bytes`, all chunks lie in one range of address space. The first `try_take`
/// reserves the range, which costs one bit of memory for each page. Each chunk is at the lowest
/// free address that fits, so the chunks of a new range follow each other without a gap, or with
/// one guard page in between. `give` returns the pages to the system immediately, and their
/// addresses can be used for later chunks. When the range is full, `try_take` returns a null chunk.
/// The destructor of the source unmaps the range with all chunks. Without a range, chunks that were
/// not returned by `give` stay mapped after the source is destroyed.
///
/// One thread at a time may use a source. A source can be moved. The moved-from source is like a
/// new source.
template <pages_options O = pages_options{}>
class pages {
public:
    /// Maps zeroed pages, or returns a null chunk.
    chunk try_take(layout l) noexcept { return source_.try_take(l); }
    /// Returns the pages of a chunk to the system.
    void give(chunk c) noexcept { source_.give(c); }

    /// Returns the memory of a chunk to the system, and keeps its addresses inaccessible until
    /// `give` is called with the chunk. Returns false, and changes nothing, if the system call
    /// fails.
    bool quarantine(chunk c) noexcept { return source_.quarantine(c); }

    /// Returns the `errno` of the last failure, or 0 if nothing failed.
    int last_error() const noexcept { return source_.last_error(); }

    /// Returns, as one line that is never freed, what failed last and what to do about it. Two
    /// failures do not make `try_take` fail, but are reported here: `huge::madvise` on a kernel
    /// without transparent huge pages, and `numa::prefer` for a node that does not exist.
    const char* last_failure() const noexcept { return source_.last_failure(); }

private:
    os::page_source source_{O};
};

} // namespace mallard
