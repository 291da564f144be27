/* The malloc engine: a visitor takes the list of free blocks from a thread. The thread uses the
   list without a lock and without a barrier, and may have been interrupted at any instruction.

   push and pop model the functions of these names in src/heap/thread_cache.hpp; refill, the one
   in requests.cpp; busy_begins, the constructor of busy_scope; resume_after_visit, the one in
   visit.cpp; and visit, visit_some there. Stores go through store buffers, as in
   engine_visit.pml. An exchange waits until the buffer of its thread is empty.

   There is one list, with two blocks at first. The thread writes to each block that it allocates.
   The visitor returns the blocks of the list to their slab, from which refill takes blocks.

   The model leaves out slabs and messages (see engine_visit.pml), the visitor's test whether the
   thread is idle, and frees that a thread collects to return many at a time.

   Properties: No block has two owners. No block is lost. At the end `room` is the number of blocks
   that the list may still take. */

#define shown    0                 /* the cache in use; 0: own, 1: visited_thread_cache */
#define wanted   1
#define busy     2
#define room     3
#define head     4                 /* the first block of the list; 0: empty list */
#define next(b)  (4 + (b))
#define marked(b) (6 + (b))        /* the marked link of a free block */
#define words    9
#define limit    2
#define worker   0
#define visitor  1
#define of_mine(word) (me * words + (word))

byte memory[words];
chan buffer[2] = [4] of { byte, byte };
byte pending[2 * words];
byte newest[2 * words];
bool registry_lock;
bool visits_ended;
byte in_doubt;

mtype = { in_list, with_thread, in_slab };
mtype where[3];                    /* the place of each block; only the properties read it */

inline store(word, value)
{
    atomic {
        buffer[me]!word, value;
        d_step {
            pending[of_mine(word)]++;
            newest[of_mine(word)] = value
        }
    }
}

inline load(word)
{
    d_step {
        if
        :: pending[of_mine(word)] != 0 -> loaded = newest[of_mine(word)]
        :: else -> loaded = memory[word]
        fi
    }
}

inline fence_in(thread)
{
    empty(buffer[thread])
}

inline lock()
{
    atomic { !registry_lock -> registry_lock = true }
}

inline unlock()
{
    fence_in(me);
    registry_lock = false
}

/* Counts the blocks of the calling thread's list, to which no other thread writes. */
inline count_list()
{
    d_step {
        count = 0;
        if
        :: pending[of_mine(head)] != 0 -> b = newest[of_mine(head)]
        :: else -> b = memory[head]
        fi;
        do
        :: b != 0 -> count++;
            if
            :: pending[of_mine(next(b))] != 0 -> b = newest[of_mine(next(b))]
            :: else -> b = memory[next(b)]
            fi
        :: else -> break
        od
    }
}

inline resume_after_visit()
{
    load(wanted);
    if
    :: loaded != 0 ->
        count_list();
        load(room);
        if
        :: in_doubt != 0 && loaded + count != limit ->
            d_step {
                b = in_doubt;
                do
                :: memory[next(b)] != 0 -> b = memory[next(b)]
                :: else -> break
                od
            };
            load(head);
            store(next(b), loaded);
            store(head, in_doubt);
            fence_in(me)
        :: else
        fi;
        in_doubt = 0;
        b = 0;
        count_list();
        store(room, limit - count);
        store(wanted, 0);
        store(shown, 0)
    :: else
    fi;
    count = 0;
    b = 0
}

inline busy_begins()
{
    store(busy, 1);
    load(wanted);
    if
    :: loaded != 0 -> lock(); resume_after_visit(); unlock()
    :: else
    fi
}

inline refill()
{
#ifndef BREAK_MISS_IS_COUNTED
    load(room);
    store(room, loaded - 1);
#endif
    busy_begins();
    d_step {
        if
        :: where[1] == in_slab -> where[1] = with_thread
        :: where[1] != in_slab && where[2] == in_slab -> where[2] = with_thread
        :: else
        fi
    };
    store(busy, 0)
}

inline pop()
{
#ifdef BREAK_HEAD_BEFORE_ROOM
    load(head);
    block = loaded;
    load(room);
    store(room, loaded + 1);
#else
    load(room);
    store(room, loaded + 1);
    load(head);
    block = loaded;
#endif
    if
    :: block != 0 ->
        load(next(block));
        store(head, loaded);
        store(marked(block), 0);
        d_step {
            assert(where[block] == in_list);
            where[block] = with_thread
        };
        store(next(block), 7)      /* the caller writes to the block */
    :: else -> refill()
    fi
}

inline push(which)
{
    block = which;
    where[block] = in_list;        /* the caller has freed the block */
    load(room);
    store(room, loaded - 1);
    load(head);
    store(next(block), loaded);
    store(marked(block), 1);
    store(head, block)
}

proctype works()
{
    byte me = worker;
    byte loaded, block, count, b;
    byte left = 3;
    do
    :: left != 0 ->
        left--;
        load(shown);
        if
        :: loaded != 0 -> busy_begins(); store(busy, 0)
        :: else
        fi;
        if
        :: pop()
        :: where[1] == with_thread -> push(1)
        :: where[2] == with_thread -> push(2)
        fi;
        block = 0
    :: left == 0 -> break
    od;
    visits_ended;
    busy_begins();
    store(busy, 0);
    fence_in(me);
    count_list();
    assert(memory[room] + count == limit);
    assert(count == (where[1] == in_list) + (where[2] == in_list));
    assert(in_doubt == 0)
}

/* Counts the blocks of the list that the visitor took. Stops at a block that is not marked as free.
*/
inline count_taken()
{
    d_step {
        count = 0;
        b = taken;
        do
        :: b != 0 && b <= 2 && memory[marked(b)] == 1 && count <= limit ->
            count++;
            b = memory[next(b)]
        :: else -> break
        od;
        b = 0
    }
}

inline give_back_all()
{
    d_step {
        b = taken;
        do
        :: b != 0 ->
            assert(where[b] == in_list);
            where[b] = in_slab;
            memory[marked(b)] = 0;
            b = memory[next(b)]
        :: else -> break
        od;
        b = 0
    }
}

inline barrier_in_all_threads()
{
    fence_in(me);
    fence_in(worker)
}

inline visit()
{
#ifndef BREAK_NOTHING_SHOWN
    store(shown, 1);
#endif
    store(wanted, 1);
#ifdef BREAK_NO_FIRST_BARRIER
    fence_in(me);
#else
    barrier_in_all_threads();
#endif
    load(busy);
    if
    :: loaded == 0 ->
        fence_in(me);
        d_step {
            taken = memory[head];
            memory[head] = 0
        };
#ifndef BREAK_NO_SECOND_BARRIER
        barrier_in_all_threads();
#endif
        if
        :: taken != 0 ->
            count_taken();
            load(head);
            if
#ifdef BREAK_NO_DOUBT
            :: true -> give_back_all()
#else
            :: count != 0 && loaded == 0 && memory[room] + count == limit -> give_back_all()
#endif
            :: else ->
#ifdef BREAK_PUT_BACK
                store(head, taken)
#else
                in_doubt = taken
#endif
            fi
        :: else
        fi
    :: else ->
        store(wanted, 0);
        store(shown, 0)
    fi;
    taken = 0;
    count = 0
}

proctype visits()
{
    byte me = visitor;
    byte loaded, taken, count, b;
    byte left = 2;
    do
    :: left != 0 ->
        left--;
        lock();
        load(wanted);
        if
        :: loaded == 0 -> visit()
        :: else
        fi;
        unlock()
    :: break
    od;
    visits_ended = true
}

proctype stores_leave()
{
    byte thread, word, value;
end:
    do
    :: atomic {
            if
            :: buffer[0]?word, value -> thread = 0
            :: buffer[1]?word, value -> thread = 1
            fi;
            d_step {
                memory[word] = value;
                pending[thread * words + word]--;
                thread = 0;
                word = 0;
                value = 0
            }
        }
    od
}

init
{
    atomic {
        memory[head] = 1;
        memory[next(1)] = 2;
        memory[marked(1)] = 1;
        memory[marked(2)] = 1;
        where[1] = in_list;
        where[2] = in_list;
        run stores_leave();
        run works();
        run visits()
    }
}
