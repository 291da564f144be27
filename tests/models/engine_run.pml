/* The malloc engine: any thread frees a span, that is, adjacent slices that are used as one
   block.

   The inlines free_span and resize_span model the functions of these names in
   src/heap/requests.cpp, and those in large.cpp. take, give, extend and purge model those in
   slice_heap.cpp. Two threads free the same span at the same time, or one thread resizes the
   span that the other frees. Both are errors of the program, and the engine must stop the
   program. A third thread takes spans and frees them. A fourth thread purges dirty slices.

   The model leaves out memory weaker than sequential consistency, and the lists of a cache,
   which serve requests for spans first. It also leaves out a span that is allocated again with
   the same entry in the slice map, because the engine cannot distinguish that span from the old
   one.

   Properties: A slice has one holder. While a slice has a holder, it is never purged and its entry
   does not change. Memory that the slice heap calls zero is zero. If two threads free a span, or
   one frees and one resizes it, one of them succeeds and the other stops the process. At the end
   no slice is in use. */

#define slices   3
#define inside     6               /* the entry of every slice of a span but the first */
#define bit_of(i)  (1 << (i))
#define bits(first, count) (((1 << (count)) - 1) << (first))

byte entries[slices];              /* 0: free */
byte size[slices];                 /* stored in the record of a span's first slice */
byte used;                         /* protected by slice_heap_lock */
byte dirty;
bool slice_heap_lock;

/* Variables that only the properties read. */
byte holder[slices];
byte data[slices];                 /* 0: the slice is zero */
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

/* Extends a span by the slices after it, if these slices are free. */
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

/* Resizes a span of two slices by one slice. */
inline resize_span(g, what)
{
#ifdef BREAK_RESIZE_BY_STORE
    done = true;
#else
    change(g, what, inside);           /* meanwhile no other thread can free the span */
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
        free_span(g, me);               /* any thread that has the span may free it */
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

/* Claims a span and releases the lock during the system call, which may fail. */
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
