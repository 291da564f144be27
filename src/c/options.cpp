// Reads and verifies options. Each kind of error has a separate message.
#include "options.hpp"

namespace mallard::c {
namespace {

static_assert(MALLARD_SYNC_NONE == static_cast<int>(sync::none) &&
              MALLARD_SYNC_MUTEX == static_cast<int>(sync::mutex) &&
              MALLARD_SYNC_LOCK_FREE == static_cast<int>(sync::lock_free) &&
              MALLARD_SYNC_THREAD_CACHED == static_cast<int>(sync::thread_cached));
static_assert(MALLARD_CHECK_OFF == static_cast<int>(check::off) &&
              MALLARD_CHECK_ON == static_cast<int>(check::on));

bool is_known(const char* function, const char* member, int number, int last) noexcept
{
    return (number >= 0 && number <= last) ||
           reject(messages::unknown_value, function, member, number, member);
}

/// A number in the growth options, and the kinds of growth that use this number.
struct growth_member {
    const char* name;
    std::size_t number;
    unsigned users; // bit i is set if the growth with the value i uses this number
    const char* other;
};

constexpr unsigned bit(int kind) noexcept
{
    return 1U << kind;
}

bool uses_all_members(const char* function, const common_options& o) noexcept
{
    constexpr unsigned geometric = bit(MALLARD_GROWTH_GEOMETRIC);
    constexpr unsigned linear = bit(MALLARD_GROWTH_LINEAR);
    constexpr unsigned growing = bit(MALLARD_GROWTH_DEFAULT) | linear | geometric;
    growth_member const members[] = {
        {"growth_num", o.growth_num, geometric, growth_names[MALLARD_GROWTH_GEOMETRIC]},
        {"growth_den", o.growth_den, geometric, growth_names[MALLARD_GROWTH_GEOMETRIC]},
        {"growth_add", o.growth_add, geometric | linear, growth_names[MALLARD_GROWTH_LINEAR]},
        {"step_max_bytes", o.step_max_bytes, growing, growth_names[MALLARD_GROWTH_GEOMETRIC]}};
    for (growth_member const& m : members) {
        if (m.number != 0 && (m.users & bit(o.growth)) == 0)
            return reject(messages::unused_member, function, m.name, m.number,
                          growth_names[o.growth], m.other);
    }
    return true;
}

/// Checks that `low` is at most `high`. The value 0 means the default, and is always accepted.
bool are_in_order(const char* function, const char* low_name, std::size_t low,
                  const char* high_name, std::size_t high) noexcept
{
    if (low == 0 || high == 0 || low <= high)
        return true;
    return reject(messages::out_of_order, function, high_name, high, low_name, low);
}

bool has_size(const char* function, int kind, const char* member, std::size_t number) noexcept
{
    if (number != 0)
        return true;
    return reject(messages::no_step, function, growth_names[kind], member, member);
}

std::size_t num_of(const common_options& o) noexcept
{
    return o.growth_num != 0 ? o.growth_num : 2;
}

std::size_t den_of(const common_options& o) noexcept
{
    return o.growth_den != 0 ? o.growth_den : 1;
}

/// Returns the growth rule for verified numbers.
growth rule_of(const common_options& o, const growth& defaults) noexcept
{
    growth rule = defaults;
    if (o.first_bytes != 0)
        rule.first = o.first_bytes;
    if (o.step_max_bytes != 0)
        rule.max = o.step_max_bytes;
    else
        rule.max = std::max(rule.max, rule.first);
    rule.first = std::min(rule.first, rule.max);
    if (o.limit_bytes != 0)
        rule.limit = o.limit_bytes;

    switch (o.growth) {
    case MALLARD_GROWTH_NONE:
        return growth::none(rule.first);
    case MALLARD_GROWTH_FIXED:
        rule.num = 1;
        break;
    case MALLARD_GROWTH_LINEAR:
        rule.num = 1;
        rule.add = o.growth_add;
        break;
    case MALLARD_GROWTH_GEOMETRIC:
        rule.num = num_of(o);
        rule.den = den_of(o);
        rule.add = o.growth_add;
        break;
    default:
        break;
    }
    return rule;
}

bool read_growth(const char* function, const common_options& o, const growth& defaults,
                 choice& chosen) noexcept
{
    bool const in_buffer = o.from.buffer != nullptr;
    if (!uses_all_members(function, o) ||
        !are_in_order(function, "first_bytes", o.first_bytes, "step_max_bytes", o.step_max_bytes) ||
        !are_in_order(function, "first_bytes", o.first_bytes, "limit_bytes", o.limit_bytes) ||
        !are_in_order(function, "growth_den", den_of(o), "growth_num", num_of(o)))
        return false;
    if (o.growth == MALLARD_GROWTH_NONE && !in_buffer &&
        !has_size(function, o.growth, "first_bytes", o.first_bytes))
        return false;
    if (o.growth == MALLARD_GROWTH_LINEAR &&
        !has_size(function, o.growth, "growth_add", o.growth_add))
        return false;
    chosen.rule = rule_of(o, defaults);
    chosen.fills_buffer = in_buffer && o.first_bytes == 0 && o.growth <= MALLARD_GROWTH_NONE;
    return true;
}

bool read_source(const char* function, const source_choice& from) noexcept
{
    struct pair {
        const char* set;
        const char* unset;
        bool is_half;
    };
    bool const take = from.take != nullptr;
    bool const give = from.give != nullptr;
    bool const buffer = from.buffer != nullptr;
    pair const pairs[] = {
        {"take", "give", take && !give},
        {"give", "take", give && !take},
        {"context", "take", from.context != nullptr && !take},
        {"buffer", "buffer_bytes", buffer && from.buffer_bytes == 0},
        {"buffer_bytes", "buffer", !buffer && from.buffer_bytes != 0},
    };
    for (pair const& p : pairs)
        if (p.is_half)
            return reject(messages::half_a_pair, function, p.set, p.unset);
    return !(take && buffer) || reject(messages::two_sources, function);
}

} // namespace

bool read_struct(const char* function, const char* name, const void* given, void* taken,
                 std::size_t known_bytes) noexcept
{
    std::size_t bytes;
    std::memcpy(&bytes, given, sizeof bytes);
    // In every version, the size of the struct is a multiple of a word.
    if (bytes < sizeof bytes || bytes % sizeof(void*) != 0 || bytes > struct_bytes_max)
        return reject(messages::struct_bytes, function, bytes, name, name);
    std::memcpy(taken, given, std::min(bytes, known_bytes));
    auto const* const all = static_cast<const unsigned char*>(given);
    for (std::size_t i = known_bytes; i < bytes; ++i)
        if (all[i] != 0)
            return reject(messages::struct_newer, function, name, bytes, known_bytes);
    return true;
}

bool read_choice(const char* function, const common_options& o, const growth& defaults,
                 choice& chosen) noexcept
{
    if (!is_known(function, "growth", o.growth, MALLARD_GROWTH_GEOMETRIC) ||
        !is_known(function, "sync", o.sync, MALLARD_SYNC_THREAD_CACHED) ||
        !is_known(function, "reuse", o.reuse, MALLARD_REUSE_LIFO) ||
        !is_known(function, "check", o.check, MALLARD_CHECK_ON) || !read_source(function, o.from) ||
        !read_growth(function, o, defaults, chosen))
        return false;
    chosen.from = o.from;
    chosen.threads = static_cast<sync>(o.sync);
    chosen.checks = static_cast<check>(o.check);
    chosen.order = o.reuse == MALLARD_REUSE_ORDERED ? reuse::ordered : reuse::lifo;
    return true;
}

int write_stats(const char* function, const statistics& s, mallard_stats* out) noexcept
{
    if (out == nullptr)
        return fail(messages::null_argument, function, "out", "a mallard_stats");
    std::size_t const bytes = out->struct_bytes;
    if (bytes < sizeof bytes || bytes % sizeof(void*) != 0 || bytes > struct_bytes_max)
        return fail(messages::struct_bytes, function, bytes, "mallard_stats", "mallard_stats");
    mallard_stats const known{bytes,    s.blocks_live, s.bytes_live, s.bytes_idle, s.bytes_taken,
                              s.chunks, s.growths,     s.refills,    s.flushes};
    std::memset(out, 0, bytes);
    std::memcpy(out, &known, std::min(bytes, sizeof known));
    return MALLARD_ERROR_NONE;
}

} // namespace mallard::c

namespace {

/// Clears an options struct and sets its size, for C89 programs and assignments.
void clear(void* options, std::size_t struct_bytes) noexcept
{
    if (options == nullptr || struct_bytes < sizeof struct_bytes)
        return;
    std::memset(options, 0, struct_bytes);
    std::memcpy(options, &struct_bytes, sizeof struct_bytes);
}

} // namespace

void mallard_pool_options_init(mallard_pool_options* options, size_t struct_bytes)
{
    clear(options, struct_bytes);
}

void mallard_arena_options_init(mallard_arena_options* options, size_t struct_bytes)
{
    clear(options, struct_bytes);
}

void mallard_multipool_options_init(mallard_multipool_options* options, size_t struct_bytes)
{
    clear(options, struct_bytes);
}
