// Everything, for those who do not want to choose headers.
#pragma once

#include <mallard/allocator.hpp>
#include <mallard/arena.hpp>
#include <mallard/by_size.hpp>
#include <mallard/counted.hpp>
#include <mallard/exception_test.hpp>
#include <mallard/failing.hpp>
#include <mallard/fallback.hpp>
#include <mallard/limited.hpp>
#include <mallard/multipool.hpp>
#include <mallard/observed.hpp>
#include <mallard/pages.hpp>
#include <mallard/pmr.hpp>
#include <mallard/pool.hpp>
#include <mallard/report.hpp>
#include <mallard/shared_arena.hpp>
#include <mallard/strategy.hpp>
#include <mallard/synchronized.hpp>
#include <mallard/winked.hpp>
