#include "local.hpp"

#include <algorithm>

namespace mallard::replay {

void local_target::open() noexcept
{
    ref const from(heap_);
    switch (description_.allocator) {
    case mallard_replay_arena:
        std::construct_at(&arena_, arena_growth(), from);
        open_ = kind::is_arena;
        return;
    case mallard_replay_multipool:
        // Use the default type if possible, because only the default multipool has slabs. A
        // multipool whose growth is set at run time has none.
        if (description_.first_chunk == 0) {
            std::construct_at(&multipool_, from);
            open_ = kind::is_multipool;
        } else {
            growth rule = multipool_options{}.grow;
            rule.first = description_.first_chunk;
            std::construct_at(&sized_multipool_, from, rule);
            open_ = kind::is_sized_multipool;
        }
        return;
    case mallard_replay_multipool_over_arena:
        std::construct_at(&layered_, arena_type(arena_growth(), from));
        open_ = kind::is_layered;
        return;
    }
}

void local_target::close() noexcept
{
    visit([](auto& a) noexcept {
        std::destroy_at(&a);
        return nullptr;
    });
    open_ = kind::closed;
}

local_targets::local_targets(stream const& of) noexcept
{
    std::uint32_t last_rule = 0;
    for (mallard_replay_target const& t : of.targets())
        last_rule = std::max(last_rule, t.rule);
    rules_ = table<heap_of_rule>(last_rule + std::size_t{1}, "the rules");
    targets_ = table<local_target>(of.targets().count(), "the targets");
    for (heap_of_rule& rule : rules_)
        std::construct_at(&rule, std::in_place, all_);
    for (std::size_t i = 0; i < targets_.count(); ++i)
        std::construct_at(&targets_[i], of.targets()[i], rules_[of.targets()[i].rule]);
}

local_targets::~local_targets()
{
    for (local_target& target : targets_)
        std::destroy_at(&target);
}

} // namespace mallard::replay
