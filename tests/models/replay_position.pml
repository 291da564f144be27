/* The published position of a thread, for which two other threads wait.

   The inline publish models position::publish of src/replay/position.hpp with wake_all of
   position.cpp. The inline wait models position::wait_longer after it has spun. Each load, store
   or exchange of the model is one in the code. The futex compares and falls asleep in one step,
   as in the system. The barrier of a waiter replaces a fence in the publisher. The model has no
   barrier, because its memory is sequentially consistent.

   Not modelled: memory orders weaker than sequential consistency; the wrap of `wakes`; the short
   sleep on systems without the barrier.

   Checked: a waiter goes on only when its position is published, and every waiter ends. (A waiter
   that sleeps for ever is a deadlock, which the search reports.) */

#define last  3     /* the publisher publishes 1, 2 and 3 */
#define never 7

byte position;
byte wanted = never;
byte wakes;
bool is_asleep[2];

inline publish(at)
{
#ifdef BREAK_WANTED_BEFORE_THE_POSITION
    known = wanted;
    position = at;
#else
    position = at;
    known = wanted;
#endif
    if
    :: at >= known ->
#ifdef BREAK_WAKES_BEFORE_WANTED
        wakes++;
        wanted = never;
#else
        wanted = never;
        wakes++;
#endif
        d_step { is_asleep[0] = false; is_asleep[1] = false }
    :: else
    fi
}

active proctype publisher()
{
    byte at = 1, known;
    do
    :: at <= last ->
        publish(at);
        d_step { at++; known = 0 }
    :: else -> break
    od
}

/* The compare-exchange loop of position::ask_for. */
inline ask_for(at)
{
    known = wanted;
    do
    :: at < known ->
        d_step {
            if
            :: wanted == known -> wanted = at; known = 0
            :: else -> known = wanted
            fi
        }
    :: else -> break
    od
}

proctype waiter(byte me; byte at)
{
    byte seen, known;
    do
    :: true ->
#ifdef BREAK_SEEN_AFTER_ASKING
        ask_for(at);
        seen = wakes;
#else
        seen = wakes;
        ask_for(at);
#endif
#ifndef BREAK_NO_LOOK_BEFORE_THE_SLEEP
        if
        :: position >= at -> break
        :: else
        fi;
#endif
        skip;   /* no jump into the next step */
        d_step {
            if
            :: wakes == seen -> is_asleep[me] = true
            :: else
            fi
        };
        !is_asleep[me];
        d_step { seen = 0; known = 0 }
#ifdef BREAK_NO_LOOK_BEFORE_THE_SLEEP
        ;
        if
        :: position >= at -> break
        :: else
        fi
#endif
    od;
    assert(position >= at)
}

init {
    byte first, second;
    atomic {
        select(first : 1 .. last);
        select(second : 1 .. last);
        run waiter(0, first);
        run waiter(1, second)
    }
}
