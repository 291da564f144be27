/* sync::thread_cached: blocks that other threads free return to their chunk.

   The inlines free_remotely, post and collect model functions of cached_blocks. Each load, store,
   exchange, fetch_or or compare_exchange of the model is one in the code. Two threads free blocks
   in any order. A third thread, the owner of the chunks, collects the returned blocks at any
   time, and allocates each of them once more.

   The model leaves out memory orders weaker than sequential consistency, and the exit of the
   owner, after which the cache of that thread keeps the chunks.

   Checked: a chunk in a list is not posted again, so no list becomes a cycle. At the end the
   owner has each freed block once, and no bit is set in a word or a summary. */

#define none         7
#define bit_of(i)    (1 << (i))

/* Two chunks, each with two words of two blocks. Four blocks are in use: two of one word, one of the
   other word of that chunk, and one of the other chunk. */
#define blocks_in_use    (bit_of(0) | bit_of(1) | bit_of(2) | bit_of(4))
#define first_of(c, w)   (4 * (c) + 2 * (w))
#define chunk_of(block)  ((block) / 4)
#define word_of(block)   ((block) / 2 % 2)
#define mask_of(block)   bit_of((block) % 2)

byte words[4];                 /* a bit for each free block */
#define word(c, w)       words[2 * (c) + (w)]
byte summary[2];               /* a bit for each word that has returned blocks */
byte next_posted[2];
byte inbox = none;             /* the chunk that was posted last */
byte free_list;                /* free blocks of the owner, a bit for each block */

/* Variables that only the properties read. */
byte in_use = blocks_in_use;
bool handed_out_again;
byte listed;                   /* a bit for each chunk that is in the inbox or not read yet */
byte released;                 /* a bit for each chunk whose memory was returned */

inline exchange(old, place, value)
{
    d_step {
        old = place;
        place = value
    }
}

inline fetch_or(old, place, bits)
{
    d_step {
        old = place;
        place = place | (bits)
    }
}

inline touch(chunk)
{
    assert(!(released & bit_of(chunk)))
}

inline post(chunk)
{
    d_step {
        assert(!(listed & bit_of(chunk)));
        listed = listed | bit_of(chunk)
    };
    do
    :: head = inbox;
        touch(chunk);
        next_posted[chunk] = head;
        d_step {
            done = (inbox == head);
            if
            :: done -> inbox = chunk
            :: else
            fi
        };
        if
        :: done -> break
        :: else
        fi
    od
}

inline set_bit()
{
    touch(chunk_of(block));
    fetch_or(old, word(chunk_of(block), word_of(block)), mask_of(block));
    assert(!(old & mask_of(block)))
}

inline mark()
{
    touch(chunk_of(block));
    old = summary[chunk_of(block)];
    if
    /* The owner clears the bit in `summary` before it reads the word. */
    :: old & bit_of(word_of(block))
    :: else ->
        touch(chunk_of(block));
        fetch_or(old, summary[chunk_of(block)], bit_of(word_of(block)));
        if
#ifdef BREAK_POST_EACH_WORD
        :: !(old & bit_of(word_of(block))) -> post(chunk_of(block))
#else
        :: old == 0 -> post(chunk_of(block))
#endif
        :: else
        fi
    fi
}

inline free_remotely()
{
#ifdef BREAK_MARK_BEFORE_BIT
    mark();
    set_bit()
#else
    set_bit();
    mark()
#endif
}

proctype freer()
{
    byte block, old, head;
    bool done;
    do
    :: atomic {
            if
            :: in_use & bit_of(0) -> block = 0
            :: in_use & bit_of(1) -> block = 1
            :: in_use & bit_of(2) -> block = 2
            :: in_use & bit_of(4) -> block = 4
            fi;
            in_use = in_use & ~bit_of(block)
        };
        free_remotely();
        atomic {
            block = 0;
            old = 0;
            head = 0;
            done = false
        }
    :: break
    od
}

/* The word may be empty, because a thread sets the bit in `summary` after the bit of its block,
   possibly much later. */
inline take_word(w)
{
    if
    :: marked & bit_of(w) ->
        exchange(bits, word(chunk, w), 0);
        d_step {
            bits = bits << first_of(chunk, w);
            assert(!(free_list & bits));
            free_list = free_list | bits;
            bits = 0
        }
    :: else
    fi
}

inline read_next()
{
    d_step {
        next = next_posted[chunk];
        listed = listed & ~bit_of(chunk)
    }
}

inline collect()
{
    exchange(chunk, inbox, none);
    do
    :: chunk != none ->
#ifndef BREAK_NEXT_AFTER_SUMMARY
        /* Reads the link before the summary is empty, because another thread may then post the
           chunk. */
        read_next();
#endif
#ifdef BREAK_SUMMARY_AFTER_WORDS
        marked = summary[chunk];
#else
        exchange(marked, summary[chunk], 0);
#endif
#ifdef BREAK_NEXT_AFTER_SUMMARY
        read_next();
#endif
        take_word(0);
        take_word(1);
#ifdef BREAK_SUMMARY_AFTER_WORDS
        summary[chunk] = 0;
#endif
#ifdef BREAK_RELEASE_WHEN_FREE
        /* All blocks of the chunk are free here, but the thread that freed the last block may be
           about to mark it in the summary. So cached_core::trim first freezes all caches. */
        if
        :: chunk == 0 && (free_list & 7) == 7 && handed_out_again -> released = bit_of(0)
        :: else
        fi;
#endif
        d_step {
            chunk = next;
            next = 0;
            marked = 0
        }
    :: else -> break
    od
}

init
{
    byte chunk, next, marked, bits;
    atomic {
        run freer();
        run freer()
    };
    do
    :: inbox != none -> collect()
    :: atomic {
            free_list != 0 && !handed_out_again ->
            handed_out_again = true;
            in_use = in_use | free_list;
            free_list = 0
        }
    :: _nr_pr == 1 && inbox == none -> break
    od;
    assert((in_use ^ free_list) == blocks_in_use);
    assert(words[0] == 0 && words[1] == 0 && words[2] == 0 && words[3] == 0);
    assert(summary[0] == 0 && summary[1] == 0)
}
