/* sync::lock_free: a stack of block indices over one chunk, which the first allocation requests.

   The inlines pop and push model functions of tagged_stack. carve, allocate_slowly, take_chunk
   and open model functions of lock_free_core. Each load, store or compare-exchange of the model
   is one in the code. Threads pop and push in any order. One run has two threads that start
   without a chunk. Another run has three threads, two of which hold a block of a chunk of three
   blocks.

   The model leaves out memory orders weaker than sequential consistency; tags that wrap, which takes
   2^32 pops between two lines of another pop; a source that fails; and functions that may run only
   while no other thread is inside a call.

   Checked: a block has one holder. While a block is held and no thread pops or pushes, its link
   is "in use". An allocation returns nothing only if at some moment of the call no block was
   free. At the end each block is held, in the stack or not carved, exactly once. */

#define blocks_max 3
#define none       7  /* all bits of an index; as a link: "in use" */

/* A word of two halves, which changes as a whole. */
#define pack(first, second) ((first) + 8 * (second))
#define first_of(word)      ((word) % 8)
#define second_of(word)     ((word) / 8)
#define bit_of(i)           (1 << (i))

byte head = none;     /* {index of the top, tag} */
byte carved;          /* {blocks allocated at least once, blocks of the chunk}; 0: no chunk */
byte links[blocks_max];
#define end 6         /* the link of the lowest block in the stack */
bool growing;         /* the lock of the thread that requests the chunk */

/* Variables that only the properties read. */
byte pops_left;       /* smaller than the number of tags, so that no tag repeats */
byte held;            /* a bit for each block */
byte inside;          /* a bit for each thread that is inside allocate */
byte saw_none_free;   /* a bit for each of these, if no block was free during its call */
#define none_free (first_of(head) == none && carved == pack(blocks_max, blocks_max))

inline compare_exchange(word, expected, wanted)
{
    d_step {
        done = (word == expected);
        if
        :: done -> word = wanted
        :: else
        fi;
        if
        :: none_free -> saw_none_free = inside
        :: else
        fi
    }
}

/* Pops a block into `block`. If the stack is empty, `block` stays none. */
inline pop()
{
    do
    :: seen = head;
        if
        :: first_of(seen) != none ->
            next = links[first_of(seen)];   /* may be stale; then the tag of the head has changed */
            next = (next == end -> none : next);
#ifdef BREAK_MARK_BEFORE_THE_POP
            links[first_of(seen)] = none;
#endif
#ifdef BREAK_TAG
            compare_exchange(head, seen, pack(next, second_of(seen)));
#else
            compare_exchange(head, seen, pack(next, second_of(seen) + 1));
#endif
            if
            :: done ->
                block = first_of(seen);
                links[block] = none;        /* marks the block as in use */
                break
            :: else
            fi
        :: else -> break
        fi
    od
}

/* Pushes a block, and keeps the tag. Other threads may have popped and pushed the top in the
   meantime. The top is then still the block that must be below the new one. */
inline push()
{
    do
    :: seen = head;
        links[block] = (first_of(seen) == none -> end : first_of(seen));
        compare_exchange(head, seen, pack(block, second_of(seen)));
        if
        :: done -> break
        :: else
        fi
    od
}

inline carve()
{
    do
    :: seen = carved;
        if
        :: first_of(seen) < second_of(seen) ->
#ifdef BREAK_CARVE_BY_STORE
            compare_exchange(carved, carved, pack(first_of(seen) + 1, second_of(seen)));
#else
            compare_exchange(carved, seen, pack(first_of(seen) + 1, second_of(seen)));
#endif
            if
            :: done ->
                block = first_of(seen);
                links[block] = none;        /* marks the block as in use */
                break
            :: else
            fi
        :: else ->
#ifndef BREAK_LAST_LOOK
            /* Tries again, because a block may have been freed before another thread carved the
               last one. */
            pop();
#endif
            break
        fi
    od
}

inline open()
{
    carved = pack(0, blocks_max)
}

inline take_chunk()
{
    atomic { !growing -> growing = true };
#ifdef BREAK_TAKE_A_SECOND_CHUNK
    open();
#else
    if
    :: carved == 0 -> open()
    :: else
    fi;
#endif
    growing = false
}

inline allocate_slowly()
{
    if
    :: carved == 0 -> take_chunk()
    :: else
    fi;
    carve()
}

/* Clears local variables that no later step reads, because their values would only multiply the
   states. */
inline forget_locals()
{
    seen = 0;
    next = 0;
    block = none;
    done = false
}

proctype thread(byte me; byte mine)
{
    byte seen, next, block = none;
    bool done;
    do
    :: d_step {
            pops_left > 0 -> pops_left--;
            inside = inside | bit_of(me);
            saw_none_free = saw_none_free | (none_free -> bit_of(me) : 0)
        };
        pop();
        if
        :: block == none -> allocate_slowly()
        :: else
        fi;
        atomic {
            if
            :: block == none -> assert(saw_none_free & bit_of(me))
            :: else ->
                assert(!(held & bit_of(block)));
                assert(links[block] == none);
                held = held | bit_of(block);
                mine = mine | bit_of(block)
            fi;
            inside = inside & ~bit_of(me);
            saw_none_free = saw_none_free & ~bit_of(me);
            forget_locals()
        }
    :: mine != 0 ->
        atomic {
            if
            :: mine & bit_of(0) -> block = 0
            :: mine & bit_of(1) -> block = 1
            :: mine & bit_of(2) -> block = 2
            fi;
            assert(links[block] == none);
            held = held & ~bit_of(block);
            mine = mine & ~bit_of(block)
        };
        push();
        atomic { forget_locals() }
    :: pops_left == 0 -> break
    od
}

inline count(index)
{
    assert(!(counted & bit_of(index)));
    counted = counted | bit_of(index)
}

init
{
    byte i, counted;
    if
    :: atomic {
            pops_left = 5;
            run thread(0, 0);
            run thread(1, 0)
        }
    :: atomic {
            pops_left = 3;
            carved = pack(2, blocks_max);
            links[0] = none;
            links[1] = none;
            held = bit_of(0) | bit_of(1);
            run thread(0, bit_of(0));
            run thread(1, bit_of(1));
            run thread(2, 0)
        }
    fi;
    _nr_pr == 1;
    d_step {
        counted = held;
        i = first_of(head);
        do
        :: i != none ->
            assert(links[i] != none);
            count(i);
            i = (links[i] == end -> none : links[i])
        :: else -> break
        od;
        i = first_of(carved);
        do
        :: i < second_of(carved) ->
            count(i);
            i++
        :: else -> break
        od;
        assert(counted == bit_of(second_of(carved)) - 1)
    }
}
