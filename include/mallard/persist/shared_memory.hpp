// A segment of memory that several processes share, each at its own address.
#pragma once

#include <mallard/detail/base/layout_hash.hpp>
#include <mallard/options.hpp>
#include <mallard/source.hpp>

#include <atomic>
#include <new>
#include <string_view>

namespace mallard {

/// The reason why a call failed. Converts to false if the call succeeded.
///
///     if (auto const e = mallard::shared_memory::remove("orders"))
///         std::puts(e.why);
struct system_error {
    int error = 0;        ///< an `errno`
    const char* why = ""; ///< what failed and what to do, in one line that is never freed

    explicit operator bool() const noexcept { return error != 0; } ///< whether there is an error
};

/// A number below 2^48 and its 16-bit checksum in one word, so that one atomic store changes both.
/// On average, the checksum detects all but one in 65,536 stray writes.
class checked_number {
public:
    /// Returns the word for `number`, which must be below 2^48.
    static constexpr std::uint64_t of(std::uint64_t number) noexcept
    {
        // The factor is 2^64 divided by the golden ratio.
        return number << 16 | number * 0x9e3779b97f4a7c15 >> 48;
    }
    /// Returns the number in a word, without a test of the checksum.
    static constexpr std::uint64_t in(std::uint64_t word) noexcept { return word >> 16; }
    /// Returns whether a word has a correct checksum.
    static constexpr bool is_sound(std::uint64_t word) noexcept { return of(in(word)) == word; }
};

/// The header of a segment. Its first cache line, up to `checksum`, never changes.
struct segment_header {
    static constexpr std::uint64_t magic_of_all = 0x536472616c6c616d; ///< "mallardS"
    /// The version of the header layout that this library reads and writes.
    static constexpr std::uint64_t version_of_this = 1;
    /// The `root_state` of a constructed root. It contains the number 1, which identifies no
    /// process.
    static constexpr std::uint64_t root_is_ready = checked_number::of(1);

    std::uint64_t magic = 0;    ///< `magic_of_all`, in every segment
    std::uint64_t version = 0;  ///< `version_of_this`, when the segment was made
    std::uint64_t bytes = 0;    ///< the size of the segment
    std::uint64_t checksum = 0; ///< checksum of the three numbers above

    /// The offset at which the free part of the segment begins, as a `checked_number`.
    alignas(cache_line_bytes) std::atomic<std::uint64_t> cursor{0};

    /// The state of the root. 0 means that there is no root, and `root_is_ready` that the root is
    /// constructed. Any other value is the `checked_number` of the process that is constructing the
    /// root.
    alignas(cache_line_bytes) std::atomic<std::uint64_t> root_state{0};
    std::atomic<std::uint64_t> root{0}; ///< `checked_number` of the root's offset; 0: not allocated
    std::atomic<std::uint64_t> root_hash{0}; ///< `layout_hash` of the type of the root

    /// Returns whether a word is a `checked_number` with a correct checksum, and the number is an
    /// offset after the header in a segment of `bytes` bytes.
    static constexpr bool is_offset(std::uint64_t word, std::size_t bytes) noexcept
    {
        std::uint64_t const offset = checked_number::in(word);
        return checked_number::is_sound(word) && offset >= sizeof(segment_header) &&
               offset <= bytes;
    }
};
static_assert(sizeof(segment_header) == 192); // fixed for version 1
// An atomic that uses a lock would work within one process only.
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

namespace os {
/// The header of a `shared_memory` object that has no segment. It has no free memory.
inline constinit segment_header no_segment;
} // namespace os

/// A segment of memory that processes share. A process opens the segment by name, inherits it from
/// a parent process, or receives its descriptor over a socket.
///
///     auto segment = mallard::shared_memory::open_or_create("orders", 1 << 20);
///     if (!segment)
///         std::puts(segment.last_failure());
///     auto* const b = segment.root<board>(); // the same object in each process
///
/// A segment gets its name when it is complete, so no process sees an incomplete segment, even if
/// the process that creates it is killed. All memory of a segment is allocated at its creation. So
/// when /dev/shm is full, the creation fails, and no later access raises SIGBUS. The segment exists
/// until `remove` was called and no process maps the segment any longer. The destructor of this
/// object only unmaps the segment.
///
/// Each process maps the segment at another address, aligned to 2 MiB. So objects in a segment must
/// not contain pointers, references or virtual functions, nor members that contain these, such as a
/// `std::string`. Mallard does not detect such objects. `offset_ptr` and the numbers of a
/// `segment_pool` are valid in every process.
///
/// An allocation moves a cursor by one compare-exchange. `deallocate` frees the block that was
/// allocated last, and does nothing for any other block. A new block is zeroed, unless it reuses
/// memory that `deallocate` freed. Alignments up to 2 MiB are supported. The header uses 192 bytes.
/// Any thread of any process may call `root` and allocate at any time. A process that is stopped or
/// killed delays no other process, unless it is inside the constructor of the root. A
/// `shared_memory` can be moved. Needs the compiled library.
///
/// Every process that opens the segment can change its contents, so a stray write, or a truncation
/// of its file, can crash all processes. Opening verifies the whole header; blocks are not
/// verified.
class shared_memory {
public:
    static constexpr bool any_thread = true; ///< see the concept `shareable`

    /// Creates a segment. Names are as in `shm_open`: "orders" or "/orders", without another slash.
    /// `bytes` is rounded up to whole pages. `mode` is a file mode, to which the umask applies.
    static shared_memory create(std::string_view name, std::size_t bytes,
                                unsigned mode = 0600) noexcept;
    /// Opens a segment that exists.
    static shared_memory open(std::string_view name) noexcept;
    /// Opens a segment, or creates it if it does not exist. The size of an existing segment does
    /// not change.
    static shared_memory open_or_create(std::string_view name, std::size_t bytes,
                                        unsigned mode = 0600) noexcept;
    /// Removes the name of a segment, so that another segment can get the name. Processes that have
    /// mapped the segment keep their mappings.
    static system_error remove(std::string_view name) noexcept;

    /// Creates a segment without a name, for child processes, and for processes that receive
    /// `descriptor()`. Such a segment cannot be truncated.
    static shared_memory anonymous(std::size_t bytes) noexcept;
    /// Opens the segment of a descriptor. The caller still owns the descriptor.
    static shared_memory attach(int descriptor) noexcept;

    shared_memory() noexcept = default; ///< an object without a segment
    shared_memory(shared_memory&& other) noexcept;
    shared_memory& operator=(shared_memory&& other) noexcept;
    ~shared_memory();

    /// Returns whether this object has a segment.
    explicit operator bool() const noexcept { return bytes_ != 0; }
    /// Returns the size of the segment in bytes.
    std::size_t bytes() const noexcept { return bytes_; }
    /// Returns the file descriptor, which this object owns. It is closed at `exec`.
    int descriptor() const noexcept { return descriptor_; }

    /// Returns the `errno` of the last failed call of any thread.
    int last_error() const noexcept { return error_.load(std::memory_order_relaxed); }
    /// Returns, as one line that is never freed, what failed last and what to do about it.
    const char* last_failure() const noexcept { return why_.load(std::memory_order_relaxed); }

    /// Allocates a block in the segment, or throws `std::bad_alloc`.
    [[nodiscard]] void* allocate(layout l)
    {
        if (void* const block = try_allocate(l)) [[likely]]
            return block;
        throw_bad_alloc();
    }
    /// Allocates a block in the segment, or returns null.
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
    /// Frees the block if it was allocated last, and otherwise does nothing.
    void deallocate(void* block, layout l) noexcept
    {
        auto const begin = static_cast<std::size_t>(static_cast<std::byte*>(block) - base());
        std::uint64_t last = checked_number::of(begin + l.bytes + (l.bytes == 0));
        header_->cursor.compare_exchange_strong(
            last, checked_number::of(begin), std::memory_order_release, std::memory_order_relaxed);
    }

    /// Returns whether `p` points into the segment.
    bool owns(const void* p) const noexcept
    {
        return reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(header_) <
               bytes_;
    }

    /// Returns the statistics. Bytes that were never allocated count as idle, and all others as
    /// live.
    statistics stats() const noexcept;

    /// Returns the root, the object from which processes find all others. The first call constructs
    /// the root from the arguments. Other calls wait until the root is constructed, and return the
    /// same object. If the constructor throws, or the process that runs it is killed, the next call
    /// constructs the root again in the same memory. Blocks that the first constructor allocated in
    /// the segment are then lost. The destructor of the root never runs.
    ///
    ///     auto* const b = segment.root<board>(segment);
    ///
    /// Returns null when the root has another type (`layout_hash`), when there is no memory for the
    /// root, or when `root` or `root_state` in the header was overwritten. Processes must see each
    /// other in /proc, because a process without an entry in /proc is assumed dead. A constructor
    /// of the root must not call `root`, because that call would wait for ever.
    template <class T, class... Arguments>
    T* root(Arguments&&... arguments)
    {
        static_assert(!std::is_polymorphic_v<T>,
                      "no virtual functions: the vtable has another address in "
                      "each process");
        static_assert(!std::is_pointer_v<T>,
                      "no pointer: each process has the object at another address");
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
        bool is_ready = false; // false: the caller has to construct the root and call leave_root
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
    std::size_t bytes_ = 0; // not read from the header, because every process can change that
    int descriptor_ = -1;
    std::atomic<int> error_{0}; // atomic, because several threads may fail simultaneously
    std::atomic<const char*> why_{""};
};

} // namespace mallard
