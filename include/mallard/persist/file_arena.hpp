// An arena in a file, which another process opens again tomorrow.
#pragma once

#include <mallard/detail/persist/file_blocks.hpp>
#include <mallard/source.hpp>

namespace mallard {

enum class file_access {
    create,   ///< read and write; a file that is missing or empty becomes a new arena
    existing, ///< read and write; a file that is missing or empty is refused
    read      ///< memory is read-only, and a write to it a SIGSEGV; any number of readers
};

struct file_options {
    file_access access = file_access::create;
    /// Address space, for this time; memory and disk are taken as they are used.
    std::size_t max_bytes = std::size_t{1} << 34;
    /// Map the file elsewhere when its own address is taken: then pointers in it are
    /// wrong, and only `offset_ptr` and the root are right. Else that is a refusal.
    bool relocate = false;
    bool verify = false; ///< read all of the file and compare its checksums
    /// A commit is on the disk when it returns. Else it outlives the process alone: open
    /// the file with `verify` after a power failure.
    bool sync = true;
};

struct file_statistics {
    std::size_t bytes_used = 0;      ///< by blocks, the gaps between them and 64 of ours
    std::size_t bytes_committed = 0; ///< whole pages that the file holds for sure
    std::size_t bytes_max = 0;       ///< `bytes_used` never exceeds it
    std::size_t commits = 0;         ///< ever

    friend bool operator==(const file_statistics&, const file_statistics&) = default;
};

namespace os {

/// What the file says of itself, in both copies of its header: spec/file_arena.md.
struct file_state {
    std::uint64_t home = 0; // the address of page 0
    std::uint64_t sequence = 0;
    std::uint64_t pages = 0;
    std::uint64_t digest = 0; // of the checksums of all pages
    std::uint64_t journal_begin = 0;
    std::uint64_t journal_pages = 0;
    std::uint64_t journal_check = 0;

    friend bool operator==(const file_state&, const file_state&) = default;
};

struct file_group;

/// What `file_arena` does, but for the blocks.
class file_image {
public:
    constexpr file_image() noexcept = default;
    file_image(file_image&& other) noexcept;
    file_image& operator=(file_image&& other) noexcept;
    ~file_image() { close(); }

    bool open(const char* path, const file_options& options) noexcept;
    void close() noexcept;
    bool commit() noexcept;
    bool verify() noexcept;
    void reset() noexcept;

    file_blocks& blocks() const noexcept { return *now_.blocks; }
    bool is_open() const noexcept { return now_.file >= 0; }
    bool is_relocated() const noexcept { return now_.relocated; }
    file_statistics stats() const noexcept;

    int last_error() const noexcept { return error_; }
    const char* last_refusal() const noexcept { return refusal_; }
    std::uint64_t damaged_at() const noexcept { return damaged_at_; }
    bool refuse(int error, const char* why) noexcept;

private:
    // A commit that failed on its way is taken up by the next one.
    enum class stage {
        settled,  // the file is as `state` says
        decided,  // the journal is whole; the first header may or may not say so
        published // the first header is written; pages may still be in the journal alone
    };

    struct opened {
        int file = -1;
        file_options options{};
        std::byte* range = nullptr; // the address space that is ours
        std::size_t range_bytes = 0;
        std::size_t limit = 0;            // of it, for pages
        file_blocks* blocks = &no_blocks; // page 0
        file_state state{};
        std::uint64_t mapped = 0; // pages that are mapped from the file; anonymous beyond
        stage step = stage::settled;
        int owner = 0; // process
        bool relocated = false;
    };

    // Where no file is open there is no room. Nothing is ever written to it.
    static constinit file_blocks no_blocks;

    bool writes() const noexcept { return now_.options.access != file_access::read; }
    bool fail(const char* why) noexcept; // with errno
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
    const char* refusal_ = "";
    std::uint64_t damaged_at_ = 0;
};

} // namespace os

/// An arena whose contents are a file: closed here, opened there, nothing read or
/// rebuilt in between.
///
///     mallard::file_arena file;
///     if (!file.open("words.idx"))
///         std::puts(file.last_refusal());
///     auto* const words = file.root_or_make<index>(file.blocks());
///     words->add("mallard");
///     if (!file.commit())
///         std::puts(file.last_refusal());
///
/// The file holds what was last committed. Nothing the program writes reaches it
/// before `commit`, which is all or nothing: a process that is killed, a machine that
/// loses power, a disk that is full leave the last commit, whatever they interrupt. A
/// file that is damaged, cut off, of another program or another version is refused
/// with a line that says what to do.
///
/// A file is mapped where it was when it was made, so pointers into itself stay right
/// and any structure can live in it. Where another mapping is in the way it is
/// refused, or, if the options say so, `relocated()`.
///
/// `open` reads the checksums, 2 MiB for each GiB, and nothing else; contents are read
/// when they are touched. `commit` writes new pages once and changed ones twice, finds
/// these by 8 bytes that the system has for each page of the file, and gives their
/// memory back to it.
///
/// One writer at a time or several readers, by a lock on the file. One thread at a
/// time. A child of a fork can use what it inherits, and commit nothing.
class file_arena : private arena_objects<file_arena> {
    friend class arena_objects<file_arena>;

public:
    constexpr file_arena() noexcept = default;

    /// False: refused, and nothing is open. What was open before is closed first.
    [[nodiscard]] bool open(const char* path, const file_options& options = {}) noexcept
    {
        bool const opened = image_.open(path, options);
        unpoison_all();
        return opened;
    }

    /// What was not committed is lost. So is it at the end of the arena.
    void close() noexcept { image_.close(); }

    bool is_open() const noexcept { return image_.is_open(); }

    /// Whether pointers that were stored in the file are wrong, this time.
    bool relocated() const noexcept { return image_.is_relocated(); }

    /// Makes the file what memory is. False: the file keeps the last commit, memory
    /// is as it was, and a later commit may succeed: after a disk was full, say.
    [[nodiscard]] bool commit() noexcept
    {
        unpoison_all();
        return image_.commit();
    }

    /// Reads all of the file and compares its checksums with those committed. False:
    /// a page is damaged, or cannot be read, first that at `damaged_at()` in the file.
    [[nodiscard]] bool verify() noexcept { return image_.verify(); }
    std::uint64_t damaged_at() const noexcept { return image_.damaged_at(); }

    [[nodiscard]] void* allocate(layout l) { return blocks().allocate(l); }
    [[nodiscard]] void* try_allocate(layout l) noexcept { return blocks().try_allocate(l); }
    void deallocate(void* block, layout l) noexcept { blocks().deallocate(block, l); }

    using arena_objects::copy;
    using arena_objects::make;
    using arena_objects::make_array;
    using arena_objects::try_make;

    /// What containers in the file draw from.
    file_blocks& blocks() const noexcept { return image_.blocks(); }

    /// Frees everything, and forgets the root. The file learns of it by `commit`.
    void reset() noexcept { image_.reset(); }

    /// The object that all others are found from. Null: there is none, or it is of
    /// another type, and `last_refusal` says which.
    template <class T>
    [[nodiscard]] T* root() noexcept
    {
        static_assert(!std::is_polymorphic_v<T>, "the next process has its vtable elsewhere");
        if (blocks().root_ == 0) {
            image_.refuse(0, "the file has no root yet: call root_or_make or set_root");
            return nullptr;
        }
        if (blocks().root_mark_ != layout_hash<T>) {
            image_.refuse(0, "the root of this file is of another type: open it with the program "
                             "that made it, or reset() it");
            return nullptr;
        }
        return reinterpret_cast<T*>(blocks().at(blocks().root_));
    }

    /// False: a root of another type is there, or the object is not in this file.
    template <class T>
    bool set_root(T* object) noexcept
    {
        if (blocks().root_ != 0 && root<T>() == nullptr)
            return false;
        if (!is_open() || blocks().offset_of(object) >= blocks().used_)
            return image_.refuse(0, "the root is not in the file: make it there");
        blocks().root_ = blocks().offset_of(object);
        blocks().root_mark_ = layout_hash<T>;
        return true;
    }

    /// The root, made from `args` if there is none. Null: it is of another type, or
    /// no room is left.
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

    file_statistics stats() const noexcept { return image_.stats(); }

    /// The `errno` of the last refusal; 0 where no system call was to blame.
    int last_error() const noexcept { return image_.last_error(); }

    /// What was refused last and what to do about it, in one line that lives for ever.
    const char* last_refusal() const noexcept { return image_.last_refusal(); }

private:
    // For AddressSanitizer: what allocators in the file have marked as free is written
    // all the same, and what was marked where this file is now is past.
    void unpoison_all() noexcept
    {
        unpoison<false>(&blocks(), align_up(stats().bytes_used, page_bytes));
    }

    os::file_image image_;
};

} // namespace mallard
