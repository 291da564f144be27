// Chunks straight from the operating system. What calls it is in src/os: this
// is the one source that needs the library, all others are headers.
#pragma once

#include <mallard/source.hpp>

#include <cstdint>

namespace mallard {

inline constexpr std::size_t huge_page_bytes = std::size_t{1} << 21;

/// Which pages a chunk is made of. Huge ones save page faults and TLB misses in
/// large chunks that are used to the full, and cost memory in all others.
enum class huge {
    none,    ///< ordinary pages
    madvise, ///< 2 MiB pages where the system has some at hand, else ordinary ones
    hugetlb  ///< 2 MiB pages that the administrator set aside, else no chunk; Linux 5.16
};

/// Which NUMA node has the memory. Written as `numa::prefer(1)` or `numa::bind(1)`;
/// nothing said, it is the node of the thread that touches a page first.
struct numa {
    int node = -1;
    bool strict = false;

    /// That node's memory while it has some, else another's: advice, as `huge::madvise`.
    static constexpr numa prefer(int node) noexcept { return {.node = node, .strict = false}; }

    /// That node's memory or no chunk. When it runs out later, the system kills somebody,
    /// as when all memory runs out: with `populate` it is taken, or refused, at once.
    static constexpr numa bind(int node) noexcept { return {.node = node, .strict = true}; }

    friend constexpr bool operator==(numa, numa) = default;
};

struct pages_options {
    mallard::huge huge = mallard::huge::none;
    mallard::numa numa = {};
    bool guard = false;            ///< before and after each chunk, a page that nobody may touch
    bool populate = false;         ///< all pages now: a refusal here, not page faults later
    bool locked = false;           ///< never swapped, from the first touch on; see `ulimit -l`
    std::size_t reserve_bytes = 0; ///< address space for all chunks together; 0: each has its own
};

namespace os {

/// What `pages` does, compiled once for all options.
class page_source {
public:
    constexpr explicit page_source(pages_options options) noexcept : options_(options) {}
    page_source(page_source&& other) noexcept;
    page_source& operator=(page_source&& other) noexcept;
    ~page_source();

    chunk try_take(layout l) noexcept;
    void give(chunk c) noexcept;
    bool quarantine(chunk c) noexcept;

    int last_error() const noexcept { return error_; }
    const char* last_failure() const noexcept { return refusal_; }

protected:
    bool refuse(int error, const char* why) noexcept; // false

private:
    // One stretch of address space, cut into units of a page, and after it a bit
    // for each unit that says whether it belongs to a chunk:
    //   | unit 0 | unit 1 | ... | a unit that never is memory | bits |
    // No unit below `low` is free. Before the first take all of it is empty.
    struct range {
        std::byte* base = nullptr;
        std::uint64_t* bits = nullptr;
        std::size_t units = 0;
        std::size_t low = 0;
        std::size_t bytes = 0; // mapped from `base` on, bits included
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
    const char* refusal_ = "";
};

/// A range of address space whose first part is committed memory. The part grows in place.
class growing_range {
public:
    growing_range() noexcept = default;
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

    /// Commits at least the first `bytes`, zeroed. The first call fixes the alignment. Returns
    /// false when the system refuses; nothing has changed then.
    bool commit(std::size_t bytes, std::size_t align) noexcept
    {
        if (bytes <= bytes_)
            return true;
        // No chunk is ever given back, so each chunk begins at the end of the one before.
        chunk const more = pages_.try_take({bytes - bytes_, bytes_ == 0 ? align : 1});
        if (more.data == nullptr)
            return false;
        if (bytes_ == 0)
            begin_ = static_cast<std::byte*>(more.data);
        bytes_ += more.bytes;
        return true;
    }

    std::byte* begin() const noexcept { return begin_; }
    std::size_t bytes() const noexcept { return bytes_; }
    int last_error() const noexcept { return pages_.last_error(); }
    const char* last_failure() const noexcept { return pages_.last_failure(); }

private:
    page_source pages_{{}};
    std::byte* begin_ = nullptr;
    std::size_t bytes_ = 0;
};

} // namespace os

/// Whole pages from the operating system, zeroed.
///
///     mallard::arena<mallard::pages<>> a;
///
///     mallard::pages<mallard::pages_options{.huge = mallard::huge::hugetlb}> source;
///     if (source.try_take({1 << 24}).data == nullptr)
///         std::puts(source.last_failure()); // no huge pages are configured: ...
///
/// A chunk is as large as its pages, which `chunk::bytes` tells: 100 bytes become
/// 4 KiB, or 2 MiB with either kind of huge pages, so ask for much there. Any
/// alignment is honoured. A chunk that the system refuses is null, and nothing of
/// it stays behind.
///
/// With `reserve_bytes`, all chunks lie in one range of address space, which is
/// reserved by the first take and costs no memory but a bit for each page. A
/// take gets the lowest place that fits, so chunks of a fresh range follow each
/// other without a gap, or with just a guard, which comes out of the range too.
/// `give` hands the pages back to the system at once and keeps the place for
/// later takes. No place left: null. The range ends with the source, and so do
/// its chunks; without a range, chunks that are not given back stay.
///
/// One thread at a time. Movable: what was moved from is as if new.
template <pages_options O = pages_options{}>
class pages {
public:
    chunk try_take(layout l) noexcept { return source_.try_take(l); }
    void give(chunk c) noexcept { source_.give(c); }

    /// Gives the memory of a chunk back, but not its place: nobody may touch it any
    /// more, until it is given too. False if the system refuses: nothing has changed.
    bool quarantine(chunk c) noexcept { return source_.quarantine(c); }

    /// The `errno` of the last refusal; 0 when nothing was refused.
    int last_error() const noexcept { return source_.last_error(); }

    /// What the system refused last and what to do about it, in one line that
    /// lives for ever. Refused advice is told too, though the chunk was given:
    /// `huge::madvise` on a kernel that has none, `numa::prefer` of a node that is not.
    const char* last_failure() const noexcept { return source_.last_failure(); }

private:
    os::page_source source_{O};
};

} // namespace mallard
