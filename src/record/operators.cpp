// operator new and delete, in all their forms.
//
// An operator of libstdc++ or libc++ calls malloc or free, whose hooks record the event. So these
// operators only note which form was called (thread_state::from) and jump to the next operator: no
// frame of the recorder is on the stack when std::bad_alloc is thrown. If the next operator belongs
// to another allocator and does not call malloc, the event is recorded and timed here.
#include "next.hpp"
#include "sampled.hpp"
#include "thread.hpp"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include <dlfcn.h>
#include <malloc.h>
#include <unistd.h>

namespace mallard::record {

namespace {

/// Looks up the next function of this name. A program without a C++ runtime may later load a
/// runtime with a plugin. RTLD_NEXT does not find such a runtime.
void* find_operator(const char* name) noexcept
{
    if (void* const found = ::dlsym(RTLD_NEXT, name))
        return found;
    for (const char* const runtime : {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"})
        if (void* const loaded = ::dlopen(runtime, RTLD_LAZY | RTLD_NOLOAD))
            if (void* const found = ::dlsym(loaded, name))
                return found;
    return nullptr;
}

/// While it lives, calls of this thread are not recorded. A look-up runs inside the first call of
/// an operator, and what the dynamic linker allocates for it is not of the function that calls the
/// operator. That function's event is recorded after the look-up, so its note is kept.
class quiet {
public:
    quiet() noexcept { this_thread.now.store(in_call, std::memory_order_relaxed); }
    ~quiet()
    {
        this_thread.from = from_;
        this_thread.now.store(before_, std::memory_order_relaxed);
    }
    quiet(quiet const&) = delete;
    quiet& operator=(quiet const&) = delete;

private:
    activity const before_ = this_thread.now.load(std::memory_order_relaxed);
    std::uint64_t const from_ = this_thread.from;
};

/// Whether the function belongs to a C++ runtime, whose operators call malloc and free.
bool calls_malloc(const void* function) noexcept
{
    Dl_info info{};
    if (::dladdr(function, &info) == 0 || info.dli_fname == nullptr)
        return false;
    const char* const slash = std::strrchr(info.dli_fname, '/');
    const char* const file = slash == nullptr ? info.dli_fname : slash + 1;
    return std::strncmp(file, "libstdc++", 9) == 0 || std::strncmp(file, "libc++", 6) == 0;
}

/// Whether the thread has started in this process. If not, it may not know the clock of the ring.
[[gnu::always_inline]] inline bool has_started() noexcept
{
    return this_thread.process == this_process.number.load(std::memory_order_relaxed);
}

/// Notes the form of the operator for the hook of malloc or free that runs next in this thread. If
/// one operator calls another, the flags of both are noted.
[[gnu::always_inline]] inline void note(unsigned flags, std::size_t bytes = 0,
                                        unsigned align_log2 = 0) noexcept
{
    if (this_thread.now.load(std::memory_order_relaxed) == in_program)
        this_thread.from |=
            mallard_trace_pack(bytes, align_log2, 0, mallard_trace_from_new | flags);
}

// These functions return the size or the alignment that an operator gets after its first argument;
// 0 if there is none.

constexpr std::size_t bytes_of() noexcept
{
    return 0;
}
constexpr std::size_t bytes_of(std::size_t bytes, auto const&...) noexcept
{
    return bytes;
}
constexpr std::size_t bytes_of(auto const&...) noexcept
{
    return 0;
}

constexpr unsigned log2_of(std::align_val_t align) noexcept
{
    return static_cast<unsigned>(std::countr_zero(static_cast<std::size_t>(align))) & 63;
}
template <class Other>
constexpr unsigned log2_of(const Other&) noexcept
{
    return 0;
}
constexpr unsigned align_log2_of(auto const&... more) noexcept
{
    return (0U | ... | log2_of(more));
}

/// The flags of an operator with these arguments after the first.
template <class... More>
constexpr unsigned flags_of =
    unsigned{mallard_trace_sized} * (std::is_same_v<More, std::size_t> || ...) |
    unsigned{mallard_trace_aligned} * (std::is_same_v<More, std::align_val_t> || ...) |
    unsigned{mallard_trace_nothrow} * (std::is_same_v<More, const std::nothrow_t&> || ...);

[[noreturn]] void stop_without_runtime() noexcept
{
    static constexpr char text[] = "mallard: out of memory in operator new, without a C++ runtime\n"
                                   "  std::bad_alloc cannot be thrown, and the program stops\n"
                                   "  help: link the program with libstdc++\n";
    [[maybe_unused]] auto const written = ::write(STDERR_FILENO, text, sizeof text - 1);
    std::abort();
}

enum form { new_one, new_array, delete_one, delete_array };
constexpr const char* prefix_of[] = {"_Znwm", "_Znam", "_ZdlPv", "_ZdaPv"};

/// The end of a mangled name, which encodes the arguments after the first.
template <class... More>
constexpr const char* suffix_of = "";
template <>
constexpr const char* suffix_of<std::size_t> = "m";
template <>
constexpr const char* suffix_of<std::align_val_t> = "St11align_val_t";
template <>
constexpr const char* suffix_of<std::size_t, std::align_val_t> = "mSt11align_val_t";
template <>
constexpr const char* suffix_of<const std::nothrow_t&> = "RKSt9nothrow_t";
template <>
constexpr const char* suffix_of<std::align_val_t, const std::nothrow_t&> =
    "St11align_val_tRKSt9nothrow_t";

/// One operator of the program. The operator jumps to `next`, which is `look_up` at first.
template <form Form, class Result, class First, class... More>
struct the_operator {
    using function = Result (*)(First, More...);

    /// The first call. It jumps to the next operator too, so that no stack has a frame of the
    /// recorder.
    static Result look_up(First first, More... more) { return find()(first, more...); }

    [[gnu::noinline]] static function find() noexcept
    {
        quiet const until_found;
        char name[48]{};
        std::size_t const bytes = std::strlen(prefix_of[Form]);
        std::memcpy(name, prefix_of[Form], bytes);
        std::memcpy(name + bytes, suffix_of<More...>, std::strlen(suffix_of<More...>));
        found = reinterpret_cast<function>(find_operator(name));
        next = calls_malloc(reinterpret_cast<void*>(found)) ? found : record;
        return next;
    }

    /// Calls an operator that may not call malloc or free. Records the event exactly once.
    static Result record(First first, More... more)
    {
        if constexpr (Form == new_one || Form == new_array)
            return record_new(first, more...);
        else
            record_delete(first, more...);
    }

    /// The operator may throw, so it runs while the thread counts as in the program: nothing would
    /// restore another state. For the same reason the call is counted only after the operator has
    /// returned.
    static Result record_new(std::size_t bytes, More... more)
    {
        if (found == nullptr)
            return allocate_without_runtime(bytes, more...);
        std::uint64_t const begin = has_started() ? begin_of_next_call(this_thread) : 0;
        void* const block = found(bytes, more...);
        // If the operator called malloc, the hook has counted and recorded the call, and cleared
        // the note.
        if (std::uint64_t const from = this_thread.from; from != 0) {
            if (thread_state* const t = enter()) {
                std::uint64_t const end = ticks_after();
                t->calls += 1;
                t->from = 0;
                if (is_wanted(*t, block, bytes))
                    append(
                        *t, end, block,
                        mallard_trace_pack(bytes, align_log2_of(more...), mallard_trace_malloc, 0) |
                            from,
                        duration(begin, end), this_frame());
                leave(*t);
            }
        }
        return block;
    }

    static void record_delete(void* block, More... more) noexcept
    {
        if (found == nullptr)
            return ::free(block);
        bool const was_known = is_known(block);
        thread_state* const t = block == nullptr ? nullptr : enter();
        if (t == nullptr) {
            this_thread.from = 0;
            return found(block, more...);
        }
        std::uint64_t const from = std::exchange(t->from, 0);
        if (was_known)
            append(*t, ticks(), block, mallard_trace_pack(0, 0, mallard_trace_free, 0) | from, 0,
                   the.has_free_stacks ? this_frame() : nullptr);
        t->now.store(in_call, std::memory_order_relaxed); // a free in the operator is not lost
        if (is_timed_free(*t)) [[unlikely]]
            time_free([=] { found(block, more...); });
        else
            found(block, more...);
        leave(*t);
    }

    static void* allocate_without_runtime(std::size_t bytes, More... more) noexcept
    {
        unsigned const align_log2 = align_log2_of(more...);
        void* const block =
            align_log2 == 0 ? ::malloc(bytes) : ::memalign(std::size_t{1} << align_log2, bytes);
        if (block == nullptr && !(std::is_same_v<More, const std::nothrow_t&> || ...))
            stop_without_runtime();
        return block;
    }

    static inline constinit function next = look_up;
    static inline constinit function found = nullptr;
};

template <form Form, class... More>
inline void* make(std::size_t bytes, More... more)
{
    note(unsigned{mallard_trace_array} * (Form == new_array) | flags_of<More...>);
    return the_operator<Form, void*, std::size_t, More...>::next(bytes, more...);
}

template <form Form, class... More>
inline void destroy(void* block, More... more) noexcept
{
    note(unsigned{mallard_trace_array} * (Form == delete_array) | flags_of<More...>,
         bytes_of(more...), align_log2_of(more...));
    the_operator<Form, void, void*, More...>::next(block, more...);
}

} // namespace

} // namespace mallard::record

using namespace mallard::record;
using nothrow = const std::nothrow_t&;

#pragma GCC visibility push(default)

void* operator new(std::size_t bytes)
{
    return make<new_one>(bytes);
}
void* operator new[](std::size_t bytes)
{
    return make<new_array>(bytes);
}
void* operator new(std::size_t bytes, nothrow quietly) noexcept
{
    return make<new_one, nothrow>(bytes, quietly);
}
void* operator new[](std::size_t bytes, nothrow quietly) noexcept
{
    return make<new_array, nothrow>(bytes, quietly);
}
void* operator new(std::size_t bytes, std::align_val_t align)
{
    return make<new_one>(bytes, align);
}
void* operator new[](std::size_t bytes, std::align_val_t align)
{
    return make<new_array>(bytes, align);
}
void* operator new(std::size_t bytes, std::align_val_t align, nothrow quietly) noexcept
{
    return make<new_one, std::align_val_t, nothrow>(bytes, align, quietly);
}
void* operator new[](std::size_t bytes, std::align_val_t align, nothrow quietly) noexcept
{
    return make<new_array, std::align_val_t, nothrow>(bytes, align, quietly);
}

void operator delete(void* block) noexcept
{
    destroy<delete_one>(block);
}
void operator delete[](void* block) noexcept
{
    destroy<delete_array>(block);
}
void operator delete(void* block, std::size_t bytes) noexcept
{
    destroy<delete_one>(block, bytes);
}
void operator delete[](void* block, std::size_t bytes) noexcept
{
    destroy<delete_array>(block, bytes);
}
void operator delete(void* block, std::align_val_t align) noexcept
{
    destroy<delete_one>(block, align);
}
void operator delete[](void* block, std::align_val_t align) noexcept
{
    destroy<delete_array>(block, align);
}
void operator delete(void* block, std::size_t bytes, std::align_val_t align) noexcept
{
    destroy<delete_one>(block, bytes, align);
}
void operator delete[](void* block, std::size_t bytes, std::align_val_t align) noexcept
{
    destroy<delete_array>(block, bytes, align);
}
void operator delete(void* block, nothrow quietly) noexcept
{
    destroy<delete_one, nothrow>(block, quietly);
}
void operator delete[](void* block, nothrow quietly) noexcept
{
    destroy<delete_array, nothrow>(block, quietly);
}
void operator delete(void* block, std::align_val_t align, nothrow quietly) noexcept
{
    destroy<delete_one, std::align_val_t, nothrow>(block, align, quietly);
}
void operator delete[](void* block, std::align_val_t align, nothrow quietly) noexcept
{
    destroy<delete_array, std::align_val_t, nothrow>(block, align, quietly);
}

#pragma GCC visibility pop
