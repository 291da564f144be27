// The command line of the replayer.
#pragma once

#include <cstdint>

namespace mallard::replay {

/// Which bytes of new blocks the replayer writes.
enum class touch {
    none, ///< nothing
    page, ///< one byte of each page
    all,  ///< every byte
};

/// How the replayer uses the ops (recorded calls).
enum class mode {
    play,         ///< makes the calls, and measures their cost
    no_op,        ///< measures the replayer with an allocator that does nothing
    hash,         ///< makes the calls, and computes a hash of each thread's calls
    account,      ///< counts the memory of the local allocators, in one thread
    check,        ///< searches for missing edges between threads, and makes no calls
    virtual_call, ///< measures virtual calls, without a file
};

/// The parsed command line.
struct options {
    const char* file = nullptr;
    replay::mode mode = mode::play;
    replay::touch touch = touch::page;
    double pace = 0;   ///< factor for recorded waiting times; 0 to never wait
    double litter = 0; ///< the share of the --litter blocks that is not freed
    bool has_litter = false;

    /// Parses the arguments. Ends the process with a message if they are invalid. `--help` prints
    /// the usage.
    static options parse(int count, char** arguments) noexcept;
};

} // namespace mallard::replay
