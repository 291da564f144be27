/* The malloc engine: a thread frees blocks of another thread's slab.

   The inlines add_to_batch, push_to_inbox, splice and read_messages model the functions of these
   names in src/heap/remote.cpp; reclaim, reclaim_slab in threads.cpp; visit, splice_if_idle in
   visit.cpp; settle, the one in cached_slabs.cpp. Each load, store and compare_exchange of the
   model is one in the code. Two threads allocate, free blocks that either of them has allocated,
   send freed blocks in messages, read messages, reclaim the slab, and visit the abandoned cache,
   in any order.

   The model leaves out memory weaker than sequential consistency; more than one slab, because
   all blocks of a message are of one slab; the links within a message; free lists, so freed
   blocks go to the slab immediately; and threads that exit (see engine_exit.pml).

   Properties: Only the thread whose cache owns the slab writes to the slab. Each block is in one
   place. A slab is never returned while blocks of it are in messages. No message is lost. At the
   end `used` is the number of blocks that callers have. */

#define none       7
#define abandoned     2            /* the cache whose thread has exited */
#define all        7               /* three blocks */
#define bit_of(i)  (1 << (i))
#define count(set) (((set) & 1) + ((set) >> 1 & 1) + ((set) >> 2 & 1))

byte owner = abandoned;
byte tag = abandoned;              /* the owner of the slab according to the slice map */
byte free_blocks = 4;
byte used = 2;
/* True after the slab was returned. Then any thread may use its memory. */
bool gone;
bool registry_lock;
byte inbox[3] = none;              /* for each cache: the last block of the newest message */
byte message[3];                   /* for each last block of a message: the blocks of the message */
byte link[3];                      /* for each last block of a message: the message before */

/* Variables that only the properties read. */
byte held = 3;                     /* blocks that callers hold */
byte collected[2];                 /* blocks in a batch that is not sent */
bool touched;                      /* whether a thread is writing to the slab */
byte calls_left = 8;

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
        assert(!gone && owner == f && !touched);
        touched = true
    }
}

inline give_slab()
{
    d_step {
        assert(!held && !collected[0] && !collected[1]);
        assert(!message[0] && !message[1] && !message[2]);
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

/* Returns blocks to their slab. When no block of the slab is in use, the slab is kept or returned.
   */
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

inline push_to_inbox(last)
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
        message[last_collected] = collected[me];
        collected[me] = 0
    };
    push_to_inbox(last_collected);
    last_collected = none
}

inline add_to_batch(block)
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
    assert(!gone && message[last]);
    if
#ifndef BREAK_SPLICE_WITHOUT_A_LOOK
    :: owner != f ->
#ifndef BREAK_LETTER_IS_NOT_SENT_ON
        push_to_inbox(last)
#endif
#endif
    :: else ->
        d_step {
            set = message[last];
            message[last] = 0
        };
        put(f, set);
        set = 0
    fi
}

inline read_messages(f)
{
#ifdef BREAK_TAKE_BY_STORE
    messages = inbox[f];
    inbox[f] = none;
#else
    d_step {
        messages = inbox[f];
        inbox[f] = none
    };
#endif
    do
    :: messages != none ->
        d_step {
            last = messages;
            messages = link[last]
        };
        splice(f, last)
    :: else -> break
    od;
    atomic {
        messages = 0;
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
        :: else -> add_to_batch(block)
        fi
    fi;
    block = 0
}

/* Allocates all free blocks of a slab that this thread owns. */
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

inline reclaim()
{
#ifndef BREAK_ADOPT_WITHOUT_LOCK
    lock();
#endif
    if
    :: owner == abandoned && free_blocks != 0 ->
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
    read_messages(abandoned);
    unlock()
}

proctype thread(byte me)
{
    byte last_collected = none;
    byte block, left, to, before, messages, last, set;
    bool done;
    do
    :: atomic { calls_left != 0 -> calls_left-- };
        if
        :: held != 0 -> free_a_block()
        :: collected[me] != 0 -> send()
        :: inbox[me] != none -> read_messages(me)
        :: owner == me && free_blocks != 0 -> hand_over()
        :: owner == abandoned -> reclaim()
        :: inbox[abandoned] != none -> visit()
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

/* Reads the remaining messages when the threads have ended. */
init
{
    byte me, left, to, before, messages, last, set;
    bool done;
    atomic {
        run thread(0);
        run thread(1)
    };
    _nr_pr == 1;
    do
    :: inbox[0] != none -> read_messages(0)
    :: inbox[1] != none -> read_messages(1)
    :: inbox[abandoned] != none -> read_messages(abandoned)
    :: inbox[0] == none && inbox[1] == none && inbox[abandoned] == none -> break
    od;
    assert(!message[0] && !message[1] && !message[2]);
    assert(gone || (held ^ free_blocks) == all && used == count(held));
    assert(!gone || held == 0)
}
