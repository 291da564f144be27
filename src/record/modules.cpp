// Writes the records of a process and its modules. The records contain the addresses at which code
// is mapped, so that a reader finds the symbols of addresses.
#include "process.hpp"

#include "../os/module_file_linux.hpp"

#include <cstring>

#include <link.h>
#include <sched.h>
#include <sys/auxv.h>
#include <unistd.h>

namespace mallard::record {

namespace {

/// A text of limited length.
class text {
public:
    void add(const char* s) noexcept { add(s, std::strlen(s)); }
    void add(const char* s, std::size_t bytes) noexcept
    {
        bytes = bytes < sizeof text_ - length_ ? bytes : sizeof text_ - length_;
        std::memcpy(text_ + length_, s, bytes);
        length_ += bytes;
    }
    void add_hex(std::uint64_t number, unsigned digits = 1) noexcept
    {
        while (digits < 16 && number >> 4 * digits != 0)
            digits += 1;
        while (digits-- != 0) {
            char const digit = "0123456789abcdef"[number >> 4 * digits & 15];
            add(&digit, 1);
        }
    }
    void add_decimal(std::uint32_t number) noexcept
    {
        if (number >= 10)
            add_decimal(number / 10);
        char const digit = "0123456789"[number % 10];
        add(&digit, 1);
    }
    /// Adds the path of a module's file. Makes a relative path absolute, because the dynamic linker
    /// stores some paths relative to the directory in which the program started.
    void add_path(const char* path) noexcept
    {
        if (*path == '\0')
            return add_program();
        if (std::strchr(path, '/') != nullptr && *path != '/' &&
            ::getcwd(text_ + length_, sizeof text_ - length_) != nullptr) {
            add_length(static_cast<ssize_t>(std::strlen(text_ + length_)));
            add("/");
        }
        add(path);
    }

    void clear() noexcept { length_ = 0; }
    const char* data() const noexcept { return text_; }
    std::size_t size() const noexcept { return length_; }

private:
    /// Adds the path of the program, which the dynamic linker does not have. Reads the path from
    /// the system once, at the start, because later a sandbox (seccomp) may forbid the call. If
    /// /proc is not mounted, uses the path that was passed to execve.
    void add_program() noexcept
    {
        static constinit char path[4096]{};
        static constinit std::size_t bytes = 0;
        if (bytes == 0) {
            ssize_t const read = ::readlink("/proc/self/exe", path, sizeof path);
            bytes = read > 0 ? static_cast<std::size_t>(read) : 0;
        }
        const char* const executed =
            bytes == 0 ? reinterpret_cast<const char*>(::getauxval(AT_EXECFN)) : nullptr;
        if (executed != nullptr && *executed != '\0')
            add_path(executed);
        else
            add(path, bytes);
    }
    void add_length(ssize_t bytes) noexcept
    {
        length_ += bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
    }

    char text_[text_bytes_max]{};
    std::size_t length_ = 0;
};

/// The text of the record that is being written. The text is not on the stack, because a thread
/// that records a module may have a small stack.
constinit text shared_text;

/// A scope in which only this thread uses `shared_text`.
class text_scope {
public:
    text_scope() noexcept
    {
        while (this_process.text_is_in_use.exchange(1, std::memory_order_acquire) != 0)
            ::sched_yield();
        shared_text.clear();
    }
    text_scope(const text_scope&) = delete;
    text_scope& operator=(const text_scope&) = delete;
    ~text_scope() { this_process.text_is_in_use.store(0, std::memory_order_release); }
};

/// Appends a record for each executable segment of the module.
void append_module(thread_state& t, os::loaded_module const& m) noexcept
{
    constexpr std::uintptr_t in_page = 4095;
    for (ElfW(Phdr) const& code : m.headers) {
        if (code.p_type != PT_LOAD || (code.p_flags & PF_X) == 0)
            continue;
        std::uintptr_t const begin = m.bias + code.p_vaddr;
        text_scope const alone;
        text& words = shared_text;
        words.add_hex((begin + code.p_memsz + in_page) & ~in_page);
        words.add(" ");
        words.add_hex(code.p_offset & ~in_page);
        words.add(" ");
        auto const id = os::build_id(m);
        for (unsigned char const byte : id)
            words.add_hex(byte, 2);
        words.add(id.empty() ? "- " : " ");
        words.add_path(m.path);
        append_text(t,
                    {.t = 0,
                     .addr = begin & ~in_page,
                     .what = mallard_trace_pack(0, 0, mallard_trace_module, 0),
                     .stack = this_process.number.load(std::memory_order_relaxed),
                     .dur = 0},
                    words.data(), words.size());
    }
}

} // namespace

void append_process(thread_state& t, const char* how, std::uint32_t process_before) noexcept
{
    text_scope const alone;
    text& words = shared_text;
    words.add(how);
    if (process_before != 0) {
        words.add(" ");
        words.add_decimal(process_before);
    }
    words.add(" ");
    words.add_path("");
    append_text(t,
                {.t = 0,
                 .addr = system_process(),
                 .what = mallard_trace_pack(0, 0, mallard_trace_process, 0),
                 .stack = this_process.number.load(std::memory_order_relaxed),
                 .dur = 0},
                words.data(), words.size());
}

void append_modules(thread_state& t) noexcept
{
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* thread) {
            append_module(*static_cast<thread_state*>(thread),
                          {info->dlpi_addr, {info->dlpi_phdr, info->dlpi_phnum}, info->dlpi_name});
            return 0;
        },
        &t);
}

void append_new_module(std::uintptr_t begin, const char* path) noexcept
{
    auto const& file = *reinterpret_cast<const ElfW(Ehdr)*>(begin);
    if (std::memcmp(file.e_ident, ELFMAG, SELFMAG) != 0)
        return;
    auto const* const headers = reinterpret_cast<const ElfW(Phdr)*>(begin + file.e_phoff);
    for (std::size_t i = 0; i < file.e_phnum; ++i)
        if (headers[i].p_type == PT_LOAD)
            return append_module(this_thread, {begin - (headers[i].p_vaddr & ~std::uintptr_t{4095}),
                                               {headers, file.e_phnum},
                                               path});
}

} // namespace mallard::record
