/* sync::thread_cached: who may touch a front, which is what a thread has of a pool.

   The inlines enter and leave are those of thread_front; freeze, thaw, part and
   find_or_adopt (which stands for join too) those of front_home; retire, before_fork
   and in_child those of registry; refill, grow and trim those of cached_core. Two
   threads come, use the pool, trim it and go, again and again, while another forks
   the process; when all have stopped, but perhaps not gone, the pool is released.

   The stores of `busy` have no fence: each waits in a store buffer of one entry,
   which drains at any time.

   `frozen` stands for the flag and for the bounds of the front's magazines, which are
   shut with it and looked at instead (gated_magazine).

   Left out: weaker memory than TSO; what a front has, but a count of blocks.

   Holds: one at a time touches a front; a front has one owner at most; its blocks
   stay when the owner goes; a child of fork finds no front in use; nobody touches a
   front that is gone; there is no deadlock. */

#define none 7

bool registry_lock, growing, pool_lock;
byte owner[2] = none;      /* of each front, and */
byte front_of[2] = none;   /* of each thread: both locks for who writes, one for who reads */
bool frozen[2];
bool busy[2];              /* as in memory, and */
byte buffered[2] = none;   /* as on the way there */
byte blocks[2];
byte pool_blocks = 1;
bool listed = true;        /* in the registry */
bool gone;

/* What only the properties need. */
bool touched[2];
byte blocks_live;
byte users;
bool stopped;              /* the caller's word that nobody uses the pool any more */

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
    drain(0);   /* barrier_in_all_threads: one after the other */
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

inline find_or_adopt()
{
#if defined BREAK_LOCK_ORDER
    lock(pool_lock);
    lock(registry_lock);
#elif !defined BREAK_ADOPT_WITHOUT_LOCK
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
        front_of[me] = f
    }
#ifndef BREAK_ADOPT_WITHOUT_LOCK
    unlock(pool_lock);
    unlock(registry_lock)
#endif
}

inline retire()
{
    lock(registry_lock);
    f = front_of[me];
    if
    :: f != none ->
        assert(!gone);
        lock(pool_lock);
        d_step {
            drain(f);   /* at the latest unlock lets others see what was stored before */
            owner[f] = none;
            front_of[me] = none
        };
        assert(!gone);
        unlock(pool_lock)
    :: else
    fi;
    unlock(registry_lock);
    f = 0
}

/* allocate and deallocate, until they find nothing wrong. */
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
            lock(pool_lock);     /* wait_for_thaw */
            unlock(pool_lock)
        fi
    od;
    entered = false
}

/* The source of a pool may itself be a pool, of which this thread has no front yet. */
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

/* Leaves before it waits for a lock: who has that may wait for it to leave. */
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
        find_or_adopt();
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

/* Who has `growing` may wait for the registry, so that is let go of meanwhile. */
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

/* Other threads are gone, perhaps from between the two lines of enter. A freeze waits. */
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

inline part()
{
#ifndef BREAK_PART_WITHOUT_LOCK
    lock(registry_lock);
#endif
    lock(pool_lock);
    owner[0] = none;
    owner[1] = none;
    front_of[0] = none;
    front_of[1] = none;
    listed = false;
    unlock(pool_lock);
#ifndef BREAK_PART_WITHOUT_LOCK
    unlock(registry_lock);
#endif
}

active proctype owner_of_the_pool()
{
    atomic { users == 0 -> stopped = true };
    part();
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
