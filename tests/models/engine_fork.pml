/* The malloc engine: one thread forks, while other threads read lines from a stream and flush all
   streams.

   take, give, keep, open_lock, become_guest and stop_being_guest model functions in
   src/os/lock.hpp and src/heap/guests.cpp. The model has one lock of the engine, that of the
   slice heap. The forking thread runs its fork handlers. Then the C library waits for the lock of
   its list of streams, and forks. A second thread flushes all streams. It holds the lock of the
   list and waits for a stream. A third thread reads a line. It holds that stream's lock and calls
   malloc. Two more threads call malloc, and release the lock for a while in the middle, as a
   purge does.

   A thread that calls malloc while the forking thread keeps the lock does not wait. It becomes a
   guest: it reads the protected data, and writes only data of guests.

   The fork handler first takes the lock (state `taken`) and then keeps it (state `kept`). A kept
   lock stays closed until the fork is over, and its waiting threads are woken to become guests.

   The model leaves out the engine's other locks, because a fork takes all of them in one order
   before it keeps any of them. It also leaves out two threads that fork at the same time, which
   the lock prevents, and memory weaker than sequential consistency.

   Properties: No thread waits for ever. One thread at a time touches the protected data, and no
   thread touches the data between the handlers and the end of the fork. There is one guest at a
   time, and none when the lock opens. So the child finds the data in a consistent state. */

#define open_state   0
#define taken        1
#define awaited      2             /* taken, and a thread may sleep */
#define kept         3

byte state = open_state;           /* the state of the lock */
bool guests;                       /* the lock of guests */
bool list_taken, stream_taken;     /* locks of the C library */

/* Variables that only the properties read. */
bool touched, touched_by_guest;
bool forked;
byte asleep, woken;                /* number of threads that slept and were woken */

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

/* Takes the lock, or sets `is_guest` if a forking thread keeps the lock. */
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

/* Models a purge: no thread waits for the lock during the system call of the purge. */
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
    /* The engine's handlers before the fork. */
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
    /* The C library's part of the fork. */
    atomic { !list_taken -> list_taken = true };
    /* The system call fork. */
    atomic { assert(!touched); forked = true };
    list_taken = false;
    /* The engine's handlers after the fork, in the parent. */
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
