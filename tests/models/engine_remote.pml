/* The engine of malloc: blocks that another thread frees than the one whose slab they are of.

   The inlines collect, post, splice and read_letters are those of src/heap/remote.cpp,
   adopt and visit those of park.cpp, settle that of returns.cpp; a load, a store or a
   compare_exchange here is one there. Two threads allocate, free what anybody has
   allocated, send it, read what was sent, adopt the slab and visit the parked front, in any
   order.

   Left out: weaker memory than sequential consistency; more than one slab, as letters are
   for one each; the links within a letter; a front's lists, whose blocks go to the slab
   at once; threads that end: see engine_exit.

   Holds: a slab is written to by who has its owner; each block is in one place; a slab with
   blocks on their way is never given back; no letter is lost; in the end `used` counts what
   callers have. */

#define none       7
#define parked     2                 /* the front whose thread has ended */
#define all        7                 /* three blocks */
#define bit_of(i)  (1 << (i))
#define count(set) (((set) & 1) + ((set) >> 1 & 1) + ((set) >> 2 & 1))

byte owner = parked;
byte tag = parked;                   /* what the granules' entries say */
byte free_blocks = 4;
byte used = 2;
bool gone;                           /* given back: anybody may take it anew */
bool parked_lock;
byte inbox[3] = none;                /* of each front: the last block of the letter */
byte letter[3];                      /* by its last block: what is in it */
byte link[3];                        /* by its last block: the letter before */

/* What only the properties need. */
byte held = 3;                       /* callers have these */
byte collected[2];                   /* in a parcel that is not sent */
bool touched;                        /* somebody writes to the slab */
byte calls_left = 8;

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
        assert(!gone && owner == f && !touched);
        touched = true
    }
}

inline give_slab()
{
    d_step {
        assert(!held && !collected[0] && !collected[1]);
        assert(!letter[0] && !letter[1] && !letter[2]);
        assert(free_blocks == all);
        gone = true;
        owner = none;
        tag = none;
        free_blocks = 0
    }
}

inline take_slab()
{
    d_step {
        gone = false;
        owner = me;
        tag = me;
        free_blocks = all;
        used = 0
    }
}

/* Blocks come back to their slab. It is kept or given back when none is used. */
inline put(f, set)
{
    begin_touch(f);
    left = used;
    free_blocks = free_blocks | (set);
    used = left - count(set);
    touched = false;
    if
    :: used == 0 -> give_slab()
    :: true
    fi;
    left = 0
}

inline post(last)
{
    assert(!gone);
    to = owner;
    do
    :: before = inbox[to];
        link[last] = before;
#ifdef BREAK_PUSH_BY_STORE
        inbox[to] = last;
        break
#else
        d_step {
            done = (inbox[to] == before);
            if
            :: done -> inbox[to] = last
            :: else
            fi
        };
        if
        :: done -> break
        :: else
        fi
#endif
    od;
    atomic {
        to = 0;
        before = 0;
        done = false
    }
}

inline send()
{
    d_step {
        letter[last_collected] = collected[me];
        collected[me] = 0
    };
    post(last_collected);
    last_collected = none
}

inline collect(block)
{
    d_step {
        if
        :: collected[me] == 0 -> last_collected = block
        :: else
        fi;
        collected[me] = collected[me] | bit_of(block)
    };
#ifdef BREAK_NOT_USED_ON_ITS_WAY
    used = used - 1;
#endif
}

inline splice(f, last)
{
    assert(!gone && letter[last]);
    if
#ifndef BREAK_SPLICE_WITHOUT_A_LOOK
    :: owner != f ->
#ifndef BREAK_LETTER_IS_NOT_SENT_ON
        post(last)
#endif
#endif
    :: else ->
        d_step {
            set = letter[last];
            letter[last] = 0
        };
        put(f, set);
        set = 0
    fi
}

inline read_letters(f)
{
#ifdef BREAK_TAKE_BY_STORE
    letters = inbox[f];
    inbox[f] = none;
#else
    d_step {
        letters = inbox[f];
        inbox[f] = none
    };
#endif
    do
    :: letters != none ->
        d_step {
            last = letters;
            letters = link[last]
        };
        splice(f, last)
    :: else -> break
    od;
    atomic {
        letters = 0;
        last = 0
    }
}

inline free_a_block()
{
    atomic {
        if
        :: held & 1 -> block = 0
        :: held & 2 -> block = 1
        :: held & 4 -> block = 2
        :: !held -> block = none
        fi;
        held = held & ~bit_of(block)
    };
    if
    :: block == none
    :: else ->
        if
        :: tag == me -> put(me, bit_of(block))
        :: else -> collect(block)
        fi
    fi;
    block = 0
}

/* All free blocks of an own slab: those are the caller's in the end. */
inline hand_over()
{
    begin_touch(me);
    used = used + count(free_blocks);
    d_step {
        assert(!(held & free_blocks));
        held = held | free_blocks;
        free_blocks = 0
    };
    touched = false
}

inline adopt()
{
#ifndef BREAK_ADOPT_WITHOUT_LOCK
    lock();
#endif
    if
    :: owner == parked && free_blocks != 0 ->
        owner = me;
        tag = me
    :: else
    fi;
#ifndef BREAK_ADOPT_WITHOUT_LOCK
    unlock()
#endif
}

inline visit()
{
    lock();
    read_letters(parked);
    unlock()
}

proctype thread(byte me)
{
    byte last_collected = none;
    byte block, left, to, before, letters, last, set;
    bool done;
    do
    :: atomic { calls_left != 0 -> calls_left-- };
        if
        :: held != 0 -> free_a_block()
        :: collected[me] != 0 -> send()
        :: inbox[me] != none -> read_letters(me)
        :: owner == me && free_blocks != 0 -> hand_over()
        :: owner == parked -> adopt()
        :: inbox[parked] != none -> visit()
        :: atomic { gone -> take_slab() }
        :: else
        fi
    :: break
    od;
    if
    :: collected[me] != 0 -> send()
    :: else
    fi
}

/* The rest of the letters, when the threads have ended. */
init
{
    byte me, left, to, before, letters, last, set;
    bool done;
    atomic {
        run thread(0);
        run thread(1)
    };
    _nr_pr == 1;
    do
    :: inbox[0] != none -> read_letters(0)
    :: inbox[1] != none -> read_letters(1)
    :: inbox[parked] != none -> read_letters(parked)
    :: inbox[0] == none && inbox[1] == none && inbox[parked] == none -> break
    od;
    assert(!letter[0] && !letter[1] && !letter[2]);
    assert(gone || (held ^ free_blocks) == all && used == count(held));
    assert(!gone || held == 0)
}
