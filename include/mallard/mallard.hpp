// Everything, for those who do not want to choose headers.
#pragma once

#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>
#include <mallard/checked.hpp>
#include <mallard/guarded.hpp>
#include <mallard/multipool.hpp>
#include <mallard/pages.hpp>
#include <mallard/pmr.hpp>
#include <mallard/pool.hpp>
#include <mallard/shared_arena.hpp>
#include <mallard/strategy.hpp>
#include <mallard/trace_reader.hpp>
#include <mallard/traced.hpp>
#include <mallard/winked.hpp>
