// Replays an op stream. Makes real calls, in threads that start, wait and exit as in the recorded
// program.
#pragma once

#include "check.hpp"
#include "local.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "position.hpp"

#include <pthread.h>

namespace mallard::replay {

/// The state and the counters of one thread in a replay.
struct alignas(64) playing_thread {
    class play* of = nullptr;
    std::uint32_t number = 0;
    std::uint32_t next_ended = 0; ///< the next thread in the list of exited threads
    pthread_t handle{};
    reader from{};
    time_off off{};
    std::uint64_t failures = 0;     ///< calls that failed, but succeeded in the recorded program
    std::uint64_t successes = 0;    ///< calls that succeeded, but failed in the recorded program
    std::uint64_t empty_blocks = 0; ///< calls with size 0 that returned null
    std::uint64_t empty_frees = 0;  ///< free ops whose slot had no block
    std::uint64_t hash = 0;         ///< hash of the calls, with mode::hash
};

/// The measurements of a replay. `used` includes time that does not belong to the replay, such as
/// the time in which a thread reads its next ops. Therefore the report subtracts the `off` time of
/// all threads from the CPU time, and `off_wall_max` from the wall time.
struct play_result {
    process_use used{};
    time_off off{};                 ///< the sum over all threads
    std::uint64_t off_wall_max = 0; ///< maximum `off` wall time of one thread
    std::uint64_t start_rss_kib = 0;
    std::uint64_t peak_rss_kib = 0;
    std::uint64_t after_rss_kib = 0;
    std::uint64_t own_bytes = 0; ///< tables and windows of the replayer, which are all resident
    std::uint64_t failures = 0;
    std::uint64_t successes = 0;
    std::uint64_t empty_blocks = 0;
    std::uint64_t empty_frees = 0;

    /// Returns whether a free found no block in its slot, although every call has returned a block.
    /// The reason is then that another thread had not allocated the block yet.
    bool has_freed_early() const noexcept
    {
        return empty_frees != 0 && failures == 0 && empty_blocks == 0;
    }
};

class play;

/// A function that executes the ops of one thread.
using loop_function = void (*)(play&, playing_thread&) noexcept;

/// Returns the loop for these options.
loop_function loop_for(options const& chosen) noexcept;

/// Replays a stream. Requires that `check` has accepted the stream.
class play {
public:
    play(stream const& of, windows& memory, options const& chosen) noexcept;
    ~play();
    play(play const&) = delete;
    play& operator=(play const&) = delete;

    /// Runs all threads until they exit, and measures their cost.
    play_result run() noexcept;

    local_targets const& targets() const noexcept { return targets_; } ///< the local targets
    /// Returns the hash of the calls of a thread.
    std::uint64_t hash_of(std::size_t thread) const noexcept { return threads_[thread].hash; }

    // The loop of a thread calls the functions below.

    void** slots() const noexcept { return slots_.data(); }
    local_targets& locals() noexcept { return targets_; }
    position& position_of(std::uint32_t thread) noexcept { return positions_[thread]; }
    unsigned spins() const noexcept { return spins_; }
    double pace() const noexcept { return chosen_.pace; }
    std::byte* page_of(playing_thread const& t) noexcept { return memory_.page_of(t.from.into); }
    /// Starts a thread.
    void start(playing_thread& by, std::uint32_t thread) noexcept;
    /// Reads the next ops of a thread.
    op const* refill(playing_thread& of) noexcept;

private:
    static void* run_thread(void* thread) noexcept;
    void join_ended() noexcept;
    void join_all() noexcept;
    void prepare(std::uint32_t thread) noexcept;
    play_result result_of(process_use const& before) noexcept;

    static constexpr std::uint32_t none = UINT32_MAX;

    stream const& stream_;
    windows& memory_;
    options chosen_;
    loop_function loop_;
    unsigned spins_;
    table<void*> slots_;
    table<playing_thread> threads_;
    table<position> positions_;
    local_targets targets_;
    pthread_attr_t attributes_;
    std::mutex join_lock_;
    std::uint32_t joined_ = 1;               // counts the main thread, too; guarded by join_lock_
    std::atomic<std::uint32_t> ended_{none}; // list of threads that have exited and are not joined
};

} // namespace mallard::replay
