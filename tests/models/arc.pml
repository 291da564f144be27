/* counts::shared: handles of one object that several threads copy, drop and lock.

   The inlines add_strong, lock, drop_strong, drop_weak and is_sole model the functions of
   handle_counts with these names. reset models shared_handle::reset and object_pool::drop_last.
   Each load, addition or compare_exchange of the model is one in the code. Three threads start
   with a strong handle, a weak handle, and one handle of each kind. They copy, drop, lock and
   make weak handles in any order. The pool may immediately put another object into a freed slot,
   so no thread may touch a freed slot.

   The model leaves out memory orders weaker than sequential consistency, the destruction of all
   objects together by one thread, and overflow of the counts.

   Checked: the object is destroyed once, when it has no strong handle. Later the slot is freed
   once, when it has no handle at all and no thread reads it. No call of lock returns a handle of a
   destroyed object. When all handles are gone, the object is destroyed and the slot is free. */

#define handles_max 2      /* maximum of handles of each kind in each thread */

/* The word {weak, strong}, which changes as a whole. */
byte strong = 2;
byte weak = 1 + 2;         /* all strong handles together hold one weak handle */

/* Variables that only the properties read. */
byte owners = 2;           /* strong handles that threads have */
byte watchers = 2;         /* weak handles that threads have, or that drop_last holds */
bool destroyed;
bool freed;
byte copies_left = 3;      /* number of copies and locks; limits the search */

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

/* Before the call, the caller must have loaded `seen`. */
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

/* Returns whether the caller has the only handle. Then no other thread can make a handle. */
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

/* Drops a strong handle. `owners` includes this handle until it no longer keeps the object alive. */
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
            :: last -> watchers++    /* the weak handle that all strong handles hold together */
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

/* Clears local variables that no later step reads, because their values would only multiply the
   states. */
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
