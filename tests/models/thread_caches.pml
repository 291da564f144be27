/* sync::thread_cached: which thread may use the content of a thread cache, and when.

   The inlines enter and leave model functions of thread_cache. freeze, thaw, detach_all and
   find_or_reclaim (which also models attach) model functions of thread_cache_list; retire,
   before_fork and in_child, functions of registry; refill, grow and trim, functions of
   cached_core. Two threads start, use the pool, trim it and exit, again and again, while another
   thread forks the process. When both threads have stopped using the pool, the pool is released,
   although the threads may still run.

   The stores of `busy` have no fence. Each of these stores waits in a store buffer of one entry,
   which drains at any time.

   `frozen` models the flag, and the bounds of the magazines, which are closed together with the
   flag (closable_magazine).

   The model leaves out memory orders weaker than TSO, and the content of a cache except for the
   number of its blocks.

   Checked: one thread at a time uses the content of a cache. A cache has one thread at most. The
   blocks of a cache stay when its thread exits. The child of a fork finds no cache in use. No
   thread uses a cache that is released. There is no deadlock. */

#define none 7

bool registry_lock, growing, pool_lock;
byte owner[2] = none;      /* the thread of each cache */
/* The cache of each thread. Writing `owner` and `cache_of` takes both locks, reading takes one. */
byte cache_of[2] = none;
bool frozen[2];
bool busy[2];              /* the value in memory */
byte buffered[2] = none;   /* a value in the store buffer, not in memory yet */
byte blocks[2];
byte pool_blocks = 1;
bool listed = true;        /* the cache is in the registry */
bool gone;

/* Variables that only the properties read. */
bool touched[2];
byte blocks_live;
byte users;
bool stopped;              /* the caller guarantees that no thread uses the pool any more */

inline lock(mutex)
{
    atomic { !mutex -> mutex = true }
}

inline unlock(mutex)
{
    mutex = false
}

inline drain(f)
{
    d_step {
        if
        :: buffered[f] != none ->
            busy[f] = buffered[f];
            buffered[f] = none
        :: else
        fi
    }
}

active proctype store_buffers()
{
end:
    do
    :: buffered[0] != none -> drain(0)
    :: buffered[1] != none -> drain(1)
    od
}

inline store_busy(value)
{
    d_step {
        assert(!gone);
        drain(f);
        buffered[f] = value
    }
}

inline begin_touch(f)
{
    d_step {
        assert(!gone);
        assert(!touched[f]);
        touched[f] = true
    }
}

inline end_touch(f)
{
    touched[f] = false
}

inline enter()
{
#ifdef BREAK_ENTER_READS_FIRST
    entered = !frozen[f];
    store_busy(true)
#else
    store_busy(true);
    entered = !frozen[f]
#endif
}

inline leave()
{
    store_busy(false)
}

inline freeze()
{
    frozen[0] = true;
    frozen[1] = true;
#ifndef BREAK_BARRIER
    drain(0);   /* models barrier_in_all_threads, which reaches one thread after another */
    drain(1);
#endif
#ifndef BREAK_WAIT
    !busy[0];
    !busy[1];
#endif
}

inline thaw()
{
    frozen[0] = false;
    frozen[1] = false
}

inline take_all_blocks(f)
{
    begin_touch(f);
    d_step {
        pool_blocks = pool_blocks + blocks[f];
        blocks[f] = 0
    };
    end_touch(f)
}

inline trim()
{
    lock(pool_lock);
    freeze();
    take_all_blocks(0);
    take_all_blocks(1);
    thaw();
    unlock(pool_lock)
}

inline find_or_reclaim()
{
#if defined BREAK_LOCK_ORDER
    lock(pool_lock);
    lock(registry_lock);
#elif !defined BREAK_RECLAIM_WITHOUT_LOCK
    lock(registry_lock);
    lock(pool_lock);
#endif
    if
    :: owner[0] == none -> f = 0
    :: owner[1] == none -> f = 1
    fi;
    d_step {
        assert(!gone);
        assert(owner[f] == none);
        owner[f] = me;
        cache_of[me] = f
    }
#ifndef BREAK_RECLAIM_WITHOUT_LOCK
    unlock(pool_lock);
    unlock(registry_lock)
#endif
}

inline retire()
{
    lock(registry_lock);
    f = cache_of[me];
    if
    :: f != none ->
        assert(!gone);
        lock(pool_lock);
        d_step {
            drain(f);   /* the unlock publishes earlier stores at the latest */
            owner[f] = none;
            cache_of[me] = none
        };
        assert(!gone);
        unlock(pool_lock)
    :: else
    fi;
    unlock(registry_lock);
    f = 0
}

/* Models allocate or deallocate, repeated until the cache is not frozen. */
inline exchange_a_block()
{
    do
    :: enter();
        if
        :: entered ->
            begin_touch(f);
            if
            :: d_step { holds -> holds = false; blocks_live--; blocks[f]++ }
            :: d_step { !holds && blocks[f] != 0 -> holds = true; blocks_live++; blocks[f]-- }
            :: else
            fi;
            end_touch(f);
            leave();
            break
        :: else ->
            leave();
            lock(pool_lock);     /* models wait_for_thaw */
            unlock(pool_lock)
        fi
    od;
    entered = false
}

/* Calls the source, which may be another pool. In that pool, this thread may have no cache yet. */
inline call_source()
{
    lock(registry_lock);
    unlock(registry_lock)
}

inline grow()
{
    lock(growing);
    call_source();
    lock(pool_lock);
    begin_touch(f);
    d_step {
        blocks[f] = blocks[f] + pool_blocks;
        pool_blocks = 0
    };
    end_touch(f);
    unlock(pool_lock);
    unlock(growing)
}

/* Leaves the cache before this thread waits for a lock, because the thread that holds the lock
 * may wait until no thread is in the cache. */
inline refill()
{
#ifdef BREAK_REFILL_STAYS
    enter();
    grow();
    leave()
#else
    enter();
    leave();
    grow()
#endif
}

proctype thread(byte me)
{
    byte f;
    bool holds, entered;
    do
    :: atomic { !stopped -> users++ };
        find_or_reclaim();
        do
        :: exchange_a_block()
        :: refill()
        :: trim()
        :: break
        od;
        users--;
        retire()
    :: break
    od
}

/* Unlocks the registry while it waits for `growing`, because the thread that holds `growing` may
 * wait for the registry. */
inline before_fork()
{
    lock(registry_lock);
    do
    :: !listed -> break
    :: atomic { listed && !growing -> growing = true };
        lock(pool_lock);
        freeze();
        break
#ifndef BREAK_FORK_KEEPS_REGISTRY
    :: listed && growing ->
        unlock(registry_lock);
        lock(registry_lock)
#endif
    od
}

inline after_fork()
{
    if
    :: listed ->
        thaw();
        unlock(pool_lock);
        unlock(growing)
    :: else
    fi;
    unlock(registry_lock)
}

/* Runs in the child of a fork, in which the other threads do not exist. One of them may have
   stopped between the two lines of enter, so a freeze would wait for that thread for ever. */
inline in_child()
{
#ifndef BREAK_CHILD_STAYS_BUSY
    busy_in_child = false;
#endif
    !busy_in_child
}

active proctype forker()
{
    bool busy_in_child;
    do
    :: before_fork();
        atomic {
            busy_in_child = listed && (busy[0] || busy[1]);
            assert(!listed || !touched[0] && !touched[1])
        };
        in_child();
        after_fork()
    :: break
    od
}

inline detach_all()
{
#ifndef BREAK_DETACH_WITHOUT_LOCK
    lock(registry_lock);
#endif
    lock(pool_lock);
    owner[0] = none;
    owner[1] = none;
    cache_of[0] = none;
    cache_of[1] = none;
    listed = false;
    unlock(pool_lock);
#ifndef BREAK_DETACH_WITHOUT_LOCK
    unlock(registry_lock);
#endif
}

active proctype owner_of_the_pool()
{
    atomic { users == 0 -> stopped = true };
    detach_all();
    take_all_blocks(0);
    take_all_blocks(1);
    gone = true;
    assert(pool_blocks + blocks_live == 1)
}

init
{
    atomic {
        run thread(0);
        run thread(1)
    }
}
