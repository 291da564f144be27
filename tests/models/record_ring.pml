/* The ring between a recorded program and the command: segments go from the stack of free segments
   to a thread, are sealed by that thread, and are drained and pushed back by the command.

   The inline pop models pop_segment, fill models append, and finish models seal of
   src/record/segments.cpp. The process command models passes over the table of segments, as in
   ring.py and in `mallard record`: it loads the state of a segment, then its count, reads, and
   pushes a sealed segment back. Each load, store or compare-exchange of the model is one in the
   code. Two threads and the command share two segments of two records, so that a segment is
   popped, drained and pushed while another thread is between its read of the stack and its
   compare-exchange.

   Not modelled: memory orders weaker than sequential consistency; the wrap of the tag; processes
   that are killed; the choice to drop events when no segment is free.

   Checked: a segment has one owner. Each record is read exactly once, and only after it was
   written. At the end all segments are free. */

#define segments 2
#define records  2   /* of a segment */
#define total    5   /* records of each thread: two full segments, and one that is sealed early */
#define none     7   /* bits of an index */

#define pack(index, tag) ((index) + 8 * (tag))
#define index_of(word)   ((word) % 8)
#define tag_of(word)     ((word) / 8)

#define is_free   0
#define in_use    1
#define is_sealed 2

byte head;              /* {index of the top, tag} */
byte below[segments];
byte state[segments];
byte count[segments];
byte data[segments * records];  /* the value of a record: 0 while it is not written */

/* State that only the properties use. */
byte owner[segments];   /* 0: nobody, or 1 + the number of the thread */
byte got[2];            /* records of each thread that the command has read */
byte ended;

inline compare_exchange(word, expected, wanted)
{
    d_step {
        done = (word == expected);
        if
        :: done -> word = wanted
        :: else
        fi
    }
}

/* Pops a segment into `mine`. If no segment is free, `mine` stays none. */
inline pop()
{
    seen = head;
    if
    :: index_of(seen) != none ->
        next = below[index_of(seen)];   /* stale if the head is stale, which the tag reveals */
        compare_exchange(head, seen, pack(next, tag_of(seen)));
        if
        :: done -> mine = index_of(seen)
        :: else
        fi
    :: else
    fi
}

proctype thread(byte me)
{
    byte seen, next, mine = none, at, written;
    bool done;
    do
    :: mine == none && written < total ->
        pop();
        if
        :: mine != none ->
            atomic {
                assert(owner[mine] == 0);
                assert(count[mine] == 0);
                owner[mine] = 1 + me;
                at = 0;
                seen = 0;
                next = 0
            };
            state[mine] = in_use
        :: else -> atomic { seen = 0; next = 0 }
        fi
    :: mine != none && at < records && written < total ->
#ifdef BREAK_COUNT_BEFORE_THE_RECORD
        count[mine] = at + 1;
        data[mine * records + at] = 1 + me;
#else
        data[mine * records + at] = 1 + me;
        count[mine] = at + 1;
#endif
        at++;
        written++
    :: mine != none && (at == records || written == total) ->
        atomic {
            assert(owner[mine] == 1 + me);
            owner[mine] = 0;
            state[mine] = is_sealed
        };
        mine = none;
        at = 0
    :: mine == none && written == total -> break
    od;
    ended++
}

inline read_to(n)
{
    do
    :: position[i] < n ->
        assert(data[i * records + position[i]] != 0);
        got[data[i * records + position[i]] - 1]++;
        data[i * records + position[i]] = 0;
        position[i]++
    :: else -> break
    od
}

inline push()
{
    do
    :: seen = head;
        below[i] = index_of(seen);
#ifdef BREAK_TAG
        compare_exchange(head, seen, pack(i, tag_of(seen)));
#else
        compare_exchange(head, seen, pack(i, tag_of(seen) + 1));
#endif
        if
        :: done -> break
        :: else
        fi
    od
}

active proctype command()
{
    byte i, seen, state_now, count_now, position[segments];
    bool done;
    atomic {
        head = pack(0, 0);
        below[0] = 1;
        below[1] = none;
        run thread(0);
        run thread(1)
    };
    do
    :: got[0] < total || got[1] < total ->
        i = 0;
        do
        :: i < segments ->
#ifdef BREAK_COUNT_BEFORE_THE_STATE
            count_now = count[i];
            state_now = state[i];
#else
            state_now = state[i];
            count_now = count[i];
#endif
            if
            :: state_now != is_free ->
                d_step { read_to(count_now) };
                if
                :: state_now == is_sealed ->
                    assert(position[i] == count[i]);    /* the owner has lost no record */
                    count[i] = 0;
                    position[i] = 0;
                    state[i] = is_free;
                    push()
                :: else
                fi
            :: else
            fi;
            atomic { seen = 0; state_now = 0; count_now = 0; i++ }
        :: else -> break
        od
    :: else -> break
    od;
    ended == 2;
    /* Every segment is sealed or free, and all sealed segments have been read. */
    assert(got[0] == total && got[1] == total);
    i = 0;
    do
    :: i < segments ->
        assert(state[i] != in_use);
        i++
    :: else -> break
    od
}
