// A source of pages that can be made read-only, and writable again, all by one call.
#pragma once

#include <mallard/detail/base/fatal_objects.hpp>
#include <mallard/pages.hpp>

namespace mallard {

namespace os {

/// The implementation of `protected_pages`, compiled once for all options. In src/os.
class protected_source : public page_source {
public:
    /// Makes a source with these options. Maps no memory yet.
    constexpr explicit protected_source(pages_options options) noexcept : page_source(options) {}
    protected_source(protected_source&& other) noexcept;
    protected_source& operator=(protected_source&& other) noexcept;
    ~protected_source();

    /// Maps a chunk of pages, or returns null.
    chunk try_take(layout l) noexcept;
    /// Returns the pages of a chunk to the system.
    void give(chunk c) noexcept;

    /// Makes all chunks read-only. Returns false when the system call fails.
    bool seal() noexcept { return protect(true); }
    /// Makes all chunks writable. Returns false when the system call fails.
    bool unseal() noexcept { return protect(false); }
    bool is_sealed() const noexcept { return list_.sealed; } ///< whether all chunks are read-only

private:
    // The list of chunks. The list is in other pages than the chunks, so that it can change while
    // the chunks are sealed.
    struct list {
        chunk memory;
        std::size_t count = 0;
        bool sealed = false;

        chunk* begin() const noexcept { return static_cast<chunk*>(memory.data); }
        chunk* end() const noexcept { return begin() + count; }
    };

    bool has_room_in_list() noexcept;
    bool protect(bool sealed) noexcept;

    list list_;
};

} // namespace os

/// A source of `pages` that can be sealed, which makes them read-only, so that a stray write stops
/// the process with SIGSEGV. Use it for data that is built once and then only read.
///
///     mallard::arena<mallard::protected_pages<>> settings;
///     auto& s = settings.make<configuration>(file);
///     if (!settings.upstream().seal())
///         std::puts(settings.upstream().last_failure());
///
/// `seal` and `unseal` change all chunks, for all threads of the process, by one system call for
/// each chunk. A part of a chunk cannot be sealed, because the kernel would have to split its
/// mappings. When a system call fails, both functions undo their changes and return false, and
/// `last_failure` returns the reason.
///
/// While the pages are sealed, `try_take` returns null. `give` still works, in O(chunks). So an
/// arena may be destroyed while its pages are sealed, unless destructors of its objects write to
/// its blocks.
///
/// One thread at a time may use this source. It can be moved. In all other ways, it is like
/// `pages`.
template <pages_options O = pages_options{}>
class protected_pages {
public:
    /// Maps pages, or returns a null chunk. The chunk is always null while the pages are sealed.
    chunk try_take(layout l) noexcept { return source_.try_take(l); }
    /// Returns the pages of a chunk to the system, sealed or not.
    void give(chunk c) noexcept { source_.give(c); }

    /// Makes all chunks read-only. Returns false when a system call fails.
    [[nodiscard]] bool seal() noexcept { return source_.seal(); }
    /// Makes all chunks writable again. Returns false when a system call fails.
    [[nodiscard]] bool unseal() noexcept { return source_.unseal(); }
    /// Returns whether the pages are read-only now.
    bool is_sealed() const noexcept { return source_.is_sealed(); }

    /// Returns the `errno` of the last failure, as in `pages`.
    int last_error() const noexcept { return source_.last_error(); }
    /// Returns, as one line that is never freed, what failed last and what to do about it.
    const char* last_failure() const noexcept { return source_.last_failure(); }

private:
    os::protected_source source_{O};
};

/// Unseals pages in its constructor, and seals them again in its destructor if they were sealed
/// before.
///
///     { mallard::unsealed const writable(settings.upstream()); s.reload(); }
///
/// The constructor throws `std::bad_alloc` when the pages cannot be unsealed, and then they stay
/// sealed. When the destructor cannot seal the pages again, the process stops, because a destructor
/// cannot report the failure.
template <class Source>
class [[nodiscard]] unsealed {
public:
    /// Unseals `source`, or throws `std::bad_alloc`.
    [[nodiscard]] explicit unsealed(Source& source)
        : source_(source), was_sealed_(source.is_sealed())
    {
        if (was_sealed_ && !source.unseal())
            throw_bad_alloc();
    }
    ~unsealed()
    {
        if (was_sealed_ && !source_.seal())
            fatal_not_sealed(source_.last_failure());
    }
    unsealed(const unsealed&) = delete;
    unsealed& operator=(const unsealed&) = delete;

private:
    Source& source_;
    bool was_sealed_;
};

} // namespace mallard
