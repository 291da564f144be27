/* The engine of malloc: threads end, and what they leave is used by others.

   The inlines own_front, depart, empty_out, adopt_slab and visit_parked are those of
   src/heap/park.cpp, empty_out being empty; free_a_block is free_elsewhere and the fast path before it. Three
   threads come, allocate and free what anybody has allocated, visit the parked fronts, and
   end; some free a last block then. There are two fronts, so that one thread gets none, or
   one that another has left.

   Left out: weaker memory than sequential consistency; more than one slab; how letters are
   sent and a slab given back: see engine_remote, here that is one step; the bits that say
   which classes the parked fronts have, as to miss one is no fault.

   Holds: one at a time touches a front; what is in a front's list is of its own slabs, and
   goes to no other's; a thread that has ended touches no front; when all have ended all
   fronts are parked, and each block is where it belongs. */

#define none       7
#define departed   6
#define all        3               /* two blocks */
#define fronts     2
#define bit_of(i)  (1 << (i))
#define count(set) (((set) & 1) + ((set) >> 1 & 1))

byte owner = 0;                    /* of the slab */
byte tag = 0;                      /* what its entries in the map say */
byte free_blocks;
byte used = 2;
byte list[fronts];                 /* what each front has at hand */
byte inbox[fronts];
byte made = 1;
bool parked[fronts];               /* under the lock */
bool parked_lock;

/* What only the properties need. */
byte held = all;                   /* callers have these */
bool touched[fronts];
bool slab_touched;
byte calls_left = 4;

inline lock()
{
    atomic { !parked_lock -> parked_lock = true }
}

inline unlock()
{
    parked_lock = false
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

inline give_back(f, set)
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

inline read_letters(f)
{
    d_step {
        letters = inbox[f];
        inbox[f] = 0
    };
    if
    :: letters == 0
    :: letters != 0 && owner == f -> give_back(f, letters)
    :: letters != 0 && owner != f -> send(letters)
    fi;
    letters = 0
}

/* What is at hand goes to the slab, what was sent too. */
inline empty_out(f)
{
    begin_touch(f);
    d_step {
        set = list[f];
        list[f] = 0
    };
    if
    :: set != 0 -> give_back(f, set)
    :: else
    fi;
    set = 0;
    read_letters(f);
    end_touch(f)
}

inline own_front()
{
    lock();
    d_step {
        if
        :: parked[0] -> parked[0] = false; mine = 0
        :: !parked[0] && parked[1] -> parked[1] = false; mine = 1
        :: !parked[0] && !parked[1] && made < fronts -> mine = made; made++
        :: else
        fi
    };
    unlock()
}

inline depart()
{
    f = mine;
#ifndef BREAK_END_KEEPS_ITS_FRONT
    mine = departed;
#endif
#ifdef BREAK_PARK_BEFORE_EMPTY
    lock();
    parked[f] = true;
    unlock();
    empty_out(f);
#else
    empty_out(f);
    lock();
    parked[f] = true;
    unlock();
#endif
    f = 0
}

inline visit_parked()
{
    lock();
#ifdef BREAK_VISIT_WITHOUT_LOCK
    unlock();
#endif
    if
    :: parked[0] -> empty_out(0)
    :: !parked[0]
    fi;
    if
    :: parked[1] -> empty_out(1)
    :: !parked[1]
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

inline adopt_slab()
{
#ifndef BREAK_ADOPT_WITHOUT_LOCK
    lock();
#endif
    if
    :: owner != mine && parked[owner] && free_blocks != 0 ->
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
    :: mine == none -> own_front()
    :: else
    fi;
    if
    :: mine >= fronts          /* the front of the late: not of interest here */
    :: else ->
        begin_touch(mine);
        if
        :: list[mine] != 0 ->
            d_step {
                held = held | list[mine];
                list[mine] = 0
            }
        :: else ->
            read_letters(mine);
            if
            :: owner == mine -> hand_over()
            :: else ->
                adopt_slab();
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
            own_front();
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
    byte f, block, seen, set, letters, left, to;
    do
    :: atomic { calls_left != 0 -> calls_left-- };
        if
        :: free_a_block()
        :: allocate()
        :: visit_parked()
        fi
    :: break
    od;
    if
    :: mine < fronts ->
        depart();
        free_a_block()         /* a destructor's, after that */
    :: else
    fi
}

init
{
    byte set, letters, left, to;
    atomic {
        parked[0] = true;      /* somebody was here before */
        run thread();
        run thread();
        run thread()
    };
    _nr_pr == 1;
    assert(parked[0] && (made == 1 || parked[1]));
    do
    :: inbox[0] || inbox[1] -> visit_parked()
    :: else -> break
    od;
    assert(!list[0] && !list[1]);
    assert((held ^ free_blocks) == all && used == count(held))
}
