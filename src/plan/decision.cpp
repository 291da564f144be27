#include "decision.hpp"

#include "../os/memory.hpp"
#include "../os/module_file_linux.hpp"
#include "short_lock.hpp"
#include "stack_decision.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include <unistd.h>

namespace mallard::plan {

constinit empty_answers no_answers{{sizeof(answer_table::entry), 0, nullptr}, {}};
constinit std::atomic<answer_table*> answers{&no_answers.table};

namespace {

constexpr std::uintptr_t not_loaded = 1; // no module is loaded at an odd address

constinit plan the_plan;
constinit tell_function* tell_build = nullptr;
constinit char program_path[4096];
constinit runtime_function* see_runtime = nullptr;
constinit answer_options the_answer_options{};
constinit bool has_runtime = false; ///< whether a C++ runtime was loaded when the program started

/// Protects the replacement of `answers`. Readers use the old table until the new one is complete.
constinit short_lock change_lock;
// Only the thread that holds `change_lock` uses the variables below.
constinit std::uintptr_t biases_now[mallard_plan_modules_max];
constinit bool has_other_build[mallard_plan_modules_max];
constinit bool is_told[mallard_plan_modules_max];
constinit unsigned tables = 0;
constinit answer_table* first_table = nullptr;
constinit answer_table* newest_table = nullptr; ///< the head of a list of all tables
constexpr unsigned tables_max = 64;

/// The number of table entries that are reserved for callers that are not in the plan.
constexpr std::size_t spare_entries = 2048;

constexpr answer narrow(std::uint32_t of_plan) noexcept
{
    if (of_plan == mallard_plan_malloc)
        return to_malloc;
    if (of_plan >= mallard_plan_by_stack)
        return static_cast<answer>(by_stack + (of_plan - mallard_plan_by_stack));
    return answer_of_rule(of_plan);
}

/// Returns whether this is a control run (malloc serves all requests) in which blocks are not
/// counted. The quickly found answers are then `to_malloc` instead of a rule, so that finding the
/// answer is the only cost of the plan.
bool is_for_malloc() noexcept
{
    return the_answer_options.is_control && !the_answer_options.are_counted;
}

answer answer_of_caller(std::uint32_t of_plan) noexcept
{
    answer const is = narrow(of_plan);
    return is_rule(is) && is_for_malloc() ? answer{to_malloc} : is;
}

// --- modules

std::span<const char> file_name(const char* path) noexcept
{
    const char* const slash = std::strrchr(path, '/');
    const char* const name = slash == nullptr ? path : slash + 1;
    return {name, std::strlen(name)};
}

bool is_runtime(const char* path) noexcept
{
    const char* const name = file_name(path).data();
    return std::strncmp(name, "libstdc++", 9) == 0 || std::strncmp(name, "libc++", 6) == 0;
}

bool is_program(os::loaded_module const& m) noexcept
{
    return *m.path == '\0';
}

/// The identity of a module, which is its build-id, or a key if the module has no build-id.
struct identity {
    std::span<const unsigned char> build_id;
    std::uint64_t key;
};

identity identity_of(os::loaded_module const& m) noexcept
{
    auto const id = os::build_id(m);
    bool const asks_for_key =
        id.empty() && std::ranges::any_of(the_plan.modules, [](auto const& wanted) {
            return wanted.build_id_bytes == 0;
        });
    return {id, asks_for_key ? os::module_key(m) : 0};
}

/// Returns whether the loaded module `m` is the module `wanted` of the plan.
bool is_same(mallard_plan_module const& wanted, os::loaded_module const& m,
             identity const& of) noexcept
{
    if (wanted.is_program != 0 && !is_program(m))
        return false;
    if (wanted.build_id_bytes == 0)
        return of.build_id.empty() && wanted.key == of.key;
    return of.build_id.size() == wanted.build_id_bytes &&
           std::memcmp(of.build_id.data(), wanted.build_id, of.build_id.size()) == 0;
}

bool has_same_name(mallard_plan_module const& wanted, os::loaded_module const& m) noexcept
{
    return (wanted.is_program != 0) == is_program(m) &&
           std::ranges::equal(the_plan.text_of(wanted.name),
                              file_name(is_program(m) ? program_path : m.path));
}

/// Compares a loaded module with all modules of the plan.
void compare_module(os::loaded_module const& m) noexcept
{
    identity const of = identity_of(m);
    bool is_of_plan = false;
    for (std::size_t i = 0; i < the_plan.modules.size(); ++i)
        if (is_same(the_plan.modules[i], m, of)) {
            biases_now[i] = m.bias;
            is_of_plan = true;
        }
    // Compare names only if the module is not in the plan, because plugins in different directories
    // may have the same name, such as those of perl's Hash::Util and List::Util.
    for (std::size_t i = 0; i < the_plan.modules.size() && !is_of_plan; ++i)
        has_other_build[i] = has_other_build[i] || has_same_name(the_plan.modules[i], m);
}

int see_module(dl_phdr_info* info, std::size_t, void*) noexcept
{
    has_runtime |= is_runtime(info->dlpi_name);
    compare_module({info->dlpi_addr, {info->dlpi_phdr, info->dlpi_phnum}, info->dlpi_name});
    return 0;
}

/// Stores in `biases_now` which modules of the plan are loaded, and at which addresses. Needs locks
/// of the dynamic linker. A thread inside of malloc must not wait for these locks, because the
/// thread that holds them may itself wait for the thread inside of malloc. So only the start of the
/// program and dlclose call this function.
void find_modules() noexcept
{
    std::ranges::fill(biases_now, not_loaded);
    ::dl_iterate_phdr(see_module, nullptr);
}

/// Prints a warning if the process has another build of a module than the plan. Prints only one
/// warning for each module.
void tell_other_builds() noexcept
{
    for (std::size_t i = 0; i < the_plan.modules.size(); ++i)
        if (std::exchange(has_other_build[i], false) && biases_now[i] == not_loaded &&
            !std::exchange(is_told[i], true))
            tell_build(the_plan.text_of(the_plan.modules[i].name));
}

/// Returns whether this process runs a program of the plan, or another build of it. Returns true if
/// the plan contains no program.
bool is_program_of_plan() noexcept
{
    bool has_program = false;
    for (std::size_t i = 0; i < the_plan.modules.size(); ++i) {
        if (the_plan.modules[i].is_program == 0)
            continue;
        if (biases_now[i] != not_loaded || has_other_build[i])
            return true;
        has_program = true;
    }
    return !has_program;
}

// --- tables

/// Adds a caller to the table, unless the table contains the caller already.
void put(answer_table& t, std::uintptr_t caller, answer is) noexcept
{
    for (std::uintptr_t offset = t.offset_of(caller);; offset = t.after(offset)) {
        answer_table::entry& e = t.at(offset);
        std::uintptr_t found = 0;
        bool const is_new =
            e.caller.compare_exchange_strong(found, caller, std::memory_order_acq_rel);
        if (!is_new && found != caller)
            continue;
        if (is_new)
            t.used.fetch_add(1, std::memory_order_relaxed);
        // Another thread may have added the caller and not stored the answer yet. In the child of a
        // fork, that thread never continues.
        if (is_new || e.is.load(std::memory_order_relaxed) == missing)
            e.is.store(is, std::memory_order_relaxed);
        return;
    }
}

std::size_t capacity_of(answer_table const& t) noexcept
{
    return t.mask / sizeof(answer_table::entry) + 1;
}

/// Adds a caller that is not in the plan, unless the table is too full.
void add_caller(answer_table& t, std::uintptr_t caller, answer is) noexcept
{
    if (&t != &no_answers.table && t.used.load(std::memory_order_relaxed) < capacity_of(t) / 4 * 3)
        put(t, caller, is == unknown && !the_answer_options.are_counted ? answer{ignored} : is);
}

void add_stack(details& d, known_stack const& stack) noexcept
{
    std::size_t const mask = d.stacks.size() - 1;
    std::size_t at = hash_of({stack.frames, stack.count}) & mask;
    while (d.stacks[at].count != 0)
        at = (at + 1) & mask;
    d.stacks[at] = stack;
}

/// Allocates arrays from mapped memory, whose bytes are all 0.
struct memory {
    std::byte* at;
    template <class T>
    std::span<T> take(std::size_t count) noexcept
    {
        auto* const first = reinterpret_cast<T*>(at);
        at += (count * sizeof(T) + 63) / 64 * 64;
        return {first, count};
    }
};

std::uintptr_t address_of(mallard_plan_place const& place) noexcept
{
    std::uintptr_t const bias = biases_now[place.module];
    return bias == not_loaded ? 0 : bias + place.address;
}

/// Returns whether all modules for which a table was built are still at the same addresses.
bool is_base(details const& d) noexcept
{
    return std::equal(
        d.biases.begin(), d.biases.end(), biases_now,
        [](std::uintptr_t then, std::uintptr_t now) { return then == not_loaded || then == now; });
}

/// Returns whether a new table must contain a stack of the plan, because all modules of the stack
/// are loaded now, but not all of them were loaded when the table `base` was built.
bool is_own_stack(mallard_plan_stack const& s, const details* base) noexcept
{
    bool is_own = base == nullptr;
    for (mallard_plan_place const& place : the_plan.frames.subspan(s.first, s.frames)) {
        if (biases_now[place.module] == not_loaded)
            return false;
        is_own = is_own || base->biases[place.module] == not_loaded;
    }
    return is_own;
}

/// Returns the newest table whose stacks a new table for the modules in `biases_now` can share, or
/// null. Sharing saves memory, because a program may load dozens of modules of the plan one after
/// the other, and because stacks use most of the memory of a table.
const details* find_base() noexcept
{
    answer_table* t = newest_table;
    while (t != nullptr && !is_base(*t->more))
        t = t->more->older;
    return t == nullptr ? nullptr : t->more;
}

struct stack_counts {
    std::size_t stacks = 0;
    std::size_t frames = 0;
};

stack_counts count_own_stacks(const details* base) noexcept
{
    stack_counts counts;
    for (mallard_plan_stack const& s : the_plan.stacks)
        if (is_own_stack(s, base)) {
            counts.stacks += 1;
            counts.frames += s.frames;
        }
    return counts;
}

void fill_stacks(details& d) noexcept
{
    std::size_t at = 0;
    for (mallard_plan_stack const& s : the_plan.stacks) {
        if (!is_own_stack(s, d.base))
            continue;
        auto const places = the_plan.frames.subspan(s.first, s.frames);
        auto const frames = d.frames.subspan(at, s.frames);
        std::transform(places.begin(), places.end(), frames.begin(), address_of);
        add_stack(d, {frames.data(), s.frames, narrow(s.answer)});
        at += s.frames;
    }
}

void fill_ranges(details& d) noexcept
{
    std::size_t count = 0;
    for (mallard_plan_range const& r : the_plan.ranges)
        if (std::uintptr_t const bias = biases_now[r.module]; bias != not_loaded)
            d.ranges[count++] = {bias + r.begin, bias + r.end, 0, answer_of_rule(r.rule)};
    d.ranges = d.ranges.first(count);
    std::sort(d.ranges.begin(), d.ranges.end(), [](code_range const& a, code_range const& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
    });
    std::uintptr_t end_max = 0;
    for (code_range& r : d.ranges)
        r.end_max = end_max = std::max(end_max, r.end);
}

/// Builds a table for the modules in `biases_now`. Returns null if there is no memory.
answer_table* make_table() noexcept
{
    const details* const base = find_base();
    stack_counts const own = count_own_stacks(base);
    std::size_t const capacity = std::bit_ceil((the_plan.callers.size() + spare_entries) * 2);
    std::size_t const places = std::bit_ceil(own.stacks * 2 + 1);
    std::size_t const bytes = sizeof(answer_table) + capacity * sizeof(answer_table::entry) +
                              sizeof(details) + the_plan.modules.size() * sizeof(std::uintptr_t) +
                              own.frames * sizeof(std::uintptr_t) + places * sizeof(known_stack) +
                              the_plan.ranges.size() * sizeof(code_range) + std::size_t{8} * 64;
    std::byte* const at = os::map(bytes);
    if (at == nullptr)
        return nullptr;
    memory rest{at};
    answer_table& t = rest.take<answer_table>(1).front();
    rest.take<answer_table::entry>(capacity);
    details& d = rest.take<details>(1).front();
    t.mask = (capacity - 1) * sizeof(answer_table::entry);
    t.more = &d;
    d.biases = rest.take<std::uintptr_t>(the_plan.modules.size());
    d.base = base;
    d.frames = rest.take<std::uintptr_t>(own.frames);
    d.stacks = rest.take<known_stack>(places);
    d.ranges = rest.take<code_range>(the_plan.ranges.size());
    std::copy_n(biases_now, d.biases.size(), d.biases.begin());
    for (mallard_plan_place const& caller : the_plan.callers)
        if (std::uintptr_t const address = address_of(caller))
            put(t, address, answer_of_caller(caller.answer));
    fill_stacks(d);
    fill_ranges(d);
    d.has_one_rule = the_plan.rules.size() == 1;
    d.is_for_malloc = is_for_malloc();
    d.older = std::exchange(newest_table, &t);
    tables += 1;
    return &t;
}

bool is_for_modules_now(details const& d) noexcept
{
    return std::equal(d.biases.begin(), d.biases.end(), biases_now);
}

/// Sets `answers` to the table for the modules in `biases_now`, which is built if necessary.
void use_table_for_modules_now() noexcept
{
    // If a plugin is loaded again at the same address, use its old table.
    for (answer_table* t = newest_table; t != nullptr; t = t->more->older)
        if (is_for_modules_now(*t->more))
            return answers.store(t, std::memory_order_release);
    // The first table serves as fallback, because its modules are never unloaded.
    answer_table* const made = tables < tables_max ? make_table() : nullptr;
    answers.store(made != nullptr ? made : first_table, std::memory_order_release);
}

/// Removes the callers that are not in the plan, because other code may be loaded at their
/// addresses. The removed callers were added after all callers of the plan, so the removal
/// interrupts no probe sequence that leads to a caller of the plan.
void remove_added_callers(answer_table& t) noexcept
{
    for (std::size_t i = 0; i < capacity_of(t); ++i) {
        answer_table::entry& e = t.at(i * sizeof e);
        answer const is = e.is.load(std::memory_order_relaxed);
        if (is == by_range || is == runtime || is == unknown || is == ignored) {
            e.is.store(missing, std::memory_order_relaxed); // for another caller to use this entry
            e.caller.store(0, std::memory_order_release);
            t.used.fetch_sub(1, std::memory_order_relaxed);
        }
    }
}

/// Calls `change` while no other thread changes the table. Returns false if the lock was not
/// available.
template <class Change>
bool change_alone(Change change) noexcept
{
    if (!change_lock.try_take())
        return false;
    change();
    change_lock.give();
    return true;
}

/// Changes the table if the module is in the plan, and was loaded after the program had started.
/// Returns false if the lock of the table was not available.
bool see_new_module(os::code_module const& found) noexcept
{
    auto const headers = os::headers_at(found.begin);
    if (headers.empty() || found.path == nullptr || *found.path == '\0')
        return true;
    os::loaded_module const m{os::bias_of(found.begin, headers), headers, found.path};
    identity const of = identity_of(m);
    bool const is_of_plan = std::ranges::any_of(the_plan.modules, [&](auto const& wanted) {
        return is_same(wanted, m, of) || has_same_name(wanted, m);
    });
    if (!is_of_plan)
        return true;
    return change_alone([&] {
        std::ranges::copy(answers.load(std::memory_order_relaxed)->more->biases, biases_now);
        compare_module(m);
        tell_other_builds();
        use_table_for_modules_now();
    });
}

answer decide_about_new(answer_table& t, request_site const& of) noexcept
{
    if (t.more == nullptr)
        return to_malloc; // there is no plan
    os::code_module const module = os::module_of(of.caller);
    if (!see_new_module(module))
        return unknown;
    if (answer const is = answer_of(of.caller); is != missing)
        return is;
    answer_table& now = *answers.load(std::memory_order_acquire);
    bool const is_of_runtime = !of.is_operator && module.path != nullptr && is_runtime(module.path);
    // A plugin may have loaded the C++ runtime, whose constructor is the first caller.
    if (is_of_runtime)
        see_runtime();
    answer const is = is_of_runtime ? runtime : now.more->ranges.empty() ? unknown : by_range;
    add_caller(now, of.caller, is);
    return is;
}

} // namespace

start_of_plan begin_decisions(plan const& p, answer_options const& for_what,
                              tell_function* tell) noexcept
{
    the_plan = p;
    the_answer_options = for_what;
    tell_build = tell;
    ssize_t const bytes = ::readlink("/proc/self/exe", program_path, sizeof program_path - 1);
    program_path[bytes > 0 ? bytes : 0] = '\0';
    find_modules();
    if (!is_program_of_plan())
        return start_of_plan::of_another_program;
    tell_other_builds();
    first_table = make_table();
    if (first_table == nullptr)
        return start_of_plan::without_memory;
    return start_of_plan::begun;
}

void begin_answers(runtime_function* see) noexcept
{
    see_runtime = see;
    // Look up the operators only if a C++ runtime is loaded. Otherwise the look-up would fail and
    // leave an error message, which the next call of dlsym frees. If a malloc library calls dlsym
    // in its first free, that free would then be called recursively.
    if (has_runtime)
        see_runtime();
    os::on_new_module(
        [](os::code_module const& m) noexcept { static_cast<void>(see_new_module(m)); });
    answers.store(first_table, std::memory_order_release);
}

[[gnu::noinline]] answer decide_slowly(answer known, request_site const& of, os::call_site here,
                                       stack_knowledge* of_thread) noexcept
{
    if (known == missing)
        known = decide_about_new(*answers.load(std::memory_order_acquire), of);
    if (is_rule(known) || is_of_malloc(known) || known == unknown)
        return known;
    if (known == runtime)
        return to_malloc;
    if (of_thread != nullptr && of_thread->region.is_active(here))
        return of_thread->region.rule;
    details const& d = *answers.load(std::memory_order_acquire)->more;
    os::stack_memory* const last = of_thread != nullptr ? &of_thread->last : nullptr;
    answer const is = decide_by_walk(d, known, of.caller, here, last);
    if (is_rule(is) && of_thread != nullptr)
        remember_region(d, here, *of_thread);
    return is;
}

void forget_modules() noexcept
{
    os::forget_code();
    if (answers.load(std::memory_order_acquire)->more == nullptr)
        return;
    static_cast<void>(change_alone([] {
        find_modules();
        std::ranges::fill(has_other_build, false);
        use_table_for_modules_now();
        remove_added_callers(*answers.load(std::memory_order_relaxed));
    }));
}

void lock_decisions() noexcept
{
    change_lock.lock_for_fork();
}

void unlock_decisions(bool is_child) noexcept
{
    change_lock.unlock_after_fork(is_child);
}

} // namespace mallard::plan
