#include "redirection.hpp"

#include "../os/errno_kept_linux.hpp"
#include "../preload/next.hpp"
#include "../preload/next_operator.hpp"
#include "definitions.hpp"

#include <atomic>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace mallard::record {

namespace {

using preload::next;

/// A function whose calls are redirected.
struct function {
    const char* name;
    std::uintptr_t own = 0;  ///< the function's address in this library
    std::uintptr_t next = 0; ///< what the program calls without this library, or 0
};

constinit function functions[] = {
    {"malloc"},
    {"free"},
    {"calloc"},
    {"realloc"},
    {"reallocarray"},
    {"cfree"},
    {"free_sized"},
    {"free_aligned_sized"},
    {"aligned_alloc"},
    {"memalign"},
    {"posix_memalign"},
    {"valloc"},
    {"pvalloc"},
    {"dlopen"},
    {"dlclose"},
    // operator new and new[]
    {"_Znwm"},
    {"_ZnwmRKSt9nothrow_t"},
    {"_ZnwmSt11align_val_t"},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t"},
    {"_Znam"},
    {"_ZnamRKSt9nothrow_t"},
    {"_ZnamSt11align_val_t"},
    {"_ZnamSt11align_val_tRKSt9nothrow_t"},
    // operator delete and delete[]
    {"_ZdlPv"},
    {"_ZdlPvm"},
    {"_ZdlPvSt11align_val_t"},
    {"_ZdlPvmSt11align_val_t"},
    {"_ZdlPvRKSt9nothrow_t"},
    {"_ZdlPvSt11align_val_tRKSt9nothrow_t"},
    {"_ZdaPv"},
    {"_ZdaPvm"},
    {"_ZdaPvSt11align_val_t"},
    {"_ZdaPvmSt11align_val_t"},
    {"_ZdaPvRKSt9nothrow_t"},
    {"_ZdaPvSt11align_val_tRKSt9nothrow_t"},
};

/// An entry that is redirected.
struct redirected_entry {
    std::uintptr_t at;
    std::uintptr_t before;
    std::uintptr_t own;
};

constexpr std::size_t entries_max = 65536;
constinit redirected_entry* entries = nullptr; ///< has room for `entries_max`
constinit std::size_t entry_count = 0;
constinit std::atomic<int> lock{0};
constinit bool is_on = false;                ///< between `begin_redirection` and `restore`
constinit std::uintptr_t own_begin = 0;      ///< an address in this library
constinit unsigned long long seen_loads = 0; ///< number of modules loaded before the last pass
constinit bool is_complete = false;          ///< whether the last pass redirected all entries

class locked {
public:
    explicit locked(bool may_wait) noexcept
    {
        while ((owned_ = lock.exchange(1, std::memory_order_acquire) == 0), !owned_ && may_wait)
            ::sched_yield();
    }
    locked(const locked&) = delete;
    locked& operator=(const locked&) = delete;
    ~locked()
    {
        if (owned_)
            lock.store(0, std::memory_order_release);
    }
    explicit operator bool() const noexcept { return owned_; }

private:
    bool owned_ = false;
};

/// Returns whether a word can be written. Tests this with a futex call that atomically adds 0 to
/// the word.
bool is_writable(std::uintptr_t address) noexcept
{
    constinit static std::uint32_t unused = 0;
    constexpr int add_zero = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);
    return ::syscall(SYS_futex, &unused, FUTEX_WAKE_OP | FUTEX_PRIVATE_FLAG, 0, 0, address,
                     add_zero) >= 0;
}

/// A scope in which entries of a module can be written. Pages that the loader has made read-only
/// are writable within the scope.
class writable_module {
public:
    explicit writable_module(dynamic_module const& m) noexcept : module_(m) {}
    writable_module(const writable_module&) = delete;
    writable_module& operator=(const writable_module&) = delete;
    ~writable_module()
    {
        if (is_changed_)
            change(PROT_READ);
    }

    /// Makes a word writable. Returns false if the loader still relocates the module in another
    /// thread, or if the system call fails.
    bool prepare(std::uintptr_t at) noexcept
    {
        if (at < module_.relro_begin() || at >= module_.relro_end())
            return true;
        if (!is_known_) {
            is_known_ = true;
            is_changed_ = !is_writable(module_.relro_begin()) && change(PROT_READ | PROT_WRITE);
        }
        return is_changed_;
    }

private:
    bool change(int protection) const noexcept
    {
        return ::mprotect(reinterpret_cast<void*>(module_.relro_begin()),
                          module_.relro_end() - module_.relro_begin(), protection) == 0;
    }

    dynamic_module const& module_;
    bool is_known_ = false;
    bool is_changed_ = false;
};

std::atomic_ref<std::uintptr_t> word(std::uintptr_t at) noexcept
{
    return std::atomic_ref(*reinterpret_cast<std::uintptr_t*>(at));
}

bool begins_like_a_name(const char* name) noexcept
{
    return std::strchr("mcrfapvd_", *name) != nullptr && *name != '\0';
}

function const* find_function(const char* name) noexcept
{
    if (begins_like_a_name(name))
        for (function const& f : functions)
            if (f.next != 0 && f.own != 0 && std::strcmp(f.name, name) == 0)
                return &f;
    return nullptr;
}

bool is_listed(std::uintptr_t at, std::uintptr_t before, std::uintptr_t own) noexcept
{
    for (std::size_t i = 0; i < entry_count; ++i) {
        if (entries[i].at != at)
            continue;
        entries[i] = {at, before, own}; // another module is loaded at this address now
        return true;
    }
    return false;
}

/// Redirects the entry at `at`, whose value is `before`, to the function `f` of this library.
void redirect_entry(writable_module& writable, std::uintptr_t at, std::uintptr_t before,
                    function const& f) noexcept
{
    if (entry_count == entries_max)
        return;
    if (!writable.prepare(at)) {
        is_complete = false;
        return;
    }
    if (!is_listed(at, before, f.own))
        entries[entry_count++] = {at, before, f.own};
    // If the loader binds the entry in the meantime, the entry is not redirected before the next
    // pass.
    if (!word(at).compare_exchange_strong(before, f.own, std::memory_order_acq_rel))
        is_complete = false;
}

/// Returns whether the module calls functions of another malloc, such as a module that was loaded
/// with RTLD_DEEPBIND.
bool has_other_functions(dynamic_module const& m) noexcept
{
    bool found = false;
    m.relocations([&](dynamic_module::relocation const& r) {
        function const* const f = find_function(r.name);
        if (f == nullptr)
            return;
        std::uintptr_t const value = word(reinterpret_cast<std::uintptr_t>(r.at)).load();
        found |= value != 0 && value != f->next && value != f->own && !m.contains(value);
    });
    return found;
}

int redirect_module(dl_phdr_info* info, std::size_t, void* loads) noexcept
{
    auto& seen = *static_cast<unsigned long long*>(loads);
    if (seen == info->dlpi_adds)
        return 1; // no module was loaded since the last pass
    seen_loads = info->dlpi_adds;
    dynamic_module const m(info->dlpi_addr, {info->dlpi_phdr, info->dlpi_phnum});
    if (m.contains(own_begin))
        return 0;
    writable_module writable(m);
    int others = -1; // not known yet
    m.relocations([&](dynamic_module::relocation const& r) {
        function const* const f = find_function(r.name);
        if (f == nullptr)
            return;
        auto const at = reinterpret_cast<std::uintptr_t>(r.at);
        std::uintptr_t const before = word(at).load(std::memory_order_acquire);
        bool is_wanted = before == f->next;
        if (!is_wanted && m.contains(before)) { // in the module's PLT, so not bound yet
            if (others < 0)
                others = has_other_functions(m) ? 1 : 0;
            is_wanted = others == 0;
        }
        if (is_wanted)
            redirect_entry(writable, at, before, *f);
    });
    return 0;
}

int restore_module(dl_phdr_info* info, std::size_t, void*) noexcept
{
    dynamic_module const m(info->dlpi_addr, {info->dlpi_phdr, info->dlpi_phnum});
    writable_module writable(m);
    for (std::size_t i = 0; i < entry_count; ++i) {
        auto const [at, before, own] = entries[i];
        if (!m.contains(at) || word(at).load(std::memory_order_acquire) != own ||
            !writable.prepare(at))
            continue;
        std::uintptr_t expected = own;
        word(at).compare_exchange_strong(expected, before, std::memory_order_acq_rel);
    }
    return 0;
}

struct definition_query {
    const char* name;
    void* found;
};

int find_first(dl_phdr_info* info, std::size_t, void* argument) noexcept
{
    auto& query = *static_cast<definition_query*>(argument);
    dynamic_module const m(info->dlpi_addr, {info->dlpi_phdr, info->dlpi_phnum});
    if (!m.contains(own_begin))
        query.found = m.definition(query.name);
    return query.found != nullptr ? 1 : 0;
}

int find_own(dl_phdr_info* info, std::size_t, void*) noexcept
{
    dynamic_module const m(info->dlpi_addr, {info->dlpi_phdr, info->dlpi_phnum});
    if (!m.contains(own_begin))
        return 0;
    for (function& f : functions)
        f.own = reinterpret_cast<std::uintptr_t>(m.definition(f.name));
    return 1;
}

struct module_query {
    std::uintptr_t code;
    bool has_search_path;
};

int find_search_path(dl_phdr_info* info, std::size_t, void* argument) noexcept
{
    auto& query = *static_cast<module_query*>(argument);
    dynamic_module const m(info->dlpi_addr, {info->dlpi_phdr, info->dlpi_phnum});
    if (!m.contains(query.code))
        return 0;
    query.has_search_path = m.has_search_path();
    return 1;
}

/// Returns whether the file that dlopen finds depends on the module that calls dlopen. The file
/// depends on that module if the module names directories for the search, or if the path contains
/// words such as $ORIGIN.
bool depends_on_caller(const char* path, void* caller) noexcept
{
    if (path == nullptr)
        return false;
    if (std::strchr(path, '$') != nullptr)
        return true;
    module_query query{reinterpret_cast<std::uintptr_t>(caller), true};
    if (std::strchr(path, '/') == nullptr)
        ::dl_iterate_phdr(find_search_path, &query);
    else
        query.has_search_path = false;
    return query.has_search_path;
}

/// Replaces dlopen in redirected entries. Redirects the entries of the newly loaded modules. If the
/// result of the next dlopen depends on the caller, calls the next dlopen in tail position. In that
/// case, the command later requests the redirection of the new modules.
void* open_library(const char* path, int flags) noexcept
{
    if (depends_on_caller(path, __builtin_return_address(0)))
        return next.dlopen(path, flags);
    void* const library = next.dlopen(path, flags);
    if (library != nullptr) {
        os::errno_kept const kept;
        redirect(false);
    }
    return library;
}

} // namespace

void* first_definition(const char* name) noexcept
{
    definition_query query{name, nullptr};
    ::dl_iterate_phdr(find_first, &query);
    return query.found;
}

bool find_functions() noexcept
{
    own_begin = reinterpret_cast<std::uintptr_t>(&functions);
    if (entries == nullptr) {
        void* const at =
            ::mmap(nullptr, entries_max * sizeof(redirected_entry), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (at == MAP_FAILED)
            return false;
        entries = static_cast<redirected_entry*>(at);
    }
    ::dl_iterate_phdr(find_own, nullptr);
    for (function& f : functions) {
        f.next = reinterpret_cast<std::uintptr_t>(first_definition(f.name));
        if (std::strcmp(f.name, "dlopen") == 0)
            f.own = reinterpret_cast<std::uintptr_t>(open_library);
    }
    // Calls in this file reach the malloc that is first in the search order.
    auto const first = reinterpret_cast<std::uintptr_t>(&::malloc);
    return functions[0].own != first && functions[0].next != 0;
}

void redirect(bool may_wait) noexcept
{
    locked const alone(may_wait);
    if (!alone || !is_on)
        return;
    unsigned long long loads = is_complete ? seen_loads : 0;
    is_complete = true;
    ::dl_iterate_phdr(redirect_module, &loads);
}

void begin_redirection() noexcept
{
    lock.store(0, std::memory_order_release);
    is_on = true;
    redirect(true);
}

void restore() noexcept
{
    locked const alone(true);
    ::dl_iterate_phdr(restore_module, nullptr);
    entry_count = 0;
    is_on = is_complete = false;
}

namespace {

int restore_one(dl_phdr_info* info, std::size_t, void* argument) noexcept
{
    auto& [at, before, now] = *static_cast<redirected_entry*>(argument);
    dynamic_module const m(info->dlpi_addr, {info->dlpi_phdr, info->dlpi_phnum});
    if (!m.contains(at))
        return 0;
    writable_module writable(m);
    std::uintptr_t expected = now;
    if (word(at).load(std::memory_order_acquire) == now && writable.prepare(at))
        word(at).compare_exchange_strong(expected, before, std::memory_order_acq_rel);
    return 1;
}

} // namespace

void restore_entry(std::uintptr_t at, std::uintptr_t before, std::uintptr_t now) noexcept
{
    redirected_entry entry{at, before, now};
    ::dl_iterate_phdr(restore_one, &entry);
}

} // namespace mallard::record
