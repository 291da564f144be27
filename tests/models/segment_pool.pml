/* segment_pool: the stack of stack.pml, in processes that may be killed at any instruction. While
   a block is in use, its link holds a mark.

   The inlines pop and push model functions of tagged_stack. carve, try_allocate and deallocate
   model functions of segment_pool. Each load, store or compare_exchange of the model is one in
   the code. Any process may free any block that it sees in use, so two processes may free the
   same block at the same time. There are two blocks.

   The model leaves out memory orders weaker than sequential consistency, and tags that wrap.

   Checked: a block is allocated once before it is freed, and freed once. An allocation returns
   nothing only if at some moment of the call no block was free. At the end each block is in use,
   in the stack or not carved, exactly once. Each killed process loses at most one block. That
   block is then in use without a mark. No process waits for another process. A process only
   repeats a compare_exchange that failed because the compare_exchange of another process
   succeeded. */

#define blocks_max 2
#define in_use     6
#define none       7

#define pack(first, second) ((first) + 8 * (second))
#define first_of(word)      ((word) % 8)
#define second_of(word)     ((word) / 8)
#define bit_of(i)           (1 << (i))

byte head = none;        /* {number of the top, tag} */
byte carved;
byte links[blocks_max];

/* Variables that only the properties read. */
byte pops_left;          /* smaller than the number of tags, so that no tag repeats */
byte frees_left;
byte kills_left = 1;
byte killed;             /* a bit for each process */
byte out;                /* a bit for each block that is not in the pool */
byte inside;             /* a bit for each process that is inside allocate */
byte saw_none_free;      /* a bit for each of these, if no block was free during its call */
#define none_free (first_of(head) == none && carved == blocks_max)

inline note_none_free()
{
    if
    :: none_free -> saw_none_free = saw_none_free | inside
    :: else
    fi
}

inline leaves(number)
{
    assert(!(out & bit_of(number)));
    out = out | bit_of(number)
}

/* Pops a block into `block`. If the stack is empty, `block` stays none. */
inline pop()
{
    do
    :: seen = head;
        if
        :: first_of(seen) == none -> break
        :: else ->
            /* The link may be a mark. Then the tag of `seen` is stale, and the compare_exchange
               fails. */
            next = links[first_of(seen)];
            d_step {
                done = (head == seen);
                if
                :: done ->
#ifdef BREAK_TAG
                    head = pack(next, second_of(seen));
#else
                    head = pack(next, second_of(seen) + 1);
#endif
                    block = first_of(seen);
                    leaves(block)
                :: else
                fi;
                note_none_free()
            };
            if
            :: done -> break
            :: else
            fi
        fi
    od
}

inline carve()
{
    do
    :: seen = carved;
        if
        :: seen == blocks_max -> break
        :: else ->
            d_step {
#ifdef BREAK_CARVE_BY_STORE
                done = true;
#else
                done = (carved == seen);
#endif
                if
                :: done ->
                    carved = seen + 1;
                    block = seen;
                    leaves(block)
                :: else
                fi;
                note_none_free()
            };
            if
            :: done -> break
            :: else
            fi
        fi
    od
}

inline push()
{
    do
    :: seen = head;
        links[block] = first_of(seen);
        d_step {
            done = (head == seen);
            if
            :: done ->
                head = pack(block, second_of(seen));
                assert(out & bit_of(block));
                out = out & ~bit_of(block)
            :: else
            fi
        };
        if
        :: done -> break
        :: else
        fi
    od
}

inline try_allocate()
{
    pop();
    if
    :: block == none -> carve()
    :: else
    fi;
#ifndef BREAK_LAST_LOOK
    if
    :: block == none -> pop()
    :: else
    fi;
#endif
    if
    :: block == none -> assert(saw_none_free & bit_of(me))
    :: else -> links[block] = in_use
    fi
}

/* In C++, a free of a block that is not in use stops the caller. Here it has no effect. */
inline deallocate()
{
#ifdef BREAK_MARK_BY_STORE
    done = (links[block] == in_use);
    if
    :: done -> links[block] = none
    :: else
    fi;
#else
    d_step {
        done = (links[block] == in_use);
        if
        :: done -> links[block] = none
        :: else
        fi
    };
#endif
    if
    :: done -> push()
    :: else
    fi
}

inline forget_locals()
{
    seen = 0;
    next = 0;
    block = none;
    done = false
}

proctype process(byte me)
{
    byte seen, next, block = none;
    bool done;
    {
        do
        :: d_step {
                pops_left > 0 -> pops_left--;
                inside = inside | bit_of(me);
                saw_none_free = saw_none_free & ~bit_of(me);
                note_none_free()
            };
            try_allocate();
            atomic {
                inside = inside & ~bit_of(me);
                saw_none_free = saw_none_free & ~bit_of(me);
                forget_locals()
            }
        :: d_step { frees_left > 0 && links[0] == in_use -> frees_left--; block = 0 };
            deallocate();
            atomic { forget_locals() }
        :: d_step { frees_left > 0 && links[1] == in_use -> frees_left--; block = 1 };
            deallocate();
            atomic { forget_locals() }
        :: pops_left == 0 -> break
        od
    } unless {
        killed & bit_of(me)
    };
    atomic {
        inside = inside & ~bit_of(me);
        forget_locals()
    }
}

/* Kills a process at any moment, or never. */
proctype killer()
{
    do
    :: atomic { kills_left > 0 -> kills_left--; killed = killed | bit_of(0) }
    :: break
    od
}

inline count(number)
{
    assert(!(counted & bit_of(number)));
    counted = counted | bit_of(number)
}

init
{
    byte i, counted, lost;
    if
    :: atomic {
            carved = 1;      /* one block in use, one not carved */
            links[0] = in_use;
            out = bit_of(0);
            pops_left = 2;
            frees_left = 2;
            run process(0);
            run process(1);
            run process(2);
            run killer()
        }
    :: atomic {
            carved = 2;      /* both blocks in the stack */
            head = pack(0, 0);
            links[0] = 1;
            links[1] = none;
            pops_left = 3;
            frees_left = 2;
            run process(0);
            run process(1);
            run killer()
        }
    fi;
    _nr_pr == 1;
    d_step {
        i = 0;
        do
        :: i < carved ->
            if
            :: out & bit_of(i) ->
                count(i);
                lost = lost + (links[i] == in_use -> 0 : 1)
            :: else
            fi;
            i++
        :: else -> break
        od;
        assert(lost <= (killed != 0 -> 1 : 0));
        i = first_of(head);
        do
        :: i != none ->
            assert(i < blocks_max);
            count(i);
            i = links[i]
        :: else -> break
        od;
        assert(counted == bit_of(carved) - 1)
    }
}
