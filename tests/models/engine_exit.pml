/* The engine of malloc: threads end, and what they leave is used by others.

   The inlines own_cache, abandon_at_exit, flush_out, reclaim_slab and empty_abandoned are those of
   src/heap/threads.cpp, flush_out being empty; free_a_block is free_elsewhere and the fast path before it. Three
   threads come, allocate and free what anybody has allocated, visit the abandoned thread caches, and
   end; some free a last block then. There are two thread caches, so that one thread gets none, or
   one that another has left.

   Left out: weaker memory than sequential consistency; more than one slab; how messages are
   sent and a slab given back: see engine_remote, here that is one step; the bits that say
   which classes the abandoned thread caches have, as to miss one is no fault.

   Holds: one at a time touches a thread cache; what is in a thread cache's list is of its own slabs, and
   goes to no other's; a thread that has ended touches no thread cache; when all have ended all
   thread caches are abandoned, and each block is where it belongs. */

#define none       7
#define departed   6
#define all        3               /* two blocks */
#define caches     2
#define bit_of(i)  (1 << (i))
#define count(set) (((set) & 1) + ((set) >> 1 & 1))

byte owner = 0;                    /* of the slab */
byte tag = 0;                      /* what its entries in the map say */
byte free_blocks;
byte used = 2;
byte list[caches];                 /* what each thread cache has at hand */
byte inbox[caches];
byte made = 1;
bool abandoned[caches];               /* under the lock */
bool registry_lock;

/* What only the properties need. */
byte held = all;                   /* callers have these */
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

/* What is at hand goes to the slab, what was sent too. */
inline flush_out(f)
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
    flush_out(f);
#else
    flush_out(f);
    lock();
    abandoned[f] = true;
    unlock();
#endif
    f = 0
}

inline empty_abandoned()
{
    lock();
#ifdef BREAK_VISIT_WITHOUT_LOCK
    unlock();
#endif
    if
    :: abandoned[0] -> flush_out(0)
    :: !abandoned[0]
    fi;
    if
    :: abandoned[1] -> flush_out(1)
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
    :: mine >= caches          /* the thread cache of the late: not of interest here */
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
        :: empty_abandoned()
        fi
    :: break
    od;
    if
    :: mine < caches ->
        abandon_at_exit();
        free_a_block()         /* a destructor's, after that */
    :: else
    fi
}

init
{
    byte set, messages, left, to;
    atomic {
        abandoned[0] = true;      /* somebody was here before */
        run thread();
        run thread();
        run thread()
    };
    _nr_pr == 1;
    assert(abandoned[0] && (made == 1 || abandoned[1]));
    do
    :: inbox[0] || inbox[1] -> empty_abandoned()
    :: else -> break
    od;
    assert(!list[0] && !list[1]);
    assert((held ^ free_blocks) == all && used == count(held))
}
