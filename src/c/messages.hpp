// All error messages of the C API. A message has three lines, which contain what happened, the
// state, and what to do next. The first value is the name of the function that failed.
#pragma once

#include "error.hpp"

namespace mallard::c::messages {

inline constexpr message null_handle{
    MALLARD_ERROR_NULL, "%s: the %s is NULL\n"
                        "  nothing was done\n"
                        "  help: check the result of %s; mallard_explain returns the reason\n"};

inline constexpr message null_argument{MALLARD_ERROR_NULL, "%s: %s is NULL\n"
                                                           "  nothing was done\n"
                                                           "  help: pass the address of %s\n"};

inline constexpr message struct_bytes{
    MALLARD_ERROR_STRUCT, "%s: struct_bytes is %n, and no %s has that size\n"
                          "  nothing was done\n"
                          "  help: begin with a struct that is all 0 and set its struct_bytes to "
                          "sizeof(%s)\n"};

inline constexpr message struct_newer{
    MALLARD_ERROR_STRUCT, "%s: an option is set that this library does not support\n"
                          "  the caller's %s has %n bytes, the library's %n; nothing was made\n"
                          "  help: leave the option 0, or install the mallard-c that the program "
                          "was compiled for\n"};

inline constexpr message unknown_value{MALLARD_ERROR_OPTION,
                                       "%s: %s is %i, which is not a valid value\n"
                                       "  nothing was made\n"
                                       "  help: see enum mallard_%s in mallard/c/mallard.h\n"};

inline constexpr message reserved{MALLARD_ERROR_OPTION,
                                  "%s: reserved is %i, not 0\n"
                                  "  nothing was made\n"
                                  "  help: clear the struct before its members are set\n"};

inline constexpr message no_block_bytes{
    MALLARD_ERROR_OPTION, "%s: block_bytes is 0\n"
                          "  no pool was made: all blocks of a pool have the same size\n"
                          "  help: set block_bytes to the sizeof of the type in a block\n"};

inline constexpr message no_step{MALLARD_ERROR_OPTION,
                                 "%s: growth is %s, and %s is 0\n"
                                 "  nothing was made: chunk requests would have no size\n"
                                 "  help: set %s to a number of bytes\n"};

inline constexpr message unused_member{MALLARD_ERROR_CONFLICT,
                                       "%s: %s is %n, and growth is %s, which does not use it\n"
                                       "  nothing was made\n"
                                       "  help: leave it 0, or set growth to %s\n"};

inline constexpr message out_of_order{MALLARD_ERROR_CONFLICT,
                                      "%s: %s is %n, less than %s, which is %n\n"
                                      "  nothing was made\n"
                                      "  help: raise the former or lower the latter; 0 is the "
                                      "default of both\n"};

inline constexpr message half_a_pair{MALLARD_ERROR_CONFLICT, "%s: %s is set and %s is not\n"
                                                             "  nothing was made\n"
                                                             "  help: set both, or neither\n"};

inline constexpr message two_sources{
    MALLARD_ERROR_CONFLICT, "%s: take and buffer are both set\n"
                            "  nothing was made: memory comes from one source\n"
                            "  help: leave out the buffer, or let take cut chunks from it\n"};

inline constexpr message bad_align{
    MALLARD_ERROR_ALIGN, "%s: align is %n, which is not a power of two\n"
                         "  nothing was done\n"
                         "  help: pass 0 for the default, or the alignment of the type: 8, 16, "
                         "32, ...\n"};

inline constexpr message unsupported_sync{MALLARD_ERROR_UNSUPPORTED,
                                          "%s: %s does not support sync %s\n"
                                          "  nothing was made\n"
                                          "  help: set sync to %s\n"};

inline constexpr message growing_lock_free{
    MALLARD_ERROR_CONFLICT, "%s: sync is MALLARD_SYNC_LOCK_FREE, and growth is %s\n"
                            "  nothing was made: a lock-free pool has one chunk and never grows\n"
                            "  help: set growth to MALLARD_GROWTH_NONE and first_bytes to the "
                            "bytes of that chunk, or sync to MALLARD_SYNC_THREAD_CACHED\n"};

inline constexpr message unsupported_call{
    MALLARD_ERROR_UNSUPPORTED, "%s: a shared arena does not support this call\n"
                               "  nothing was done: each thread bumps a separate pointer\n"
                               "  help: create the arena with sync MALLARD_SYNC_NONE, one for "
                               "each thread\n"};

inline constexpr message unsupported_order{
    MALLARD_ERROR_UNSUPPORTED,
    "%s: only pools with reuse lifo and sync none or mutex can compute this size\n"
    "  other pools align chunks to their size, so the result depends "
    "on the buffer's address\n"
    "  help: set reuse to MALLARD_REUSE_LIFO, or pass a buffer of "
    "twice the bytes of its blocks\n"};

inline constexpr message too_large{
    MALLARD_ERROR_TOO_LARGE, "%s: %n bytes, aligned to %n, are more than any address space has\n"
                             "  nothing was allocated\n"
                             "  help: check how the size is computed; did a subtraction wrap?\n"};

inline constexpr message heap_failed{
    MALLARD_ERROR_REFUSED, "%s: malloc failed to allocate %n bytes, aligned to %n\n"
                           "  nothing has changed\n"
                           "  help: free something and call again; `ulimit -v` shows whether the "
                           "process is limited\n"};

inline constexpr message take_failed{
    MALLARD_ERROR_REFUSED, "%s: the caller's take did not return %n bytes, aligned to %n\n"
                           "  nothing has changed; after each failure, take was asked for less\n"
                           "  help: free something and call again, or let take return more\n"};

inline constexpr message buffer_full{
    MALLARD_ERROR_REFUSED, "%s: the buffer has no %n bytes left, aligned to %n\n"
                           "  nothing has changed\n"
                           "  help: free something and call again, or pass a larger buffer; "
                           "mallard_pool_bytes_for returns the size\n"};

inline constexpr message buffer_used_up{
    MALLARD_ERROR_REFUSED, "%s: the buffer of %n bytes is used up\n"
                           "  nothing has changed\n"
                           "  help: free something and call again, or pass a larger buffer; "
                           "mallard_pool_bytes_for returns the size\n"};

inline constexpr message others_failed{
    MALLARD_ERROR_REFUSED, "%s: the source failed for another thread of the same allocator\n"
                           "  nothing has changed\n"
                           "  help: free something and call again\n"};

inline constexpr message misaligned{
    MALLARD_ERROR_CHUNK, "%s: the caller's take returned %p, which is not a multiple of %n\n"
                         "  the chunk was returned, and nothing has changed\n"
                         "  help: let take return a multiple of its third argument, align\n"};

inline constexpr message limit_reached{
    MALLARD_ERROR_LIMIT, "%s: the limit of %n bytes leaves no room for this request\n"
                         "  nothing has changed; a chunk also holds its header\n"
                         "  help: free something and call again, or raise limit_bytes "
                         "(first_bytes, where growth is none)\n"};

inline constexpr message not_in_place{
    MALLARD_ERROR_PLACE,
    "%s: the block cannot grow from %n to %n bytes in place\n"
    "  the block is unchanged: it is not the last block, or its chunk is full\n"
    "  help: allocate a larger block and copy\n"};

} // namespace mallard::c::messages
