/* The malloc engine: one thread works with its cache, and two other threads, the visitors, use
   that cache while the thread is idle. Only the visitors run a barrier.

   busy_begins models the constructor of busy_scope in src/heap/thread_cache.hpp; visit_if_idle,
   splice_if_idle in visit.cpp; barrier_in_all_threads, the system call membarrier. Each thread
   has a store buffer. The thread itself reads the buffer first. Other threads see a store when
   it leaves the buffer, which happens in order and at any time. So a later load may overtake a
   store, as processors allow.

   A visitor that has taken the lists leaves the cache in the state `wanted`. The thread then waits
   before it uses the cache (see engine_lists.pml), and the next visitor needs no barrier.

   The model leaves out the visitor's test whether the thread is idle, because the properties
   must hold whatever that test finds. No store leaves the buffer out of order and no load is
   early, because the code uses release and acquire order where this matters. engine_exit.pml
   models threads that exit.

   Properties: One thread at a time touches the cache, and sees all that was written there
   before. All threads end, and then no thread is in a slow path. */

#define busy    0
#define wanted  1
#define data    2                  /* the slabs and messages */
#define words   3
#define threads 3
#define worker  0
#define of_mine(word) (me * words + (word))

byte memory[words];
chan buffer[threads] = [4] of { byte, byte };
byte pending[threads * words];     /* stores in the buffer, for each word */
byte newest[threads * words];      /* the newest of these stores */
bool registry_lock;

/* Variables that only the properties read. */
bool touched;
byte updates;
byte visits_left = 3;

inline store(word, value)
{
    atomic {
        buffer[me]!word, value;
        d_step {
            pending[of_mine(word)]++;
            newest[of_mine(word)] = value
        }
    }
}

inline load(word)
{
    d_step {
        if
        :: pending[of_mine(word)] != 0 -> loaded = newest[of_mine(word)]
        :: else -> loaded = memory[word]
        fi
    }
}

inline fence_in(thread)
{
    empty(buffer[thread])
}

/* A store with release order: a thread that sees this store also sees all earlier stores of this
   thread. */
inline unlock()
{
    fence_in(me);
    registry_lock = false
}

inline touch()
{
    d_step {
        assert(!touched);
        touched = true
    };
    load(data);
    store(data, loaded + 1);
    d_step {
        updates++;
        touched = false
    }
}

inline busy_begins()
{
#ifdef BREAK_LOOK_BEFORE_BUSY
    load(wanted);
    store(busy, 1);
#else
    store(busy, 1);
    load(wanted);
#endif
    if
#ifndef BREAK_NO_WAIT
    :: loaded != 0 ->
        atomic { !registry_lock -> registry_lock = true };
        store(wanted, 0);
        unlock()
#endif
    :: else
    fi
}

proctype works()
{
    byte me = worker;
    byte loaded;
    byte left = 3;
    do
    :: left != 0 ->
        left--;
        busy_begins();
#ifdef BREAK_BUSY_ENDS_TOO_EARLY
        store(busy, 0);
        touch()
#else
        touch();
        store(busy, 0)
#endif
    :: left == 0 -> break
    od
}

/* Empties the buffers of all threads, first the buffer of this thread. If the system refuses the
 * call, no buffer is emptied. */
inline barrier_in_all_threads()
{
    if
#ifndef BREAK_NO_BARRIER
    :: fence_in(me);
        fence_in(worker);
        done = true
#endif
#if defined(BREAK_NO_BARRIER) || defined(BREAK_ON_WITHOUT_BARRIER)
    :: done = true
#else
    :: done = false
#endif
    fi
}

inline visit_if_idle()
{
    load(wanted);
    if
    :: loaded != 0 -> touch()
    :: else -> visit_if_at_home()
    fi
}

inline visit_if_at_home()
{
#ifdef BREAK_WANTED_AFTER_BARRIER
    barrier_in_all_threads();
    store(wanted, 1);
#else
    store(wanted, 1);
    barrier_in_all_threads();
#endif
    load(busy);
    if
#ifdef BREAK_VISIT_AT_WORK
    :: done -> touch(); store(wanted, 0)
#else
    :: done && loaded == 0 ->
        touch();
        if
        :: store(wanted, 0)
        :: true                    /* another visitor is already visiting the thread */
        fi
#endif
    :: else
#ifndef BREAK_AWAY_ALTHOUGH_AT_WORK
        -> store(wanted, 0)
#endif
    fi;
    done = false
}

proctype visits(byte me)
{
    byte loaded;
    bool done;
    do
    :: atomic { visits_left != 0 -> visits_left-- };
        if
#ifndef BREAK_VISIT_WITHOUT_LOCK
        :: atomic { !registry_lock -> registry_lock = true };
            visit_if_idle();
            unlock()
        :: registry_lock             /* another thread holds the lock */
#else
        :: visit_if_idle()
#endif
        fi
    :: break
    od
}

proctype stores_leave()
{
    byte thread, word, value;
end:
    do
    :: atomic {
            if
            :: buffer[0]?word, value -> thread = 0
            :: buffer[1]?word, value -> thread = 1
            :: buffer[2]?word, value -> thread = 2
            fi;
            d_step {
                memory[word] = value;
                pending[thread * words + word]--;
                thread = 0;
                word = 0;
                value = 0
            }
        }
    od
}

init
{
    atomic {
        run stores_leave();
        run works();
        run visits(1);
        run visits(2)
    };
    _nr_pr == 2;
    empty(buffer[0]) && empty(buffer[1]) && empty(buffer[2]);
    assert(memory[data] == updates);
    assert(!memory[busy])
}
