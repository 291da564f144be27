/* The engine of malloc: a span of slices is freed by whoever has it, at once.

   The inlines free_span and resize_span are those of src/heap/requests.cpp, and of large.cpp
   for large blocks; take, give, extend and purge those of slice_heap.cpp. Two threads free
   the same run at once, or one resizes what the other frees: the program is wrong, and
   must be stopped. A third takes spans and frees them, a fourth gives back to the system
   what is dirty.

   Left out: weaker memory than sequential consistency; lists of spans, in which a thread cache's own
   go first; a span that has been taken again with the same entry, which nobody can tell from
   the one before.

   Holds: a slice has one holder; nobody's slice is purged or changes its entry; what is
   said to be zero is; of two who free a span, or free and resize it, one succeeds and the other
   stops the process; in the end nothing is used. */

#define slices   3
#define inside     6               /* the entry of a span's later slices */
#define bit_of(i)  (1 << (i))
#define bits(first, count) (((1 << (count)) - 1) << (first))

byte entries[slices];            /* 0: free */
byte size[slices];               /* in the record of a span's first slice */
byte used;                         /* under the lock */
byte dirty;
bool slice_heap_lock;

/* What only the properties need. */
byte holder[slices];
byte data[slices];               /* 0: zero */
byte succeeded;
byte stopped;

inline lock()
{
    atomic { !slice_heap_lock -> slice_heap_lock = true }
}

inline unlock()
{
    slice_heap_lock = false
}

inline hold(first, count, who)
{
    d_step {
        i = first;
        do
        :: i < first + count ->
            assert(!holder[i] && !entries[i]);
            assert((dirty & bit_of(i)) || data[i] == 0);
            holder[i] = who;
            data[i] = who;
            i++
        :: else -> break
        od;
        i = 0
    }
}

inline let_go(first, count)
{
    d_step {
        i = first;
        do
        :: i < first + count ->
            assert(holder[i] && data[i] == holder[i]);
            holder[i] = 0;
            i++
        :: else -> break
        od;
        i = 0
    }
}

inline change(g, from, to)
{
    d_step {
        done = (entries[g] == from);
        if
        :: done -> entries[g] = to
        :: else
        fi
    }
}

inline mark(first, count, e)
{
    i = first;
    do
    :: i < first + count ->
        entries[i] = e;
        i++
    :: else -> break
    od;
    i = 0
}

inline claim(set)
{
    d_step {
        assert(!(used & (set)));
        used = used | (set);
        dirty = dirty & ~(set)
    }
}

inline give(first, count)
{
    let_go(first, count);
#ifndef BREAK_ENTRIES_AFTER_GIVE
    mark(first, count, 0);
#endif
    lock();
    d_step {
        assert((used & bits(first, count)) == bits(first, count));
        used = used & ~bits(first, count);
        dirty = dirty | bits(first, count)
    };
    unlock();
#ifdef BREAK_ENTRIES_AFTER_GIVE
    mark(first, count, 0);
#endif
}

inline free_span(g, what)
{
#ifdef BREAK_FREE_BY_STORE
    done = (entries[g] == what);
    entries[g] = 0;
#else
    change(g, what, 0);
#endif
    if
    :: done ->
        succeeded++;
        count = size[g];
        give(g, count)
    :: else -> stopped++
    fi;
    done = false
}

/* Those after it, if they are free. */
inline extend(first)
{
#ifdef BREAK_EXTEND_LOOKS_BEFORE_THE_LOCK
    done = !(used & bit_of(first));
    lock();
#else
    lock();
    done = !(used & bit_of(first));
#endif
    if
    :: done ->
        hold(first, 1, me);
        claim(bit_of(first))
    :: else
    fi;
    unlock()
}

/* Of two granules: one becomes mine, and a slice more or less. */
inline resize_span(g, what)
{
#ifdef BREAK_RESIZE_BY_STORE
    done = true;
#else
    change(g, what, inside);           /* so that nobody frees it meanwhile */
#endif
    if
    :: !done -> stopped++
    :: else ->
        succeeded++;
        if
        :: give(g + 1, 1);
            size[g] = 1
        :: extend(g + 2);
            if
            :: done ->
                entries[g + 2] = inside;
                size[g] = 3
            :: else
            fi
        fi;
        entries[g] = me;
        free_span(g, me);               /* whoever has it may free it */
        succeeded--
    fi;
    done = false
}

proctype wrong(byte me)
{
    byte i, count;
    bool done;
    if
    :: free_span(0, 1)
    :: me == 2 -> resize_span(0, 1)
    fi
}

proctype right(byte me)
{
    byte i, g, count;
    bool done;
    do
    :: lock();
        if
        :: !(used & 1) -> g = 0
        :: (used & 3) == 1 -> g = 1
        :: (used & 7) == 3 -> g = 2
        :: used == 7 -> g = slices
        fi;
        if
        :: g != slices ->
            hold(g, 1, me);
            claim(bit_of(g));
            unlock();
            size[g] = 1;
            entries[g] = me;
            change(g, me, 0);
            assert(done);
            count = size[g];
            assert(count == 1);
            give(g, count)
        :: else -> unlock()
        fi;
        g = 0;
        done = false
    :: break
    od
}

/* The span is claimed while the lock is given up for a call of the system, which may refuse. */
inline purge(g)
{
#ifndef BREAK_PURGE_WITHOUT_CLAIM
    claim(bit_of(g));
#endif
    unlock();
    if
    :: d_step {
            assert(!holder[g]);
            data[g] = 0
        };
        lock();
        d_step {
            used = used & ~bit_of(g);
            dirty = dirty & ~bit_of(g)
        }
    :: lock();
        d_step {
            used = used & ~bit_of(g);
#ifndef BREAK_REFUSED_PURGE_IS_CLEAN
            dirty = dirty | bit_of(g)
#endif
        }
    fi
}

proctype purger()
{
    do
    :: lock();
        if
        :: dirty & 4 -> purge(2)
        :: (dirty & 6) == 2 -> purge(1)
        :: dirty == 1 -> purge(0)
        :: dirty == 0
        fi;
        unlock()
    :: break
    od
}

init
{
    atomic {
        entries[0] = 1;
        entries[1] = inside;
        size[0] = 2;
        used = 3;
        holder[0] = 1;
        holder[1] = 1;
        data[0] = 1;
        data[1] = 1;
        run wrong(1);
        run wrong(2);
        run right(3);
        run purger()
    };
    _nr_pr == 1;
    assert(succeeded == 1 && stopped == 1);
    assert(used == 0 && !entries[0] && !entries[1] && !entries[2])
}
