// Everything, for those who do not want to choose headers.
#pragma once

#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>
#include <mallard/file_arena.hpp>
#include <mallard/multipool.hpp>
#include <mallard/object_pool.hpp>
#include <mallard/offset_ptr.hpp>
#include <mallard/pages.hpp>
#include <mallard/pmr.hpp>
#include <mallard/pool.hpp>
#include <mallard/protected_pages.hpp>
#include <mallard/secondary_map.hpp>
#include <mallard/segment_pool.hpp>
#include <mallard/shared_arena.hpp>
#include <mallard/shared_slot_map.hpp>
#include <mallard/slot_map.hpp>
#include <mallard/strategy.hpp>
#include <mallard/winked.hpp>
