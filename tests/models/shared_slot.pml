/* A slot of shared_slot_map: any thread inserts, holds, reads and removes, by any key.
 *
 * The inlines try_hold, let_go and try_remove model functions of shared_slot. The others model
 * functions of shared_slot_map. Each load, store or compare_exchange of the model is one in the
 * code. There is only one slot, so each element replaces the previous one. Three threads
 * together make a few calls. There are fewer generations than calls, so that the slot retires.
 *
 * The model leaves out memory weaker than sequential consistency (comments in shared_slot
 * explain the orders that it needs), and more than one slot, because slots share nothing. The
 * pool is one bit, which is set while the slot is free. A thread that gets the slot sees all
 * writes that happened before the slot was freed.
 *
 * Checked: a key is returned once. A guard holds the element of its key, and both words of the
 * element belong together. A read returns the whole element of its key, or nothing. Only one remove
 * of a key succeeds. Each element is destroyed once, when no guard holds it. At the end no guard is
 * left, and the slot is live, free or retired. */

#define generation_max 3
#define threads        3

/* { generation | live | guards } */
#define live_bit             4
#define guards_of(s)         ((s) % 4)
#define generation_of(s)     ((s) / 8)
#define of(generation)       (8 * (generation))
#define is_live(s, k)        ((s) - guards_of(s) == of(k) + live_bit)

byte state;          /* { 0, 0, 0 }: the slot was never used */
byte words[2];       /* the element: both words contain its generation */
bool is_free = true; /* the slot is free, in the pool */

/* Variables that only the properties read. */
byte calls_left = 7;
byte element;                      /* the generation of the live element, or 0 */
bool given[generation_max + 1];
bool removed[generation_max + 1];
bool retired;

inline compare_exchange(expected, wanted)
{
    d_step {
        done = (state == expected);
        if
        :: done -> state = wanted
        :: else
        fi
    }
}

/* Destroys the element and ends its generation. Called by the thread that made the state
 * { g, 0, 0 }. */
inline finish(g)
{
    d_step {
        assert(element == (g) && !(state & live_bit) && guards_of(state) == 0);
        element = 0
    };
    if
    :: (g) == generation_max -> retired = true
    :: else ->
#ifdef BREAK_FREE_BEFORE_THE_NEXT_GENERATION
        is_free = true;
        state = of((g) + 1)
#else
#ifndef BREAK_NEXT_GENERATION
        state = of((g) + 1);
#endif
        is_free = true
#endif
    fi
}

inline insert()
{
    if
    :: atomic { is_free -> is_free = false };
        g = generation_of(state);
        if
        :: g == 0 -> g = 1
        :: else
        fi;
        assert(element == 0 && !given[g]);
        element = g;
#ifdef BREAK_LIVE_BEFORE_IT_IS_MADE
        state = of(g) + live_bit;
#endif
        words[0] = g;
        words[1] = g;
        given[g] = true;
#ifndef BREAK_LIVE_BEFORE_IT_IS_MADE
        state = of(g) + live_bit
#endif
    :: !is_free
    fi
}

inline try_hold()
{
    s = state;
    do
    :: is_live(s, k) ->
#ifdef BREAK_COUNT_WITHOUT_COMPARE
        state++;
        done = true;
#else
        compare_exchange(s, s + 1);
#endif
        if
        :: done -> break
        :: else -> s = state
        fi
#ifdef BREAK_GENERATION_OF_A_KEY
    :: !is_live(s, k) && (s & live_bit) ->
        compare_exchange(s, s + 1);
        if
        :: done -> break
        :: else -> s = state
        fi
    :: !(s & live_bit) ->
#else
    :: else ->
#endif
        done = false;
        break
    od
}

inline let_go()
{
    d_step {
        s = state;
        state--
    };
    if
#ifdef BREAK_ENDS_WHILE_LIVE
    :: guards_of(s) == 1 ->
#else
    :: guards_of(s) == 1 && !(s & live_bit) ->
#endif
        finish(k)
    :: else
    fi
}

inline hold_and_use()
{
    try_hold();
    if
    :: done ->
        assert(element == k && words[0] == k);
        assert(element == k && words[1] == k);
        let_go()
    :: else
    fi
}

inline try_remove()
{
    s = state;
    do
    :: is_live(s, k) ->
        compare_exchange(s, s - live_bit);
        if
        :: done ->
            assert(!removed[k]);
            removed[k] = true;
            if
#ifdef BREAK_REMOVE_ENDS_WHAT_IS_HELD
            :: true ->
#else
            :: guards_of(s) == 0 ->
#endif
                finish(k)
            :: else
            fi;
            break
        :: else -> s = state
        fi
    :: else -> break
    od
}

inline read()
{
    s = state;
    if
    :: is_live(s, k) ->
        first = words[0];
        second = words[1];
#ifndef BREAK_SECOND_LOOK
        s = state;
#endif
        if
        :: is_live(s, k) -> assert(first == k && second == k)
        :: else
        fi
    :: else
    fi
}

proctype thread()
{
    byte s, k, g, first, second;
    bool done;
    do
    :: atomic {
            calls_left > 0 -> calls_left--;
            select(k : 1 .. generation_max)
        };
        if
        :: insert()
        :: hold_and_use()
        :: try_remove()
        :: read()
        fi;
        /* Clears local variables that no later step reads, because their values would only
           multiply the states. */
        atomic { s = 0; k = 0; g = 0; first = 0; second = 0; done = false }
    :: calls_left == 0 -> break
    od
}

init
{
    byte i;
    atomic {
        for (i : 1 .. threads) {
            run thread()
        }
    };
    _nr_pr == 1;
    assert(guards_of(state) == 0);
    assert(!(state & live_bit) || element == generation_of(state));
    assert((state & live_bit) || (element == 0 && (is_free || retired)))
}
