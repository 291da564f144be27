/* The malloc engine: threads exit, and other threads use the caches that the exited threads
 * leave.
 *
 * The inlines own_cache, abandon_at_exit, reclaim_slab and flush_abandoned model the functions
 * of these names in src/heap/threads.cpp, and flush models the one in refill.cpp. free_a_block
 * models free_elsewhere and the fast path before it. Three threads start, allocate, free blocks
 * that any thread has allocated, flush the abandoned caches, and exit. Some threads free one
 * more block after their exit has begun. There are two caches for three threads, so one thread
 * gets no cache, or a cache that an exited thread has left.
 *
 * The model leaves out memory weaker than sequential consistency, and more than one slab.
 * Sending a message and returning a slab are one step each (engine_remote.pml models these
 * steps). The code also keeps a bit for each size class that abandoned caches have. The model
 * leaves out these bits, because a thread that overlooks a class does no harm.
 *
 * Properties: One thread at a time touches a cache. The list of a cache has only blocks of slabs
 * that the cache owns. A thread that has exited touches no cache. When all threads have exited,
 * all caches are abandoned, and each block is in the slab or the list that it belongs to. */

#define none       7
#define departed   6
#define all        3               /* two blocks */
#define caches     2
#define bit_of(i)  (1 << (i))
#define count(set) (((set) & 1) + ((set) >> 1 & 1))

byte owner = 0;                    /* the owner of the slab */
byte tag = 0;                      /* the owner in the map entries of the slab */
byte free_blocks;
byte used = 2;
byte list[caches];                 /* blocks in the list of each cache */
byte inbox[caches];
byte made = 1;
bool abandoned[caches];            /* protected by registry_lock */
bool registry_lock;

/* Variables that only the properties read. */
byte held = all;                   /* blocks that callers hold */
bool touched[caches];
bool slab_touched;
byte calls_left = 4;

inline lock()
{
    atomic { !registry_lock -> registry_lock = true }
}

inline unlock()
{
    registry_lock = false
}

inline begin_touch(f)
{
    d_step {
        assert(!touched[f]);
        touched[f] = true
    }
}

inline end_touch(f)
{
    touched[f] = false
}

inline return_block(f, set)
{
    d_step {
        assert(owner == f && !slab_touched);
        slab_touched = true
    };
    left = used;
    free_blocks = free_blocks | (set);
    d_step {
        used = left - count(set);
        slab_touched = false;
        left = 0
    }
}

inline send(set)
{
    to = owner;
    d_step {
        inbox[to] = inbox[to] | (set);
        to = 0
    }
}

inline read_messages(f)
{
    d_step {
        messages = inbox[f];
        inbox[f] = 0
    };
    if
    :: messages == 0
    :: messages != 0 && owner == f -> return_block(f, messages)
    :: messages != 0 && owner != f -> send(messages)
    fi;
    messages = 0
}

/* Returns the blocks of the cache's list and of its messages to the slab. */
inline flush(f)
{
    begin_touch(f);
    d_step {
        set = list[f];
        list[f] = 0
    };
    if
    :: set != 0 -> return_block(f, set)
    :: else
    fi;
    set = 0;
    read_messages(f);
    end_touch(f)
}

inline own_cache()
{
    lock();
    d_step {
        if
        :: abandoned[0] -> abandoned[0] = false; mine = 0
        :: !abandoned[0] && abandoned[1] -> abandoned[1] = false; mine = 1
        :: !abandoned[0] && !abandoned[1] && made < caches -> mine = made; made++
        :: else
        fi
    };
    unlock()
}

inline abandon_at_exit()
{
    f = mine;
#ifndef BREAK_END_KEEPS_ITS_FRONT
    mine = departed;
#endif
#ifdef BREAK_PARK_BEFORE_EMPTY
    lock();
    abandoned[f] = true;
    unlock();
    flush(f);
#else
    flush(f);
    lock();
    abandoned[f] = true;
    unlock();
#endif
    f = 0
}

inline flush_abandoned()
{
    lock();
#ifdef BREAK_VISIT_WITHOUT_LOCK
    unlock();
#endif
    if
    :: abandoned[0] -> flush(0)
    :: !abandoned[0]
    fi;
    if
    :: abandoned[1] -> flush(1)
    :: !abandoned[1]
    fi;
#ifndef BREAK_VISIT_WITHOUT_LOCK
    unlock()
#endif
}

inline hand_over()
{
    d_step {
        assert(owner == mine && !slab_touched && !(held & free_blocks));
        used = used + count(free_blocks);
        held = held | free_blocks;
        free_blocks = 0
    }
}

inline reclaim_slab()
{
#ifndef BREAK_ADOPT_WITHOUT_LOCK
    lock();
#endif
    if
    :: owner != mine && abandoned[owner] && free_blocks != 0 ->
        owner = mine;
        tag = mine
    :: else
    fi;
#ifndef BREAK_ADOPT_WITHOUT_LOCK
    unlock()
#endif
}

inline allocate()
{
    if
    :: mine == none -> own_cache()
    :: else
    fi;
    if
    :: mine >= caches          /* the thread would use the fallback cache, which is not modelled */
    :: else ->
        begin_touch(mine);
        if
        :: list[mine] != 0 ->
            d_step {
                held = held | list[mine];
                list[mine] = 0
            }
        :: else ->
            read_messages(mine);
            if
            :: owner == mine -> hand_over()
            :: else ->
                reclaim_slab();
                if
                :: owner == mine -> hand_over()
                :: else
                fi
            fi
        fi;
        end_touch(mine)
    fi
}

inline free_a_block()
{
    atomic {
        if
        :: held & 1 -> block = 1
        :: held & 2 -> block = 2
        :: held == 0 -> block = 0
        fi;
        held = held & ~block
    };
    if
    :: block == 0
    :: else ->
        seen = tag;
        if
        :: mine == none ->
            own_cache();
#ifndef BREAK_ENTRY_OF_BEFORE
            seen = tag
#endif
        :: else
        fi;
        if
        :: seen == mine ->
            begin_touch(mine);
            list[mine] = list[mine] | block;
            end_touch(mine)
        :: else -> send(block)
        fi
    fi;
    block = 0;
    seen = 0
}

proctype thread()
{
    byte mine = none;
    byte f, block, seen, set, messages, left, to;
    do
    :: atomic { calls_left != 0 -> calls_left-- };
        if
        :: free_a_block()
        :: allocate()
        :: flush_abandoned()
        fi
    :: break
    od;
    if
    :: mine < caches ->
        abandon_at_exit();
        free_a_block()         /* models a free in a destructor that runs later */
    :: else
    fi
}

init
{
    byte set, messages, left, to;
    atomic {
        abandoned[0] = true;      /* a thread that exited before left this cache */
        run thread();
        run thread();
        run thread()
    };
    _nr_pr == 1;
    assert(abandoned[0] && (made == 1 || abandoned[1]));
    do
    :: inbox[0] || inbox[1] -> flush_abandoned()
    :: else -> break
    od;
    assert(!list[0] && !list[1]);
    assert((held ^ free_blocks) == all && used == count(held))
}
