/* sync::lock_free: a stack of block numbers that grows while it is in use.

   The inlines pop, push, carve, grow, has_room_in_table, enter and open are those of
   lock_free_core; a load, a store or a compare_exchange here is one there. Threads
   pop and push in any order: two that begin with an empty pool, and three of which
   two have a block each of its first chunk. There are two chunks of two blocks.

   Left out: weaker memory than sequential consistency; the wrap of the tag, which
   takes 2^32 pops between two lines of another pop; a source that has nothing, which
   ends like the limit; all that may run only while no thread is inside a call.

   Holds: a block has one holder; the directory knows each number that a thread sees;
   a thread gets nothing only if at some moment of its call no block was free; in the
   end each block is held, stacked or not carved, once. */

#define chunk_blocks 2
#define blocks_max   4
#define none         7

/* A word of two halves, changed as one. */
#define pack(first, second) ((first) + 8 * (second))
#define first_of(word)      ((word) % 8)
#define second_of(word)     ((word) / 8)
#define bit_of(i)           (1 << (i))

byte head = none;     /* {number of the top, tag} */
byte window;          /* {next, end}, at first empty */
byte links[blocks_max];
bool growing;         /* the lock */
byte directory;       /* the published table; table t has room for 2^t chunks */
bool entries[4];
#define entry(table, chunk) entries[2 * (table) + (chunk)]

/* What only the properties need. */
byte pops_left;       /* fewer than tags, so that none comes twice */
byte held;            /* a bit for each block */
byte inside;          /* a bit for each thread that is in allocate, and */
byte saw_none_free;   /* for each of them in whose time no block was free */
#define none_free (first_of(head) == none && window == pack(blocks_max, blocks_max))

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

/* Two loads in C++; one here, because a table loaded earlier can only know less. */
inline place_of(number)
{
    assert(entry(directory, (number) / chunk_blocks))
}

inline carve()
{
    do
    :: seen = window;
        if
        :: first_of(seen) < second_of(seen) ->
#ifdef BREAK_CARVE_BY_STORE
            compare_exchange(window, window, pack(first_of(seen) + 1, second_of(seen)));
#else
            compare_exchange(window, seen, pack(first_of(seen) + 1, second_of(seen)));
#endif
            if
            :: done ->
                block = first_of(seen);
                break
            :: else
            fi
        :: else -> break
        fi
    od
}

/* Leaves `block` as it is, none, when there is nothing. */
inline pop()
{
    do
    :: seen = head;
        if
        :: first_of(seen) != none ->
            d_step {
                place_of(first_of(seen));
                next = links[first_of(seen)]   /* stale if the head is: then its tag tells */
            };
#ifdef BREAK_TAG
            compare_exchange(head, seen, pack(next, second_of(seen)));
#else
            compare_exchange(head, seen, pack(next, second_of(seen) + 1));
#endif
            if
            :: done ->
                block = first_of(seen);
                break
            :: else
            fi
        :: else ->
            carve();
            break
        fi
    od
}

/* Leaves the tag alone: whatever the head was meanwhile, `seen` is below the block now. */
inline push()
{
    do
    :: seen = head;
        links[block] = first_of(seen);
        compare_exchange(head, seen, pack(block, second_of(seen)));
        if
        :: done -> break
        :: else
        fi
    od
}

/* For the chunk whose first block is `first`, as all that follows. */
inline has_room_in_table()
{
    if
    :: first / chunk_blocks < 1 << directory
    :: else ->
        /* Filled before it is published: others look up older chunks meanwhile. */
#ifdef BREAK_TABLE_BEFORE_ITS_ENTRIES
        directory = 1;
        entry(1, 0) = entry(0, 0)
#else
        entry(1, 0) = entry(0, 0);
        directory = 1
#endif
    fi
}

inline enter()
{
    entry(directory, first / chunk_blocks) = true
}

inline open()
{
    window = pack(first, first + chunk_blocks)
}

inline grow()
{
    atomic { !growing -> growing = true };
#ifndef BREAK_LOOK_AGAIN
    pop();   /* the one before may have grown: a window that is not empty must not be replaced */
#endif
    do
    :: block == none && second_of(window) < blocks_max ->
        first = second_of(window);
        has_room_in_table();
#ifdef BREAK_WINDOW_BEFORE_ENTRY
        open();
        enter();
#else
        enter();
        open();
#endif
        pop()
    :: else -> break
    od;
#ifndef BREAK_LAST_LOOK
    /* pop looks at the head and then at the window; while it did, a block may have
       been freed and the window used up. Now that stays empty, so the head decides. */
    if
    :: block == none -> pop()
    :: else
    fi;
#endif
    growing = false
}

/* Called where they are dead: values that nobody looks at again only make more states. */
inline forget_locals()
{
    seen = 0;
    next = 0;
    first = 0;
    block = none;
    done = false
}

proctype thread(byte me; byte mine)
{
    byte seen, next, first, block = none;
    bool done;
    do
    :: d_step {
            pops_left > 0 -> pops_left--;
            inside = inside | bit_of(me);
            saw_none_free = saw_none_free | (none_free -> bit_of(me) : 0)
        };
        pop();
        if
        :: block == none -> grow()
        :: else
        fi;
        atomic {
            if
            :: block == none -> assert(saw_none_free & bit_of(me))
            :: else ->
                place_of(block);
                assert(!(held & bit_of(block)));
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
            :: mine & bit_of(3) -> block = 3
            fi;
            held = held & ~bit_of(block);
            mine = mine & ~bit_of(block)
        };
        push();
        atomic { forget_locals() }
    :: pops_left == 0 -> break
    od
}

inline count(number)
{
    assert(!(counted & bit_of(number)));
    counted = counted | bit_of(number)
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
            entry(0, 0) = true;
            window = pack(chunk_blocks, chunk_blocks);
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
            count(i);
            i = links[i]
        :: else -> break
        od;
        i = first_of(window);
        do
        :: i < second_of(window) ->
            count(i);
            i++
        :: else -> break
        od;
        assert(counted == bit_of(second_of(window)) - 1)
    }
}
