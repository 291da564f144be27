// Memory that several processes have at once, each at an address of its own.
#pragma once

#include <mallard/detail/base/layout_hash.hpp>
#include <mallard/options.hpp>
#include <mallard/source.hpp>

#include <atomic>
#include <new>
#include <string_view>

namespace mallard {

/// Why the system, or Mallard, did not do what was asked; nothing when it did.
struct system_error {
    int error = 0;        ///< an `errno`
    const char* why = ""; ///< what to do about it, in one line that lives for ever

    explicit operator bool() const noexcept { return error != 0; }
};

/// A number below 2^48 and 16 bits made of it, in a word that is changed as one: a stray
/// write to it is noticed, but for one in 65,536.
class checked_number {
public:
    static constexpr std::uint64_t of(std::uint64_t number) noexcept
    {
        return number << 16 | number * 0x9e3779b97f4a7c15 >> 48; // 2^64 by the golden ratio
    }
    static constexpr std::uint64_t in(std::uint64_t word) noexcept { return word >> 16; }
    static constexpr bool is_sound(std::uint64_t word) noexcept { return of(in(word)) == word; }
};

/// What a segment begins with. The first line never changes and is checksummed.
struct segment_header {
    static constexpr std::uint64_t magic_of_all = 0x536472616c6c616d; // "mallardS"
    static constexpr std::uint64_t version_of_this = 1;
    static constexpr std::uint64_t root_is_ready = checked_number::of(1); // nobody's number

    std::uint64_t magic = 0;
    std::uint64_t version = 0;
    std::uint64_t bytes = 0;
    std::uint64_t checksum = 0;

    alignas(cache_line_bytes) std::atomic<std::uint64_t> cursor{0}; // checked; of what is free

    // 0: there is no root; else `root_is_ready`, or the checked number of who constructs it.
    alignas(cache_line_bytes) std::atomic<std::uint64_t> root_state{0};
    std::atomic<std::uint64_t> root{0}; // checked; its offset, 0 before it has a place
    std::atomic<std::uint64_t> root_hash{0};

    /// Whether a word says where something is behind the header of a segment of `bytes`.
    static constexpr bool is_offset(std::uint64_t word, std::size_t bytes) noexcept
    {
        std::uint64_t const offset = checked_number::in(word);
        return checked_number::is_sound(word) && offset >= sizeof(segment_header) &&
               offset <= bytes;
    }
};
static_assert(sizeof(segment_header) == 192);                   // of version 1, for ever
static_assert(std::atomic<std::uint64_t>::is_always_lock_free); // a lock is one process's own

namespace os {
/// Empty, so that it is full: no segment is a segment without room.
inline constinit segment_header no_segment;
} // namespace os

/// A segment of memory under a name that other processes open, or one that a child inherits
/// or a socket passes on.
///
///     auto segment = mallard::shared_memory::open_or_create("orders", 1 << 20);
///     if (!segment)
///         std::puts(segment.last_failure());
///     auto* const b = segment.root<board>(); // the same one in each process
///
/// A segment is made whole or not at all: a name appears when all behind it is there, so no
/// process sees half of one, whoever is killed when. Its memory is there from the start; a
/// full /dev/shm is a refusal, not a signal later. It lives until `remove` and the end of
/// the last process that has it; the end of this object unmaps it, no more.
///
/// Each process has it at another address, aligned to 2 MiB. So what lies in it holds no
/// pointers, references or virtual functions, and nothing that has them, such as a
/// `std::string`: nobody can detect one. `offset_ptr` and numbers of a `segment_pool` stay
/// right.
///
/// It gives blocks by moving a cursor in the segment, one compare-exchange each, zeroed but
/// for what `deallocate` took back: the last block, else nothing. Alignments to 2 MiB. The
/// first 192 bytes are its own. Any thread of any process may call `root` and what concerns
/// blocks at any time; one that stands still or is killed holds nobody up, but for the
/// constructor of the root. Movable. Needs the library.
///
/// All who may open it may change it: whoever writes at random, or truncates the file, harms
/// them all. Opening checks the header, byte by byte; of the blocks nothing is known.
class shared_memory {
public:
    static constexpr bool any_thread = true;

    /// Names are as in `shm_open`: "orders" or "/orders", without another slash. `bytes` are
    /// rounded up to whole pages; `mode` is that of a file, less the umask.
    static shared_memory create(std::string_view name, std::size_t bytes,
                                unsigned mode = 0600) noexcept;
    static shared_memory open(std::string_view name) noexcept;
    /// One that is there has the size that it has.
    static shared_memory open_or_create(std::string_view name, std::size_t bytes,
                                        unsigned mode = 0600) noexcept;
    /// Those who have the segment keep it; the name is free at once.
    static system_error remove(std::string_view name) noexcept;

    /// Without a name, for children of a `fork` and for those who get `descriptor()`; nobody
    /// can truncate it.
    static shared_memory anonymous(std::size_t bytes) noexcept;
    /// The caller's descriptor stays the caller's.
    static shared_memory attach(int descriptor) noexcept;

    shared_memory() noexcept = default; ///< none: it has no room
    shared_memory(shared_memory&& other) noexcept;
    shared_memory& operator=(shared_memory&& other) noexcept;
    ~shared_memory();

    explicit operator bool() const noexcept { return bytes_ != 0; }
    std::size_t bytes() const noexcept { return bytes_; }
    int descriptor() const noexcept { return descriptor_; } ///< this object's; closed by exec

    /// Of the last call that was refused, in whatever thread.
    int last_error() const noexcept { return error_.load(std::memory_order_relaxed); }
    const char* last_failure() const noexcept { return why_.load(std::memory_order_relaxed); }

    [[nodiscard]] void* allocate(layout l)
    {
        if (void* const block = try_allocate(l)) [[likely]]
            return block;
        throw_bad_alloc();
    }
    [[nodiscard]] void* try_allocate(layout l) noexcept
    {
        std::size_t const bytes = l.bytes + (l.bytes == 0);
        std::uint64_t cursor = header_->cursor.load(std::memory_order_relaxed);
        for (;;) {
            std::size_t const begin = align_up(checked_number::in(cursor), l.align);
            if (bytes > bytes_ || begin > bytes_ - bytes || l.align > align_max ||
                !checked_number::is_sound(cursor)) [[unlikely]]
                return nullptr;
            if (header_->cursor.compare_exchange_weak(cursor, checked_number::of(begin + bytes),
                                                      std::memory_order_acquire,
                                                      std::memory_order_relaxed))
                return base() + begin;
        }
    }
    void deallocate(void* block, layout l) noexcept
    {
        auto const begin = static_cast<std::size_t>(static_cast<std::byte*>(block) - base());
        std::uint64_t last = checked_number::of(begin + l.bytes + (l.bytes == 0));
        header_->cursor.compare_exchange_strong(
            last, checked_number::of(begin), std::memory_order_release, std::memory_order_relaxed);
    }

    bool owns(const void* p) const noexcept
    {
        return reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(header_) <
               bytes_;
    }

    /// What was never given out is idle; all else is live.
    statistics stats() const noexcept;

    /// The object from which all others are found. Whoever comes first constructs it, all
    /// others wait for that and get the same. Should the constructor throw, or its process
    /// be killed, the next one constructs it again, in the same place; what it had allocated
    /// is lost. Its destructor never runs.
    ///
    /// Null when it is refused: the root is of another type (`layout_hash`), there is no
    /// room, or the record of it was overwritten. All processes see each other in /proc: one
    /// that is not there is taken for dead. A constructor that asks for the root waits for
    /// itself.
    template <class T, class... Arguments>
    T* root(Arguments&&... arguments)
    {
        static_assert(!std::is_polymorphic_v<T>, "virtual functions have another address in "
                                                 "each process");
        static_assert(!std::is_pointer_v<T>, "a pointer leads elsewhere in each process");
        root_place const place = enter_root(layout_of<T>(), layout_hash<T>);
        if (place.object != nullptr && !place.is_ready) {
            construction guard{*this};
            ::new (place.object) T(std::forward<Arguments>(arguments)...);
            guard.done = true;
        }
        return static_cast<T*>(place.object);
    }

private:
    static constexpr std::size_t align_max = std::size_t{1} << 21;

    struct root_place {
        void* object = nullptr;
        bool is_ready = false; // else the caller constructs, then leaves
    };
    struct construction {
        shared_memory& segment;
        bool done = false;
        ~construction() { segment.leave_root(done); }
    };

    explicit shared_memory(system_error why) noexcept : error_(why.error), why_(why.why) {}
    shared_memory(int descriptor, void* mapped, std::size_t bytes) noexcept
        : header_(static_cast<segment_header*>(mapped)), bytes_(bytes), descriptor_(descriptor)
    {
    }

    class file;
    static shared_memory make(file& from, std::size_t bytes) noexcept;
    static shared_memory find(file& in) noexcept;

    root_place enter_root(layout l, std::uint64_t hash) noexcept;
    void* find_root(layout l, std::uint64_t hash) noexcept;
    void* place_root(layout l, std::uint64_t hash) noexcept;
    std::nullptr_t give_up_root() noexcept;
    void leave_root(bool constructed) noexcept;
    std::nullptr_t refuse(system_error why) noexcept;

    std::byte* base() const noexcept { return reinterpret_cast<std::byte*>(header_); }

    segment_header* header_ = &os::no_segment;
    std::size_t bytes_ = 0; // its own: the header is everybody's
    int descriptor_ = -1;
    std::atomic<int> error_{0}; // atomic for threads that are refused at once
    std::atomic<const char*> why_{""};
};

} // namespace mallard
