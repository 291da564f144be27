// error: friends
#include <mallard/slot_map.hpp>

using enemy_key = mallard::key<20, 12, struct enemies>;
using friend_key = mallard::key<20, 12, struct friends>;

bool knows(mallard::slot_map<int, enemy_key>& map, friend_key of_another)
{
    return map.contains(of_another);
}
