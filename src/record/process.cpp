// Attaches the process, its children and its threads to the ring.
#include "process.hpp"

#include "../os/errno_kept_linux.hpp"
#include "../preload/next.hpp"
#include "attach_request.hpp"

#include <mallard/detail/base/sampling.hpp>

#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace mallard::record {

using namespace preload;

constinit settings the;
constinit process_page this_process{};
constinit thread_local thread_state this_thread;

namespace {

enum : int { not_tried, trying, attached, off, asleep };

// The child of a fork inherits these variables from its parent.
constinit std::atomic<int> attachment{not_tried};
constinit std::size_t ring_bytes = 0;
constinit char* process_words = nullptr; ///< "PID:PROCESS" in the environment, ten digits each
constinit pid_t command = 0;             ///< process ID; 0 if not visible to this process
constinit pthread_key_t at_thread_exit;
constinit bool is_loaded_late = false;         ///< whether `attach_running` was called
constinit bool is_prepared = false;            ///< whether `prepare_process` has succeeded
constinit thread_state* all_threads = nullptr; ///< threads that are recorded; empty if preloaded
constinit pid_t pid_of_all_threads = 0;

// Variables of this process. In the child of a fork, `attach_child` sets them again.
constinit std::uint32_t own_pid = 0;
constinit std::uint32_t own_number = 0; ///< `this_process.number`, which a fork clears
constinit std::uint32_t process_before = 0;
constinit const char* how_process_began = nullptr; ///< null after the process record is written
constinit bool is_new_program = false;             ///< whether modules are to be recorded

constexpr unsigned number_digits = 10;
constexpr std::size_t words_length = 2 * number_digits + 2; ///< length of ":PID:PROCESS"

void write_number(char* at, std::uint32_t number) noexcept
{
    for (unsigned digit = number_digits; digit-- != 0; number /= 10)
        at[digit] = "0123456789"[number % 10];
}

/// Writes the IDs of this process into the variable MALLARD_RING, where a program that this process
/// executes reads them.
void tell_next_program() noexcept
{
    if (process_words == nullptr)
        return;
    write_number(process_words, own_pid);
    write_number(process_words + number_digits + 1, own_number);
}

bool is_ring(ring_header const& ring, std::size_t bytes) noexcept
{
    static constexpr unsigned char magic[8] = {0x89, 'M', 'R', 'I', 'N', 'G', '\r', '\n'};
    return std::memcmp(ring.magic, magic, sizeof magic) == 0 && ring.version == ring_version &&
           ring.data_offset % 4096 == 0 && ring.data_offset <= bytes &&
           ring.segments <= (bytes - ring.data_offset) / segment_bytes;
}

/// Opens the ring that MALLARD_RING names. The value is PATH:PID:PROCESS, or
/// PATH:PID:PROCESS:SOCKET:TOKEN if the command also sends the ring over a socket. The path leads
/// to a file descriptor of the command. A process that runs as another user, in another user
/// namespace or below another root may be unable to open this path. Returns -1 on failure. Sets
/// `command` to the process ID of the command.
int open_ring(char* value) noexcept
{
    char* const words = std::strchr(value, ':');
    if (words != nullptr)
        *words = '\0';
    int const file = ::open(value, O_RDWR | O_CLOEXEC);
    command = static_cast<pid_t>(std::strncmp(value, "/proc/", 6) == 0 ? std::atoi(value + 6) : 0);
    if (words == nullptr)
        return file;
    *words = ':';
    const char* const socket = words + words_length + 1;
    if (file >= 0 || std::strlen(words) != words_length + socket_name_length + token_length + 2)
        return file;
    return receive_ring(socket, socket + socket_name_length + 1, command);
}

/// Maps the ring, and closes the file. Returns null if the file cannot be mapped, or is not a ring
/// of this version. `before` is a ring that this process has left, or null. If both rings have the
/// same size, the new ring is mapped at the address of `before`.
ring_header* map_ring(int file, ring_header* before) noexcept
{
    if (file < 0)
        return nullptr;
    struct stat of{};
    void* at = MAP_FAILED;
    if (::fstat(file, &of) == 0 && static_cast<std::size_t>(of.st_size) >= segment_table_offset) {
        auto const bytes = static_cast<std::size_t>(of.st_size);
        bool const fits = before != nullptr && bytes == ring_bytes;
        at = ::mmap(fits ? before : nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | (fits ? MAP_FIXED : 0), file, 0);
        ring_bytes = bytes;
    }
    ::close(file);
    if (at == MAP_FAILED)
        return nullptr;
    auto* const ring = static_cast<ring_header*>(at);
    if (is_ring(*ring, ring_bytes))
        return ring;
    ::munmap(at, ring_bytes);
    return nullptr;
}

void read_settings(ring_header& ring) noexcept
{
    auto* const bytes = reinterpret_cast<std::byte*>(&ring);
    the.ring = &ring;
    the.segments = reinterpret_cast<ring_segment*>(bytes + segment_table_offset);
    the.records = reinterpret_cast<mallard_trace_record*>(bytes + ring.data_offset);
    the.sample_rate = ring.sample_bytes == 0 ? 0 : 1 / static_cast<double>(ring.sample_bytes);
    the.samples = ring.sample_bytes != 0;
    the.time_mask = ring.time_calls - 1;
    the.has_stacks = ring.stacks != ring_no_stacks;
    the.has_free_stacks = the.has_stacks && ring.free_stacks != 0;
    the.mode = ring.stacks == ring_caller           ? os::stack_mode::caller
               : ring.stacks == ring_frame_pointers ? os::stack_mode::frame_pointers
                                                    : os::stack_mode::unwound;
    the.follows_fork = (ring.follow & ring_follow_fork) != 0;
    the.reads_counter = ring.clock == mallard_trace_clock_tsc;
    the.clock_ticks = ring.clock_ticks;
}

void begin_process(const char* how, std::uint32_t before) noexcept
{
    own_pid = static_cast<std::uint32_t>(::getpid());
    how_process_began = how;
    process_before = before;
    own_number = the.ring->processes.fetch_add(1, std::memory_order_relaxed) + 1;
    this_process.number.store(own_number, std::memory_order_release);
    tell_next_program();
}

/// Replaces the ring by private pages in a child whose fork interrupted a call of malloc's family.
/// The child finishes that call, and must not write to the segment of the parent. Without
/// `follows_fork`, the child has no mapping of the ring (MADV_DONTFORK). With `follows_fork`, only
/// a fork inside `append` needs private pages, because otherwise the child reserves its own segment
/// before it writes.
void protect_ring_of_parent() noexcept
{
    activity const now = this_thread.now.load(std::memory_order_relaxed);
    if (now == in_program || (now == in_call && the.follows_fork) ||
        this_process.number.load(std::memory_order_relaxed) != 0)
        return;
    static_cast<void>(::mmap(the.ring, ring_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0));
    attachment.store(off, std::memory_order_relaxed);
}

void in_child() noexcept;
void end_thread(void* state) noexcept;

/// Prepares the process for its first ring, with system calls that are made only once.
bool prepare_process() noexcept
{
    is_prepared =
        is_prepared || (::madvise(&this_process, sizeof this_process, MADV_WIPEONFORK) == 0 &&
                        ::pthread_key_create(&at_thread_exit, end_thread) == 0 &&
                        ::pthread_atfork(nullptr, nullptr, in_child) == 0);
    return is_prepared;
}

/// Attaches the process to the ring that the environment names. Returns false if the environment
/// names no ring, or if the ring cannot be used.
bool attach_program() noexcept
{
    char* const value = find_ring_variable();
    if (value == nullptr)
        return false;
    ring_header* const ring = map_ring(open_ring(value), nullptr);
    if (ring == nullptr)
        return false;
    bool const follows_exec = (ring->follow & ring_follow_exec) != 0;
    if (!prepare_process()) {
        ring->refused.store(static_cast<std::uint32_t>(errno), std::memory_order_release);
        ::munmap(ring, ring_bytes);
        return false;
    }
    ::madvise(ring, ring_bytes, MADV_DONTDUMP);
    if (command != 0 && ::kill(command, 0) != 0 && errno == ESRCH)
        command = 0;
    read_settings(*ring);
    if (!the.follows_fork)
        ::madvise(ring, ring_bytes, MADV_DONTFORK);
    if (the.has_stacks)
        os::on_new_module(
            [](os::code_module const& m) noexcept { append_new_module(m.begin, m.path); });
    char* const words = std::strchr(value, ':');
    std::uint32_t before = 0;
    bool is_same_process = false;
    if (!follows_exec) {
        clear_environment();
    } else if (words != nullptr && std::strlen(words) >= words_length) {
        process_words = words + 1;
        is_same_process = std::atoi(process_words) == ::getpid();
        before = static_cast<std::uint32_t>(std::atoi(process_words + number_digits + 1));
    }
    is_new_program = true;
    begin_process(before == 0 ? "start" : is_same_process ? "exec" : "fork", before);
    ring->attached.store(1, std::memory_order_release);
    return true;
}

/// Attaches the child of a fork or clone, if children are recorded.
bool attach_child() noexcept
{
    if (!the.follows_fork || this_process.is_attaching.exchange(1, std::memory_order_acquire) != 0)
        return false;
    begin_process("fork", own_number);
    return true;
}

/// Attaches the process, which may be the child of a fork. Returns true if this call has assigned a
/// number to the process.
bool attach() noexcept
{
    if (!find_next())
        return false;
    int seen = attachment.load(std::memory_order_acquire);
    if (seen == attached)
        return attach_child();
    if (seen != not_tried || !attachment.compare_exchange_strong(seen, trying))
        return false;
    bool const done = attach_program();
    attachment.store(done ? attached : off, std::memory_order_release);
    return done;
}

/// The size of the buffer for the frames of the stack that a thread last recorded. The buffer has
/// room for the frames that one event can contain.
constexpr std::size_t frames_bytes = (os::fresh_frames_max + 4) * sizeof(os::stack_frame);

void map_frames(thread_state& t) noexcept
{
    t.stack.forget(); // in the child of a fork, the reader has no stack of this thread
    if (!the.has_stacks || !t.stack.frames.empty())
        return;
    void* const at = ::mmap(nullptr, frames_bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at != MAP_FAILED)
        t.stack.frames = {static_cast<os::stack_frame*>(at), os::fresh_frames_max + 4};
}

void unmap_frames(thread_state& t) noexcept
{
    if (!t.stack.frames.empty())
        ::munmap(t.stack.frames.data(), frames_bytes);
    t.stack.frames = {};
    t.stack.forget();
}

/// A scope in which only this thread uses the list of threads.
class list_scope {
public:
    list_scope() noexcept
    {
        while (this_process.list_is_in_use.exchange(1, std::memory_order_acquire) != 0)
            ::sched_yield();
    }
    list_scope(const list_scope&) = delete;
    list_scope& operator=(const list_scope&) = delete;
    ~list_scope() { this_process.list_is_in_use.store(0, std::memory_order_release); }
};

/// Adds a thread to the list of threads, unless the list contains the thread already.
void add_to_list(thread_state& t) noexcept
{
    list_scope const alone;
    for (thread_state* other = all_threads; other != nullptr; other = other->after)
        if (other == &t)
            return;
    t.after = all_threads;
    all_threads = &t;
}

void remove_from_list(thread_state& t) noexcept
{
    list_scope const alone;
    for (thread_state** at = &all_threads; *at != nullptr; at = &(*at)->after) {
        if (*at != &t)
            continue;
        *at = t.after;
        return;
    }
}

/// Assigns a number to the thread and writes a record of it. The first thread also writes the
/// record of the process.
void start(thread_state& t) noexcept
{
    t.now.store(in_call, std::memory_order_relaxed);
    t.process = this_process.number.load(std::memory_order_acquire);
    t.number = the.ring->threads.fetch_add(1, std::memory_order_relaxed) + 1;
    t.system_thread = static_cast<std::uint32_t>(::syscall(SYS_gettid));
    t.sequence = t.ended_in = t.exit_rounds = 0;
    t.segment = nullptr; // in the child of a fork, the segment belongs to the parent
    t.at = t.end = nullptr;
    t.random = os::monotonic_ns() ^ std::uint64_t{t.number} << 40;
    t.left = sampling::draw_distance(t.random);
    map_frames(t);
    ::pthread_setspecific(at_thread_exit, &t);
    if (is_loaded_late) [[unlikely]]
        add_to_list(t);
    if (const char* const how = std::exchange(how_process_began, nullptr)) {
        append_process(t, how, process_before);
        if (std::exchange(is_new_program, false)) // the child of a fork has its parent's modules
            append_modules(t);
    }
    char name[16]{};
    ::prctl(PR_GET_NAME, name);
    append_text(t,
                {.t = 0,
                 .addr = t.system_thread,
                 .what = mallard_trace_pack(0, 0, mallard_trace_thread_start, 0),
                 .stack = t.number,
                 .dur = t.process},
                name, ::strnlen(name, sizeof name));
    t.now.store(in_program, std::memory_order_relaxed);
}

/// Runs when a thread exits, and again after the destructors of the thread's other keys. In the
/// last of these rounds, records that the thread has exited.
void end_thread(void* state) noexcept
{
    auto& t = *static_cast<thread_state*>(state);
    t.exit_rounds += 1;
    if (t.exit_rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
        ::pthread_setspecific(at_thread_exit, &t);
        return;
    }
    if (is_loaded_late)
        remove_from_list(t);
    if (t.process != this_process.number.load(std::memory_order_relaxed))
        return unmap_frames(t);
    t.now.store(in_call, std::memory_order_relaxed);
    append_text(t,
                {.t = 0,
                 .addr = 0,
                 .what = mallard_trace_pack(0, 0, mallard_trace_thread_end, 0),
                 .stack = t.number,
                 .dur = 0},
                nullptr, 0);
    t.ended_in = std::exchange(t.process, no_process);
    unmap_frames(t);
    leave(t);
}

void in_child() noexcept
{
    protect_ring_of_parent();
    if (attach())
        start(this_thread);
}

} // namespace

std::uint32_t system_process() noexcept
{
    return own_pid;
}

bool command_has_ended() noexcept
{
    if (is_loaded_late && this_process.number.load(std::memory_order_relaxed) == 0)
        return true;
    if (command == 0 || ::kill(command, 0) == 0 || errno != ESRCH)
        return false;
    the.ring->recording.store(0, std::memory_order_relaxed);
    return true;
}

[[gnu::cold, gnu::noinline]] thread_state* enter_slowly(thread_state& t) noexcept
{
    os::errno_kept const kept;
    std::uint64_t const from = std::exchange(t.from, 0);
    if (activity const now = t.now.load(std::memory_order_relaxed); now != in_program) {
        if (now == in_write && t.process == this_process.number.load(std::memory_order_relaxed))
            the.ring->lost_nested.fetch_add(1, std::memory_order_relaxed);
        return nullptr;
    }
    t.now.store(in_call, std::memory_order_relaxed);
    bool const is_attached = this_process.number.load(std::memory_order_acquire) != 0 || attach();
    bool const is_recorded =
        is_attached && the.ring->recording.load(std::memory_order_relaxed) != 0;
    std::uint32_t const process = this_process.number.load(std::memory_order_relaxed);
    if (is_recorded && t.process != process && t.ended_in != process)
        start(t);
    t.now.store(is_recorded ? in_call : in_program, std::memory_order_relaxed);
    t.from = is_recorded ? from : 0;
    return is_recorded ? &t : nullptr;
}

[[gnu::cold, gnu::noinline]] thread_state* enter_again(thread_state& t) noexcept
{
    t.now.store(in_program, std::memory_order_relaxed);
    return enter_slowly(t);
}

/// Leaves a hook in a thread whose end is recorded already. Seals the segment, because possibly no
/// other call follows.
[[gnu::cold, gnu::noinline]] void leave_late(thread_state& t) noexcept
{
    seal(t);
    t.now.store(in_program, std::memory_order_relaxed);
}

namespace {

/// Runs a memory barrier in each thread of the process, so that all later reads of a thread come
/// after its earlier writes. Returns false if the system does not support this.
bool pass_barrier_in_all_threads() noexcept
{
    return ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0 ||
           ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}

/// Waits until no thread is in a hook. Returns false if a thread stays in a hook for about two
/// seconds, for example because a signal handler has left the hook by a jump.
bool wait_for_hooks() noexcept
{
    timespec const pause{0, 1'000'000};
    if (!pass_barrier_in_all_threads())
        ::nanosleep(&pause, nullptr);
    for (int turn = 0; turn < 2000; ++turn) {
        bool is_idle = true;
        {
            list_scope const alone;
            for (thread_state* t = all_threads; t != nullptr; t = t->after)
                is_idle &= t->now.load(std::memory_order_acquire) == in_program;
        }
        if (is_idle)
            return true;
        ::nanosleep(&pause, nullptr);
    }
    return false;
}

} // namespace

std::int32_t attach_running(int ring_file, std::uint32_t process, pid_t of_command) noexcept
{
    // The child of a process that was recorded has another process ID.
    bool const is_same_process = std::exchange(pid_of_all_threads, ::getpid()) == ::getpid();
    int seen = attachment.load(std::memory_order_acquire);
    if (seen == attached && is_same_process)
        return attach_busy;
    if (seen == trying || !attachment.compare_exchange_strong(seen, trying))
        return attach_busy;
    is_loaded_late = true;
    ring_header* const ring = map_ring(ring_file, is_same_process ? the.ring : nullptr);
    std::int32_t const status = ring == nullptr      ? attach_no_ring
                                : !prepare_process() ? attach_refused
                                                     : attach_done;
    if (status != attach_done) {
        attachment.store(seen == attached ? off : seen, std::memory_order_release);
        return status;
    }
    ::madvise(ring, ring_bytes, MADV_DONTDUMP);
    ::madvise(ring, ring_bytes, MADV_DONTFORK);
    ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    command = of_command;
    read_settings(*ring);
    if (!is_same_process)
        all_threads = nullptr; // the list contains threads of the parent
    for (thread_state* t = all_threads; t != nullptr; t = t->after)
        t->process = earlier_process;
    os::forget_code(); // so that the modules are recorded again
    if (the.has_stacks)
        os::on_new_module(
            [](os::code_module const& m) noexcept { append_new_module(m.begin, m.path); });
    is_new_program = true;
    attachment.store(attached, std::memory_order_release);
    begin_process("attach", 0);
    own_pid = process; // differs from getpid() in another PID namespace
    start(this_thread);
    ring->attached.store(1, std::memory_order_release);
    return attach_done;
}

void leave_ring() noexcept
{
    the.ring->recording.store(0, std::memory_order_relaxed);
    this_process.number.store(0, std::memory_order_seq_cst);
    static_cast<void>(wait_for_hooks());
    static_cast<void>(::mmap(the.ring, ring_bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0));
    attachment.store(asleep, std::memory_order_release);
}

namespace {

/// Attaches the process while the library is loaded, before other constructors run. An allocation
/// by the dynamic linker may have attached the process already. If `mallard record --pid` makes a
/// running process load the library, does nothing, because `attach_running` attaches the process.
[[gnu::constructor]] void attach_at_load() noexcept
{
    os::errno_kept const kept;
    if (find_ring_variable() == nullptr)
        return;
    thread_state& t = this_thread;
    bool const is_attached = this_process.number.load(std::memory_order_relaxed) != 0 || attach();
    if (is_attached && t.process == no_process)
        start(t);
}

} // namespace

} // namespace mallard::record
