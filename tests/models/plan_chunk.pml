/* The chunks of an arena of libmallard-plan.so whose blocks other threads free: src/plan/chunk.hpp.

   The owner is the thread of an instance. It allocates, frees its own blocks, and reads the list
   `touched` as count_touched of src/plan/instance.cpp does. The inline free_elsewhere models
   give_from_elsewhere. Each load, store, exchange or compare-exchange of the model is one in the
   code. Two other threads free blocks of two chunks, while the owner uses each chunk again as soon as
   all its blocks are free.

   Not modelled: memory orders weaker than sequential consistency; how a block reaches another thread
   (here by a slot, which the thread empties in one step).

   Checked: a chunk is used again only while no other thread is between its first and last access to
   the header. The count `live` never becomes smaller than the number of blocks that are not freed. At
   the end no free is lost: all blocks that were allocated have been subtracted. */

#define chunks  2
#define slots   2
#define total   5    /* blocks that the owner allocates */
#define none    7

byte touched = none;        /* the first chunk of the list */
byte next_touched[chunks];
byte live[chunks];
byte freed_elsewhere[chunks];
byte slot[slots];           /* 0: empty, or 1 + the chunk of a block */

/* State that only the properties use. */
byte unfreed[chunks];       /* blocks in slots, and blocks whose free has not begun */
byte writers[chunks];       /* threads inside of free_elsewhere */
byte uses[chunks];          /* how often a chunk was used again */
bool has_ended;
byte ended;

inline free_elsewhere(c)
{
    atomic {
        before = freed_elsewhere[c];
        freed_elsewhere[c] = before + 1;
        unfreed[c]--;
#ifdef BREAK_EACH_FREE_PUSHES
        before = 0;
#endif
        if
        :: before != 0 -> writers[c]--  /* the addition was the last access */
        :: else
        fi
    };
    if
    :: before == 0 ->
        do
        :: first = touched;
            next_touched[c] = first;
            /* This compare-exchange is the last access. */
            d_step {
                done = (touched == first);
                if
                :: done -> touched = c; writers[c]--
                :: else
                fi
            }
            if
            :: done -> break
            :: else
            fi
        od
    :: else
    fi
}

proctype other()
{
    byte c, i, before, first;
    bool done;
    do
    :: atomic { slot[0] != 0 -> i = 0; c = slot[0] - 1; slot[0] = 0; writers[c]++ }
        free_elsewhere(c)
    :: atomic { slot[1] != 0 -> i = 1; c = slot[1] - 1; slot[1] = 0; writers[c]++ }
        free_elsewhere(c)
    :: atomic { has_ended && slot[0] == 0 && slot[1] == 0 -> break }
    od;
    ended++
}

/* Models `empty` of src/plan/instance.cpp. The next block may be at the beginning of the chunk, or
   another instance may get the chunk. So another thread must not write to the header any more. */
inline use_again(c)
{
    assert(writers[c] == 0);
    assert(unfreed[c] == 0);
    assert(freed_elsewhere[c] == 0);
    uses[c]++
}

inline count_touched()
{
    atomic { at = touched; touched = none };
    do
    :: at != none ->
#ifdef BREAK_NEXT_IS_READ_LATE
        next = none;
#else
        next = next_touched[at];
#endif
#ifdef BREAK_COUNT_WITHOUT_EXCHANGE
        freed = freed_elsewhere[at];
        freed_elsewhere[at] = 0;
#else
        atomic { freed = freed_elsewhere[at]; freed_elsewhere[at] = 0 };
#endif
#ifdef BREAK_NEXT_IS_READ_LATE
        next = next_touched[at];
#endif
        assert(live[at] >= freed);
        live[at] = live[at] - freed;
        assert(live[at] >= unfreed[at]);
        if
        :: live[at] == 0 -> atomic { use_again(at) }
        :: else
        fi;
        at = next
    :: else -> break
    od;
    atomic { at = 0; next = 0; freed = 0 }
}

/* Allocates a block of the chunk c. A thread frees the block later. */
inline allocate(c)
{
    atomic {
        live[c]++;
        unfreed[c]++;
        allocated++;
        if
        :: slot[0] == 0 -> slot[0] = 1 + c
        :: slot[1] == 0 -> slot[1] = 1 + c
        fi
    }
}

inline allocate_and_free(c)
{
    live[c]++;
    live[c]--;
#ifdef BREAK_UNCOUNTED_BLOCKS_ARE_FREE
    if
    :: live[c] == freed_elsewhere[c] -> atomic { use_again(c) }
#else
    if
    :: live[c] == 0 -> atomic { use_again(c) }
#endif
    :: else
    fi
}

active proctype owner()
{
    byte at, next, freed, allocated, own, mine;
    atomic {
        run other();
        run other()
    };
    do
    :: allocated < total && (slot[0] == 0 || slot[1] == 0) ->
        mine = allocated % chunks;
        allocate(mine)
    :: own < chunks ->
        allocate_and_free(own);
        own++
    :: touched != none -> count_touched()
    :: allocated == total -> break
    od;
    has_ended = true;
    ended == 2;
    count_touched();
    assert(live[0] == 0 && live[1] == 0);
    assert(unfreed[0] == 0 && unfreed[1] == 0);
    assert(touched == none)
}
