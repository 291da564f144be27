// Instantiates every member of every allocator, so that compilers and clang-tidy see all of them.
#include <mallard/mallard.hpp>

namespace mallard {

constexpr arena_options arena_checks{.checks = check::on};
constexpr pool_options lifo{.block = 64, .order = reuse::lifo};
constexpr pool_options lifo_checks{.block = 64, .order = reuse::lifo, .checks = check::on};
constexpr pool_options ordered_checks{.checks = check::on};
constexpr slot_map_options slot_map_checks{.checks = check::on};
constexpr object_pool_options counts_local{.counts = counts::local, .checks = check::on};
constexpr object_pool_options counts_shared{
    .counts = counts::shared, .grow = growth::none(4096), .threads = sync::lock_free};
constexpr object_pool_options single{.grow = growth::none(4096)};

struct both_hooks {
    void acquired(int&) {}
    void released(int&) noexcept {}
};

template class pages<>;
template class protected_pages<>;
template class unsealed<protected_pages<>>;
template class segment_pool<48>;
template class arena<>;
template class arena<pages<>, arena_checks>;
template class scope<arena<>>;
template class pool<>;
template class pool<borrowed, lifo>;
template class pool<pmr_source, lifo_checks>;
template class pool<pages<>, ordered_checks>;
template class multipool<>;
template class multipool<arena<>>;

template class slot_map<int>;
template class slot_map<int, key64, default_heap, slot_map_checks>;
template class slot_map<int, key32, fixed<10>>;
template class secondary_map<key32, int>;
template class sparse_secondary_map<key32, int>;
template class shared_slot_map<int>;

template class object_pool<int>;
template class object_pool<int, default_heap, counts_local>;
template class object_pool<int, default_heap, counts_shared>;
template class object_pool<int, borrowed, single, both_hooks>;
template class box<int>;
template class shared_handle<int, object_pool<int, default_heap, counts_local>>;
template class shared_handle<int, object_pool<int, default_heap, counts_shared>>;
template class weak<int, object_pool<int, default_heap, counts_local>>;
template class weak<int, object_pool<int, default_heap, counts_shared>>;

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
    void failed(layout) noexcept {}
    void gave(chunk) noexcept {}
    void exhausted(layout) noexcept {}
    void destroyed(const snapshot&) noexcept {}
};
template class observed<default_heap, every_event>;
template class observed<pool<>, every_event>;

template class allocator<int, pool<>>;
template class offset_ptr<int>;
template class pmr_resource<file_arena>;
template int* file_arena::root<int>();
template bool file_arena::set_root<int>(int*);
template int* file_arena::root_or_make<int>();
template class pmr_resource<arena<>>;
template class pmr_resource<multipool<>>;
template class winked<std::pmr::vector<int>>;

} // namespace mallard
