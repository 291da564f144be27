// The command line of the player.
#pragma once

#include <cstdint>

namespace mallard::replay {

/// What is written to new blocks.
enum class touch {
    none, ///< nothing
    page, ///< one byte of each page
    all,  ///< every byte
};

/// What the player does with the ops.
enum class mode {
    play,         ///< makes the calls, and measures them
    no_op,        ///< the same with an allocator that does nothing
    hash,         ///< makes the calls, and hashes those of each thread
    account,      ///< counts the memory of the local targets, on one thread
    check,        ///< looks for missing edges, and makes no calls
    virtual_call, ///< measures virtual calls; there is no file
};

/// The parsed command line.
struct options {
    const char* file = nullptr;
    replay::mode mode = mode::play;
    replay::touch touch = touch::page;
    double pace = 0;   ///< the factor of recorded gaps; 0: no pauses
    double litter = 0; ///< the share of the blocks of --litter that stays
    bool has_litter = false;

    /// Parses the arguments, or ends the process with a message. `--help` prints the usage.
    static options parse(int count, char** arguments) noexcept;
};

} // namespace mallard::replay
