/* The malloc engine: a heap is released, reset, confined to another thread, and trimmed. Other
   threads have freed blocks of the heap before, or free blocks during the trim.

   free_it models free_of_heap in src/heap/heap.cpp. release and trim model the functions of
   these names there, and push_to_inbox and splice those in remote.cpp. Two threads allocate,
   free blocks of each other, trim, and release. The documentation requires that no other thread
   is in a call on the heap when a thread releases the heap or confines it to itself. The model
   keeps to this rule. A third thread takes released memory for another use.

   The model leaves out memory weaker than sequential consistency; the push of a message, which
   is one step (see engine_remote.pml); more than one slab and one chunk; and blocks above 1 MiB,
   which any thread frees directly (see engine_run.pml).

   Properties: No thread reads or writes memory for a heap that has released the memory. One
   thread at a time touches the heap's cache. Each block is in one place. After a release the
   heap has no block. At the end `used` is the number of blocks that callers and the list have. */

#define shared     7               /* as `holder`: any thread may use the heap */
#define all        7               /* three blocks */
#define bit_of(i)  (1 << (i))
#define count(set) (((set) & 1) + ((set) >> 1 & 1) + ((set) >> 2 & 1))

byte holder;                       /* the thread that the heap is confined to */
bool heap_lock;
/* True while the entries of the chunk in the slice map name the heap. */
bool has;
byte slab_free;
byte used;
byte list;                         /* blocks in the free list of the cache */
byte inbox;
byte messages;                     /* messages taken from the inbox */
bool unused = true;                /* whether the slice heap has the chunk */

/* Variables that only the properties read. */
byte held;                         /* blocks that callers hold */
byte collected[2];
bool in_call[2];
/* True while no other thread is in a call. The program has to ensure this before a release. */
bool alone;
bool touched;
byte calls_left = 8;

inline lock()
{
    atomic { !heap_lock -> heap_lock = true }
}

inline unlock()
{
    heap_lock = false
}

inline begin_touch()
{
    d_step {
        assert(!touched);
        touched = true
    }
}

inline end_touch()
{
    touched = false
}

inline claim()
{
    if
    :: holder == shared -> lock()
    :: else
    fi;
    begin_touch()
}

inline unclaim()
{
    end_touch();
    if
    :: holder == shared -> unlock()
    :: else
    fi
}

inline push_own(block)
{
    begin_touch();
    assert(has);
    list = list | block;
    end_touch()
}

inline push_to_inbox(blocks)
{
    assert(has);                   /* links are written into the blocks */
    inbox = inbox | (blocks);
#ifdef BREAK_LOOK_AFTER_THE_POST
    assert(has)                    /* the record is read, for the number of blocks */
#endif
}

inline send(block)
{
#ifdef BREAK_NOT_USED_ON_ITS_WAY
    used = used - 1;
#endif
#ifdef BREAK_HEAPS_HAVE_PARCELS
    collected[me] = collected[me] | block
#else
    push_to_inbox(block)
#endif
}

inline free_it()
{
    if
    :: holder == me -> push_own(block)
    :: holder == shared ->
        if
#ifdef BREAK_PUSH_WITHOUT_LOCK
        :: push_own(block)
#else
        :: lock();
            push_own(block);
            unlock()
#endif
        :: heap_lock -> send(block)
        fi
    :: else -> send(block)
    fi
}

inline free_a_block()
{
    atomic {
        if
        :: held & 1 -> block = 1
        :: held & 2 -> block = 2
        :: held & 4 -> block = 4
        :: held == 0
        fi;
        held = held & ~block
    };
    /* The engine reads the entry of the slice map and the mark of the free block. */
    assert(has || !block);
    if
    :: block == 0
    :: else -> free_it()
    fi;
    block = 0
}

/* Reads some messages. Others may stay for the next call. */
inline read_messages()
{
    if
    :: messages == 0 ->
        d_step {
            messages = inbox;
            inbox = 0
        }
    :: else
    fi;
    do
    :: messages != 0 ->
        d_step {
            if
            :: messages & 1 -> block = 1
            :: !(messages & 1) && messages & 2 -> block = 2
            :: messages == 4 -> block = 4
            fi;
            messages = messages & ~block
        };
        splice(block);
        block = 0
    :: true -> break
    od
}

inline splice(block)
{
    d_step {
        assert(has && used != 0 && !(slab_free & block));
#ifndef BREAK_NOT_USED_ON_ITS_WAY
        used = used - 1;
#endif
        slab_free = slab_free | block
    }
}

inline allocate()
{
    claim();
    if
    :: list == 0 ->
        read_messages();
        atomic {
            if
            :: !has && unused ->
                unused = false;
                has = true;
                slab_free = all;
                used = 0
            :: else
            fi
        };
        d_step {
            list = slab_free;
            used = used + count(slab_free);
            slab_free = 0
        }
    :: else
    fi;
    d_step {
        if
        :: list & 1 -> block = 1
        :: !(list & 1) && list & 2 -> block = 2
        :: list == 4 -> block = 4
        :: list == 0 -> block = 0
        fi;
        assert(!(held & block) && (has || !block));
        list = list & ~block;
        held = held | block;
        block = 0
    };
    unclaim()
}

inline give_chunk()
{
    d_step {
        has = false;
        unused = true
    }
}

inline trim()
{
#ifdef BREAK_TRIM_WITHOUT_CLAIM
    begin_touch();
#else
    claim();
#endif
    do
    :: messages || inbox -> read_messages()
    :: else -> break
    od;
    atomic {
        slab_free = slab_free | list;
        used = used - count(list);
        list = 0
    };
    if
    :: has && used == 0 ->
        assert(slab_free == all);
        slab_free = 0;
        give_chunk()
    :: else
    fi;
#ifdef BREAK_TRIM_WITHOUT_CLAIM
    end_touch()
#else
    unclaim()
#endif
}

inline forget_blocks()
{
#ifndef BREAK_RELEASE_KEEPS_THE_LIST
    list = 0;
#endif
#ifndef BREAK_RELEASE_KEEPS_THE_INBOX
    inbox = 0;
#endif
#ifndef BREAK_RELEASE_KEEPS_LETTERS
    messages = 0;
#endif
    used = 0;
    slab_free = 0
}

/* Releases the heap. The program no longer uses the blocks that callers held. */
inline release()
{
    held = 0;
    begin_touch();
    if
    :: has -> give_chunk()
    :: else
    fi;
    forget_blocks();
    end_touch()
}

inline reset()
{
    held = 0;
    begin_touch();
    forget_blocks();
    if
    :: has -> slab_free = all
    :: else
    fi;
    end_touch()
}

/* Waits until no other thread is in a call, as a program must before it releases the heap. If
 * the heap is confined, it must be confined to this thread. */
inline alone_in_the_program()
{
    atomic { !alone && !in_call[1 - me] -> alone = true }
}

inline call()
{
    atomic { !alone -> in_call[me] = true }
}

proctype thread(byte me)
{
    byte block;
    do
    :: atomic { calls_left != 0 -> calls_left-- };
        if
        :: call();
            if
            :: free_a_block()
            :: holder == me || holder == shared -> allocate()
            :: holder == me || holder == shared -> trim()
            fi;
            in_call[me] = false
        :: collected[me] != 0 -> push_to_inbox(collected[me]); collected[me] = 0
        :: alone_in_the_program();
            if
            :: release();              /* the heap is destroyed, and made again by any thread */
                if
                :: holder = shared
                :: holder = 0
                :: holder = 1
                fi
            :: reset()
            :: holder != shared -> holder = me         /* the thread has adopted the heap */
            fi;
            alone = false
        fi
    :: break
    od;
    if
    :: collected[me] != 0 -> push_to_inbox(collected[me])
    :: else
    fi
}

proctype stranger()
{
end:
    do
    :: atomic { unused -> unused = false };
        assert(!has);                  /* the new owner of the memory writes to it */
        unused = true
    od
}

init
{
    byte block;
    byte me;
    atomic {
        if
        :: holder = 0
        :: holder = shared
        fi;
        run stranger();
        run thread(0);
        run thread(1)
    };
    _nr_pr == 2;
    do
    :: messages || inbox -> read_messages()
    :: else -> break
    od;
    assert(has || !(held | list | slab_free));
    assert(!has || (held ^ list ^ slab_free) == all && used == count(held | list))
}
