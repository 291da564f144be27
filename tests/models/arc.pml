/* counts::shared: handles of one object that threads copy, drop and lock.

   The inlines add_strong, lock, drop_strong, drop_weak, is_sole and reset are those of
   handle_counts, and of shared_handle::reset and object_pool::drop_last above it; a
   load, an addition or a compare_exchange here is one there. Three threads begin with
   a strong handle, a weak one and one of each, and copy, drop, lock and watch in any
   order; a slot that is freed may hold another object at once, with handles nobody
   here knows.

   Left out: weaker memory than sequential consistency; the end of all objects at
   once, which is for one thread; overflow.

   Holds: the object is destroyed once, and while nobody has a strong handle; its slot
   is freed once, after that, and while nobody has a handle at all or looks at it; lock
   gives no handle of a dead object; in the end, where all handles are gone, object and
   slot are gone too. */

#define handles_max 2      /* of each kind and thread */

/* The word {weak, strong}. What changes it changes it as one. */
byte strong = 2;
byte weak = 1 + 2;         /* the strong ones hold one together */

/* What only the properties need. */
byte owners = 2;           /* strong handles that threads have */
byte watchers = 2;         /* weak ones, or one that drop_last has */
bool destroyed;
bool freed;
byte copies_left = 3;      /* and locks: so that the search has an end */

inline touch()
{
    assert(!freed)
}

inline add_strong()
{
    d_step {
        touch();
        assert(!destroyed);
        strong++;
        owners++;
        mine++
    }
}

inline add_weak()
{
    d_step {
        touch();
        weak++;
        watchers++;
        seen_by_me++
    }
}

/* With `seen` loaded. */
inline lock()
{
    do
    :: seen != 0 ->
        d_step {
            touch();
#ifdef BREAK_LOCK_BY_PLAIN_ADD
            done = true;
            strong++;
#else
            done = (strong == seen);
            if
            :: done -> strong = seen + 1
            :: else -> seen = strong
            fi;
#endif
            if
            :: done ->
                assert(!destroyed);
                owners++;
                mine++
            :: else
            fi
        };
        if
        :: done -> break
        :: else
        fi
    :: else -> break
    od
}

inline destroy()
{
    d_step {
        touch();
        assert(!destroyed && owners == 0);
        destroyed = true
    }
}

inline free_slot()
{
    d_step {
        assert(!freed && destroyed && owners == 0 && watchers == 0);
        freed = true
    }
}

inline drop_weak()
{
    d_step {
        touch();
        last = (weak == 1);
        weak--;
        watchers--
    };
    if
    :: last -> free_slot()
    :: else
    fi
}

/* One handle, and nobody who might make another. */
inline is_sole()
{
    d_step {
        touch();
#ifdef BREAK_SOLE_OF_THE_STRONG
        sole = (strong == 1)
#else
        sole = (strong == 1 && weak == 1)
#endif
    }
}

/* The handle that goes is its thread's until then: it is counted out of `owners`
   where it ceases to be one. */
inline reset()
{
    is_sole();
    if
    :: sole ->
        owners--;
        destroy();
        free_slot()
    :: else ->
        d_step {
            touch();
            last = (strong == 1);
            strong--;
            owners--;
            if
            :: last -> watchers++    /* the weak handle that the strong ones hold together */
            :: else
            fi
        };
        if
        :: last ->
#ifdef BREAK_WEAK_BEFORE_DESTRUCTOR
            drop_weak();
            destroy()
#else
            destroy();
#ifdef BREAK_LAST_STRONG_FREES_THE_SLOT
            watchers--;
            free_slot()
#else
            drop_weak()
#endif
#endif
        :: else
        fi
    fi
}

/* Called where they are dead: values that nobody looks at again only make more states. */
inline forget_locals()
{
    seen = 0;
    done = false;
    last = false;
    sole = false
}

proctype thread(byte mine; byte seen_by_me)
{
    byte seen;
    bool done, last, sole;
    do
    :: atomic { mine != 0 && mine < handles_max && copies_left > 0 ->
            copies_left--;
            add_strong()
        }
    :: atomic { mine != 0 && seen_by_me < handles_max && copies_left > 0 ->
            copies_left--;
            add_weak()
        }
    :: atomic { seen_by_me != 0 && mine < handles_max && copies_left > 0 ->
            copies_left--;
            touch();
            seen = strong
        };
        lock();
        atomic { forget_locals() }
    :: atomic { mine != 0 -> mine-- };
        reset();
        atomic { forget_locals() }
    :: atomic { seen_by_me != 0 -> seen_by_me-- };
        drop_weak();
        atomic { forget_locals() }
    :: mine == 0 && seen_by_me == 0 -> break
    od
}

init
{
    atomic {
        run thread(1, 0);
        run thread(0, 1);
        run thread(1, 1)
    };
    _nr_pr == 1;
    assert(destroyed && freed && owners == 0 && watchers == 0)
}
