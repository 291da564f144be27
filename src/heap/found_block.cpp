#include "found_block.hpp"

#include "misuse.hpp"
#include "registry.hpp"

namespace mallard::engine {
namespace {

[[noreturn]] void stop_at(const void* p, entry e, const char* call) noexcept
{
    if (e == 0 || offset_in(e) == entry_unused)
        stop_at_foreign(p, call);
    stop_at_interior(p, call);
}

} // namespace

found_block find_block(const void* p, const char* call) noexcept
{
    reservation* const in = reservation_of(p);
    if (in == nullptr)
        return {nullptr, 0, entry_large, nullptr};
    std::size_t const slice = in->slice_of(p);
    entry const e = in->entry_at(slice);
    if ((offset_in(e) == entry_large || e == entry_sampled) && in->address_of(slice) == p)
        return {in, slice, e, nullptr};
    if (!is_class(e))
        stop_at(p, e, call);
    slab& s = in->slab_at(slice);
    if (!s.shape().begins(s.offset_of(p)))
        stop_at_interior(p, call);
    if (is_free(p, mark_for(p, the_key)))
        stop_at_double_free(p, call);
    return {in, slice, e, &s};
}

} // namespace mallard::engine
