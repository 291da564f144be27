/* The engine of malloc: one thread forks; other threads read lines and flush all streams.

   take, give, keep, open_lock, become_guest and stop_being_guest stand for functions in
   src/os/lock.hpp and src/heap/guests.cpp. The lock is that of the slice heap. The forking
   thread runs its handlers, then the C library waits for the list of streams, then it forks. The
   thread that flushes all streams holds the list and waits for a stream. The thread that reads a
   line holds the stream and calls malloc. Two more threads call malloc, and release the lock for
   a while in the middle, as a purge does.

   Left out: the engine's other locks, which are taken in one order before any is kept. Two
   threads that fork at once, which the lock prevents. Memory weaker than sequential consistency.

   Properties: No thread waits for ever. One thread at a time touches the protected data, and no
   thread does between the handlers and the end of the fork. There is one guest at a time, and
   none when the lock opens. So the child finds the data in a consistent state. */

#define open_state   0
#define taken        1
#define awaited      2             /* taken, and a thread may sleep */
#define kept         3

byte state = open_state;           /* the state of the lock */
bool guests;                       /* the lock of guests */
bool list_taken, stream_taken;     /* locks of the C library */

/* Used by the properties only. */
bool touched, touched_by_guest;
bool forked;
byte asleep, woken;                /* number of sleeping threads that were woken */

inline wake_one()
{
    if
    :: asleep > woken -> woken++
    :: else
    fi
}

inline wake_all()
{
    woken = asleep
}

/* Sets `is_guest` if a fork keeps the lock. */
inline take_unless_kept()
{
    do
    :: atomic { state == open_state -> state = (has_slept -> awaited : taken) };
        is_guest = false;
        break
#ifdef BREAK_WAIT_FOR_A_FORK
    :: atomic { state == kept -> state == open_state }
#else
    :: atomic { state == kept -> is_guest = true };
        if
#ifndef BREAK_WHO_SLEPT_WAKES_NOBODY
        :: has_slept -> atomic { wake_all() }
#endif
        :: else
        fi;
        break
#endif
    :: atomic { state == taken -> state = awaited }
    :: atomic { state == awaited -> asleep++; has_slept = true };
        atomic { woken != 0 -> woken--; asleep-- }
    od;
    has_slept = false
}

inline take()
{
    take_unless_kept();
    do
    :: !is_guest -> break
    :: is_guest ->
#ifndef BREAK_GUESTS_WITHOUT_LOCK
        atomic { !guests -> guests = true };
#endif
#ifndef BREAK_NO_SECOND_LOOK
        if
        :: state == kept -> break
        :: else ->
            guests = false;
            take_unless_kept()
        fi
#else
        break
#endif
    od
}

inline give()
{
    if
    :: is_guest -> guests = false
    :: else ->
        atomic {
            if
            :: state == awaited -> state = open_state; wake_one()
            :: else -> state = open_state
            fi
        }
    fi
}

inline touch()
{
    if
    :: !is_guest ->
        atomic { assert(!touched && !touched_by_guest); touched = true };
        touched = false
    :: else ->
        /* A guest reads the protected data, and writes only data of guests. */
        atomic { assert(!touched && !touched_by_guest); touched_by_guest = true };
        touched_by_guest = false
    fi
}

inline allocate()
{
    take();
    touch();
    give()
}

/* Simulates a purge: no thread waits for the system call. */
inline allocate_and_purge()
{
    take();
    touch();
    if
    :: !is_guest ->
        give();
#ifdef BREAK_A_PURGE_GOES_ON
        take();
        is_guest = false;
        touch();
        is_guest = (state == kept)
#else
        take();
        touch()
#endif
    :: else
    fi;
    give()
}

proctype forks()
{
    bool is_guest, has_slept;
    /* the handlers before the fork */
    take();
    assert(!is_guest);
    atomic {
#ifndef BREAK_KEEP_WAKES_NOBODY
        if
        :: state == awaited -> wake_all()
        :: else
        fi;
#endif
        state = kept
    };
    /* the C library */
    atomic { !list_taken -> list_taken = true };
    /* the fork */
    atomic { assert(!touched); forked = true };
    list_taken = false;
    /* the handlers after the fork, in the parent */
#ifndef BREAK_OPEN_WITH_GUESTS
    atomic { !guests -> guests = true };
#endif
    atomic { assert(!touched_by_guest); state = open_state };
#ifndef BREAK_OPEN_WITH_GUESTS
    guests = false
#endif
}

proctype flushes()
{
    atomic { !list_taken -> list_taken = true };
    atomic { !stream_taken -> stream_taken = true };
    stream_taken = false;
    list_taken = false
}

proctype reads()
{
    bool is_guest, has_slept;
    atomic { !stream_taken -> stream_taken = true };
    allocate();
    stream_taken = false
}

proctype allocates()
{
    bool is_guest, has_slept;
    allocate_and_purge()
}

init
{
    atomic {
        run forks();
        run flushes();
        run reads();
        run allocates();
        run allocates()
    };
    _nr_pr == 1;
    assert(forked && state == open_state && !guests && !touched)
}
