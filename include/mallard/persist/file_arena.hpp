// An arena in a file, which other processes can open later.
#pragma once

#include <mallard/detail/arena/arena_objects.hpp>
#include <mallard/detail/base/layout_hash.hpp>
#include <mallard/source.hpp>

namespace mallard {

/// How a `file_arena` opens its file.
enum class file_access {
    create,   ///< read and write; a missing or empty file becomes a new arena
    existing, ///< read and write; a missing or empty file is an error
    read      ///< read only, by any number of processes; a write raises SIGSEGV
};

/// Options of `file_arena::open`.
///
///     bool const opened = file.open("words.idx", {.access = mallard::file_access::read});
struct file_options {
    file_access access = file_access::create; ///< whether to create, open or only read the file
    /// Bytes of address space to reserve. Memory and disk space are allocated only as blocks use
    /// them.
    std::size_t max_bytes = std::size_t{1} << 34;
    /// Whether to map the file at another address if another mapping uses the address of the file.
    /// Without this option, `open` then fails. If the file is mapped at another address, plain
    /// pointers in the file are invalid, but each `offset_ptr` and the root are valid.
    bool relocate = false;
    bool verify = false; ///< read the whole file, and compare it with its checksums
    /// Whether `commit` waits until the commit is on the disk. Without this option, a commit
    /// survives a crash of the process, but perhaps not a power failure. After a power failure,
    /// open the file with `verify`.
    bool sync = true;
};

/// Statistics of a `file_arena`.
struct file_statistics {
    /// Bytes of blocks and of gaps between blocks, and 64 bytes of bookkeeping.
    std::size_t bytes_used = 0;
    std::size_t bytes_committed = 0; ///< size of all pages in the last commit
    std::size_t bytes_max = 0;       ///< the limit of `bytes_used`
    std::size_t commits = 0;         ///< number of commits since the file was created

    friend bool operator==(const file_statistics&, const file_statistics&) = default;
};

namespace os {
class file_image;
}

/// The allocator of a `file_arena`. This object is at the start of the file contents, and is
/// committed with them. So a container in the file can refer to its allocator, even when another
/// process opens the file later.
///
///     using numbers = std::vector<int, mallard::allocator<int, mallard::file_blocks>>;
///     numbers* const kept = file.root_or_make<numbers>(file.blocks());
///
/// Allocates by moving a cursor, up to `max_bytes` of the arena, without a system call.
/// `deallocate` frees the block that was allocated last, and does nothing for any other block. If
/// the file is mapped at another address, a block that is aligned to more than 2 MiB loses its
/// alignment. Only one thread at a time may use the allocator.
class file_blocks : private arena_objects<file_blocks> {
    friend class arena_objects<file_blocks>;
    friend class file_arena;
    friend class os::file_image;

public:
    constexpr file_blocks() noexcept = default;
    file_blocks(const file_blocks&) = delete;
    file_blocks& operator=(const file_blocks&) = delete;

    /// Allocates a block, or throws `std::bad_alloc`.
    [[nodiscard]] void* allocate(layout l) { return bump<true>(l); }
    /// Allocates a block, or returns null.
    [[nodiscard]] void* try_allocate(layout l) noexcept { return bump<false>(l); }

    /// Frees the block that was allocated last; does nothing for any other block.
    void deallocate(void* block, layout l) noexcept
    {
        std::size_t const at = offset_of(block);
        if (at + occupied(l.bytes) == used_)
            used_ = at;
    }

    // `own` and `defer` do not exist here, because a program that is killed runs no destructors.
    using arena_objects::copy;
    using arena_objects::make;
    using arena_objects::make_array;
    using arena_objects::try_make;

private:
    static constexpr std::size_t first_offset = 64; // offset of the first block

    // Rounds a block size up. A block of 0 bytes occupies 1 byte, so that no other block has the
    // same address.
    static constexpr std::size_t occupied(std::size_t bytes) noexcept
    {
        return bytes + (bytes == 0);
    }

    std::byte* at(std::size_t offset) noexcept
    {
        return reinterpret_cast<std::byte*>(this) + offset;
    }
    std::size_t offset_of(const void* p) const noexcept
    {
        return reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(this);
    }

    // Allocates at the cursor. Aligns the address, not the offset, because the caller requested an
    // aligned address, wherever the file is mapped.
    template <bool Throws>
    [[gnu::always_inline]] void* bump(layout l) noexcept(!Throws)
    {
        std::byte* const p = align_up(at(used_), l.align);
        std::size_t const begin = offset_of(p);
        std::size_t const bytes = occupied(l.bytes);
        if (begin <= limit_ && bytes <= limit_ - begin) [[likely]] {
            used_ = begin + bytes;
            return p;
        }
        if constexpr (Throws)
            throw_bad_alloc();
        return nullptr;
    }

    // `used_` and `limit_` are offsets from this object. When the file is opened, `limit_` is set
    // to the end of the mapping, or to 0 if nothing may be written.
    std::uint64_t used_ = 0;
    std::uint64_t limit_ = 0;
    std::uint64_t root_ = 0; // offset of the root; 0: there is none
    std::uint64_t root_mark_ = 0;
};

static_assert(std::is_standard_layout_v<file_blocks> && sizeof(file_blocks) == 32);

namespace os {

/// The contents of the file header. A file has two copies of its header (see spec/file_arena.md).
struct file_state {
    std::uint64_t home = 0;     ///< the address of page 0
    std::uint64_t sequence = 0; ///< number of the commit; the header copy with the larger number is
                                ///< newer
    std::uint64_t pages = 0;    ///< number of pages with contents
    std::uint64_t digest = 0;   ///< checksum of the checksums of all pages
    std::uint64_t journal_begin = 0; ///< where the journal of changed pages starts
    std::uint64_t journal_pages = 0; ///< pages in the journal
    std::uint64_t journal_check = 0; ///< checksum of the journal

    friend bool operator==(const file_state&, const file_state&) = default;
};

struct file_group;

/// The implementation of `file_arena`, without the allocation of blocks. In src/os.
class file_image {
public:
    constexpr file_image() noexcept = default;
    file_image(file_image&& other) noexcept;
    file_image& operator=(file_image&& other) noexcept;
    ~file_image() { close(); }

    // The functions of `file_arena` call those with the same names here.

    /// Opens a file. Returns false on a failure.
    bool open(const char* path, const file_options& options) noexcept;
    void close() noexcept;  ///< discards uncommitted changes
    bool commit() noexcept; ///< if this returns false, the file keeps the last commit
    bool verify() noexcept; ///< returns false if a page is corrupt
    void reset() noexcept;  ///< frees all blocks

    file_blocks& blocks() const noexcept { return *now_.blocks; } ///< the allocator in the file
    bool is_open() const noexcept { return now_.file >= 0; }      ///< whether a file is open
    bool is_relocated() const noexcept { return now_.relocated; } ///< see `file_arena::relocated`
    file_statistics stats() const noexcept;                       ///< statistics of the open file

    int last_error() const noexcept { return error_; } ///< an `errno`; 0 if nothing failed
    /// Returns, as one line that is never freed, what failed last and what to do about it.
    const char* last_failure() const noexcept { return failure_; }
    std::uint64_t damaged_at() const noexcept { return damaged_at_; } ///< a file offset
    bool refuse(int error, const char* why) noexcept; ///< records a failure; returns false

private:
    // The progress of a commit. If the commit fails, the next commit continues after the last
    // finished stage.
    enum class stage {
        settled,  // the file matches `state`
        decided,  // the journal is complete; the first header may or may not refer to it
        published // the first header is written; some pages may still be only in the journal
    };

    struct opened {
        int file = -1;
        file_options options{};
        std::byte* range = nullptr; // the reserved address space
        std::size_t range_bytes = 0;
        std::size_t limit = 0;            // the part of `range` for pages
        file_blocks* blocks = &no_blocks; // page 0
        file_state state{};
        // The number of pages that are mapped from the file. The pages after them are anonymous.
        std::uint64_t mapped = 0;
        stage step = stage::settled;
        int owner = 0; // the process that opened the file
        bool relocated = false;
    };

    // Used while no file is open. This object has no memory for blocks, and is never written.
    static constinit file_blocks no_blocks;

    bool writes() const noexcept { return now_.options.access != file_access::read; }
    bool fail(const char* why) noexcept; // records the current errno
    std::byte* page(std::uint64_t number) const noexcept;

    bool open_file(const char* path) noexcept;
    bool load() noexcept;
    bool choose_header() noexcept;
    bool recover() noexcept;
    bool place() noexcept;
    bool map_committed() noexcept;
    bool enter_blocks() noexcept;
    bool write_missing_headers(const char* path) noexcept;

    bool prepare(file_state& next) noexcept;
    bool compare(file_group& group, std::size_t count) noexcept;
    bool store(file_group& group, file_state& next) noexcept;
    bool settle() noexcept;
    bool sync() noexcept;
    void let_go() noexcept;
    void cut_off() noexcept;

    opened now_{};
    int error_ = 0;
    const char* failure_ = "";
    std::uint64_t damaged_at_ = 0;
};

} // namespace os

/// An arena whose contents are a mapped file. A later process can open the file and use its
/// contents immediately, without parsing them.
///
///     mallard::file_arena file;
///     if (!file.open("words.idx"))
///         std::puts(file.last_failure());
///     auto* const words = file.root_or_make<index>(file.blocks());
///     words->add("mallard");
///     if (!file.commit())
///         std::puts(file.last_failure());
///
/// Changes in memory reach the file only by `commit`. A commit is atomic. If the process is killed,
/// the power fails or the disk is full, the file still holds the last commit. `open` fails for a
/// file that is corrupt, truncated, or of another program or version; `last_failure` then returns
/// what to do.
///
/// The file is mapped at the address at which it was created, so pointers in the file stay valid,
/// and any data structure can be stored. When another mapping uses that address, `open` fails. With
/// the option `relocate`, `open` then maps the file at another address, and `relocated()` returns
/// true.
///
/// `open` reads only the checksums, 2 MiB for each GiB. Contents are read when they are touched.
/// `commit` finds changed pages in /proc/self/pagemap, which has 8 bytes for each page. `commit`
/// writes new pages once and changed pages twice, and then returns the memory of the written pages
/// to the system.
///
/// A file lock admits either one writer or several readers. One thread at a time may use a
/// `file_arena`. The child of a fork can use the inherited memory, but cannot commit.
class file_arena : private arena_objects<file_arena> {
    friend class arena_objects<file_arena>;

public:
    constexpr file_arena() noexcept = default;

    /// Closes the open file, if any, and opens another. On failure, returns false. Then no file is
    /// open, and `last_failure` returns the reason.
    [[nodiscard]] bool open(const char* path, const file_options& options = {}) noexcept
    {
        bool const opened = image_.open(path, options);
        unpoison_all();
        return opened;
    }

    /// Closes the file. Uncommitted changes are lost. The destructor does the same.
    void close() noexcept { image_.close(); }

    /// Returns whether a file is open.
    bool is_open() const noexcept { return image_.is_open(); }

    /// Returns whether the file is mapped at another address than at its creation, so that plain
    /// pointers in the file are invalid.
    bool relocated() const noexcept { return image_.is_relocated(); }

    /// Writes all changes to the file, atomically. On failure, returns false. Then the file keeps
    /// the last commit, and the memory is unchanged. A later commit may succeed, for example when a
    /// full disk has free space again.
    [[nodiscard]] bool commit() noexcept
    {
        unpoison_all();
        return image_.commit();
    }

    /// Reads the whole file and compares its checksums with those of the last commit. Returns false
    /// when a page is corrupt or cannot be read. `damaged_at()` then returns the offset of the
    /// first such page.
    [[nodiscard]] bool verify() noexcept { return image_.verify(); }
    /// Returns the offset of the first corrupt page in the file, in bytes.
    std::uint64_t damaged_at() const noexcept { return image_.damaged_at(); }

    /// Allocates a block in the file, or throws `std::bad_alloc`.
    [[nodiscard]] void* allocate(layout l) { return blocks().allocate(l); }
    /// Allocates a block in the file, or returns null.
    [[nodiscard]] void* try_allocate(layout l) noexcept { return blocks().try_allocate(l); }
    /// Frees the block that was allocated last; does nothing for any other block.
    void deallocate(void* block, layout l) noexcept { blocks().deallocate(block, l); }

    using arena_objects::copy;
    using arena_objects::make;
    using arena_objects::make_array;
    using arena_objects::try_make;

    /// Returns the allocator for containers in the file.
    ///
    ///     using numbers = std::vector<int, mallard::allocator<int, mallard::file_blocks>>;
    ///     auto* const kept = file.root_or_make<numbers>(file.blocks());
    file_blocks& blocks() const noexcept { return image_.blocks(); }

    /// Frees all blocks and removes the root. The file changes at the next `commit`.
    void reset() noexcept { image_.reset(); }

    /// Returns the root, the object from which a program finds all others. Returns null when there
    /// is no root, or when the root has another type; `last_failure` returns the reason.
    template <class T>
    [[nodiscard]] T* root() noexcept
    {
        static_assert(!std::is_polymorphic_v<T>,
                      "no virtual functions: the vtable has another address in the next process");
        if (blocks().root_ == 0) {
            image_.refuse(0, "the file has no root yet: call root_or_make or set_root");
            return nullptr;
        }
        if (blocks().root_mark_ != layout_hash<T>) {
            image_.refuse(0,
                          "the root of this file has another type: open the file with the program "
                          "that created it, or reset() it");
            return nullptr;
        }
        return reinterpret_cast<T*>(blocks().at(blocks().root_));
    }

    /// Makes `object`, which must lie in the file, the root. Returns false when the file has a root
    /// of another type, or when the object is not in this file.
    template <class T>
    bool set_root(T* object) noexcept
    {
        if (blocks().root_ != 0 && root<T>() == nullptr)
            return false;
        if (!is_open() || blocks().offset_of(object) >= blocks().used_)
            return image_.refuse(0, "the root is not in the file: allocate it in the file");
        blocks().root_ = blocks().offset_of(object);
        blocks().root_mark_ = layout_hash<T>;
        return true;
    }

    /// Returns the root. If the file has no root, constructs one from `args`. Returns null when the
    /// root has another type, or when no memory is left.
    ///
    ///     auto* const words = file.root_or_make<index>(file.blocks());
    template <class T, class... Args>
    [[nodiscard]] T* root_or_make(Args&&... args)
    {
        if (T* const found = root<T>(); found != nullptr || blocks().root_ != 0)
            return found;
        T* const made = try_make<T>(std::forward<Args>(args)...);
        if (made == nullptr)
            image_.refuse(0, "no room for a root: open a file for writing, or raise max_bytes");
        else
            set_root(made);
        return made;
    }

    /// Returns the statistics of the file.
    file_statistics stats() const noexcept { return image_.stats(); }

    /// Returns the `errno` of the last failure, or 0 if no system call failed.
    int last_error() const noexcept { return image_.last_error(); }

    /// Returns, as one line that is never freed, what failed last and what to do about it.
    const char* last_failure() const noexcept { return image_.last_failure(); }

private:
    // Makes the whole file accessible for AddressSanitizer. This is necessary before `commit`,
    // which reads bytes that allocators in the file have poisoned, and after `open`, because the
    // file may be mapped at addresses where a file that was closed had poisoned bytes.
    void unpoison_all() noexcept
    {
        unpoison<false>(&blocks(), align_up(stats().bytes_used, page_bytes));
    }

    os::file_image image_;
};

} // namespace mallard
