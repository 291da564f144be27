// Every member of every allocator compiles, used or not; and clang-tidy sees it.
#include <mallard/mallard.hpp>

namespace mallard {

constexpr arena_options arena_checks{.checks = check::on};
constexpr pool_options lifo{.block = 64, .order = reuse::lifo};
constexpr pool_options lifo_checks{.block = 64, .order = reuse::lifo, .checks = check::on};
constexpr pool_options ordered_checks{.checks = check::on};

template class pages<>;
template class arena<>;
template class arena<pages<>, arena_checks>;
template class scope<arena<>>;
template class pool<>;
template class pool<borrowed, lifo>;
template class pool<pmr_source, lifo_checks>;
template class pool<pages<>, ordered_checks>;
template class multipool<>;
template class multipool<arena<>>;

template class counted<multipool<>>;
template class counted<pages<>, sync::lock_free>;
template class limited<arena<>>;
template class limited<pages<>, sync::lock_free>;
template class failing<pool<>>;
template class fallback<borrowed, default_heap>;
template class fallback<pool<>, multipool<>>;
template class by_size<64, pool<>, multipool<>>;
template class synchronized<counted<arena<>>>;
template class ref<limited<pool<>>>;

struct every_event {
    void grew(chunk) noexcept {}
    void refused(layout) noexcept {}
    void gave(chunk) noexcept {}
    void exhausted(layout) noexcept {}
    void destroyed(const snapshot&) noexcept {}
};
template class observed<default_heap, every_event>;
template class observed<pool<>, every_event>;

template class allocator<int, pool<>>;
template class pmr_resource<arena<>>;
template class pmr_resource<multipool<>>;
template class winked<std::pmr::vector<int>>;
template struct strategy<1>;
template struct strategy<14>;

} // namespace mallard
