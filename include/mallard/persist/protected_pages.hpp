// Pages that can be made read-only and writable again, all of them at once.
#pragma once

#include <mallard/pages.hpp>

namespace mallard {

namespace os {

/// What `protected_pages` does, compiled once for all options.
class protected_source : public page_source {
public:
    constexpr explicit protected_source(pages_options options) noexcept : page_source(options) {}
    protected_source(protected_source&& other) noexcept;
    protected_source& operator=(protected_source&& other) noexcept;
    ~protected_source();

    chunk try_take(layout l) noexcept;
    void give(chunk c) noexcept;

    bool seal() noexcept { return protect(true); }
    bool unseal() noexcept { return protect(false); }
    bool is_sealed() const noexcept { return list_.sealed; }

private:
    // In pages of its own: a list in the chunks could not be changed while they are sealed.
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

/// `pages` that a stray write cannot change while they are sealed: it stops the process
/// there and then, with SIGSEGV. For what is built once and read ever after.
///
///     mallard::arena<mallard::protected_pages<>> settings;
///     auto& s = settings.make<configuration>(file);
///     if (!settings.upstream().seal())
///         std::puts(settings.upstream().last_failure());
///
/// `seal` and `unseal` change every chunk that was taken, each as a whole: parts would
/// split the kernel's mapping into ever more. It is a system call for each chunk, and
/// holds for all threads of the process. False: the system refused, `last_failure` says
/// why, and what was changed already is changed back.
///
/// While sealed, `try_take` gives nothing: a chunk that can be written among others that
/// cannot would be neither. `give` still gives back, in O(chunks), so an arena may end
/// sealed, unless destructors that it runs write to it.
///
/// One thread at a time may call it. Movable. Whatever else `pages` says holds here.
template <pages_options O = pages_options{}>
class protected_pages {
public:
    chunk try_take(layout l) noexcept { return source_.try_take(l); }
    void give(chunk c) noexcept { source_.give(c); }

    [[nodiscard]] bool seal() noexcept { return source_.seal(); }
    [[nodiscard]] bool unseal() noexcept { return source_.unseal(); }
    bool is_sealed() const noexcept { return source_.is_sealed(); }

    int last_error() const noexcept { return source_.last_error(); }
    const char* last_failure() const noexcept { return source_.last_failure(); }

private:
    os::protected_source source_{O};
};

/// Unseals for as long as it lives; what was not sealed before is not sealed after.
///
///     { mallard::unsealed const writable(settings.upstream()); s.reload(); }
///
/// Throws `std::bad_alloc` when the system refuses to unseal: all is sealed as before. When
/// it refuses to seal again, the process stops, since nobody could be told that what they
/// believe protected is not.
template <class Source>
class [[nodiscard]] unsealed {
public:
    explicit unsealed(Source& source) : source_(source), was_sealed_(source.is_sealed())
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
