// A malloc to preload that logs its calls. When the process ends, each call is written as a line to
// the file that the environment variable LOG names. It stops a process that frees a block of
// operator new by free, or by an operator delete of another size or alignment. It also stops a
// process that frees a block of malloc by an operator delete.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

extern "C" {
void* __libc_memalign(std::size_t align, std::size_t bytes);
void __libc_free(void* block);
}

namespace {

struct call {
    const char* name;
    std::size_t bytes, align, marked;
};
struct header { // precedes each block
    std::size_t bytes, align;
    void* start;
    bool is_new; // allocated by an operator new
};

constexpr std::size_t calls_max = std::size_t{1} << 18;
call calls[calls_max];
std::size_t count = 0;
std::mutex lock;

std::size_t number(const char* name)
{
    const char* const value = std::getenv(name);
    return value == nullptr ? SIZE_MAX : std::strtoull(value, nullptr, 10);
}

void log(const char* name, std::size_t bytes, std::size_t align, std::size_t marked)
{
    static std::size_t const from = number("LOG_FROM");
    std::lock_guard const held(lock);
    if (bytes >= from && count < calls_max)
        calls[count++] = {name, bytes, align, marked};
}

header* header_of(void* block)
{
    return static_cast<header*>(block) - 1;
}

void* make(const char* name, std::size_t bytes, std::size_t align, bool is_new = false)
{
    static std::size_t const fail_from = number("FAIL_FROM");
    log(name, bytes, align, 0);
    std::size_t const room = align < 64 ? 64 : align;
    void* const start = bytes >= fail_from || bytes > PTRDIFF_MAX - room
                            ? nullptr
                            : __libc_memalign(room, room + bytes);
    if (start == nullptr) {
        errno = ENOMEM;
        return nullptr;
    }
    void* const block = static_cast<char*>(start) + room;
    *header_of(block) = {bytes, align, start, is_new};
    return std::memset(block, 0, bytes);
}

void end(const char* name, void* block)
{
    if (block == nullptr)
        return log(name, 0, 0, 0);
    header const of = *header_of(block);
    std::size_t marked = 0;
    for (std::size_t i = 0; i < of.bytes; ++i)
        marked += static_cast<char*>(block)[i] == 1;
    log(name, of.bytes, of.align, marked);
    __libc_free(of.start);
}

void* make_or_throw(const char* name, std::size_t bytes, std::size_t align)
{
    void* const block = make(name, bytes, align, true);
    return block != nullptr ? block : throw std::bad_alloc();
}

/// Stops the process unless the block is from an operator new with this alignment and size. A size
/// of 0 means that the size is unknown.
void check_new(void* block, std::size_t align, std::size_t bytes)
{
    if (block == nullptr)
        return;
    header const of = *header_of(block);
    if (of.is_new && of.align == align && (bytes == 0 || of.bytes == bytes))
        return;
    std::fprintf(stderr, "mismatched operator delete: %zu, %zu\n", of.bytes, bytes);
    std::abort();
}

struct writer {
    ~writer()
    {
        const char* const path = std::getenv("LOG");
        std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "w");
        if (file == nullptr)
            return;
        std::size_t const all = count;
        for (std::size_t i = 0; i < all; ++i)
            std::fprintf(file, "%s %zu %zu %zu\n", calls[i].name, calls[i].bytes, calls[i].align,
                         calls[i].marked);
        std::fclose(file);
    }
} at_exit;

} // namespace

extern "C" {

void* malloc(std::size_t bytes)
{
    return make("malloc", bytes, 16);
}
void* calloc(std::size_t elements, std::size_t bytes)
{
    return make("calloc", elements * bytes, 16);
}
void* aligned_alloc(std::size_t align, std::size_t bytes)
{
    return make("aligned_alloc", bytes, align);
}
void* realloc(void* block, std::size_t bytes)
{
    void* const moved = make("realloc", bytes, 16);
    if (block != nullptr && moved != nullptr) {
        std::size_t const before = header_of(block)->bytes;
        std::memcpy(moved, block, before < bytes ? before : bytes);
        end("realloc_from", block);
    }
    return moved;
}
void free(void* block)
{
    if (block != nullptr && header_of(block)->is_new)
        std::abort();
    else if (block != nullptr)
        end("free", block);
    else
        log("free", SIZE_MAX, 0, 0);
}
}

void* operator new(std::size_t bytes)
{
    return make_or_throw("new", bytes, 16);
}
void* operator new(std::size_t bytes, std::align_val_t align)
{
    return make_or_throw("new_aligned", bytes, static_cast<std::size_t>(align));
}
void operator delete(void* block) noexcept
{
    check_new(block, 16, 0);
    end("delete", block);
}
void operator delete(void* block, std::size_t bytes) noexcept
{
    check_new(block, 16, bytes);
    end("free_sized", block);
}
void operator delete(void* block, std::align_val_t align) noexcept
{
    check_new(block, static_cast<std::size_t>(align), 0);
    end("delete_aligned", block);
}
void operator delete(void* block, std::size_t bytes, std::align_val_t align) noexcept
{
    check_new(block, static_cast<std::size_t>(align), bytes);
    end("free_aligned", block);
}
