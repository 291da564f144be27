/* Helpers of the C programs in this directory: their arguments, random numbers, and a checksum. */
#ifndef KNOWN_H
#define KNOWN_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns the number of rounds of a program: the first argument, or else `usual`. Stops the program
 * if the argument is not a number. */
static inline int known_rounds(int count, char** arguments, int usual)
{
    char* end = NULL;
    long wanted;
    if (count < 2)
        return usual;
    wanted = strtol(arguments[1], &end, 10);
    if (*end == '\0' && wanted > 0 && wanted < 1000000)
        return (int)wanted;
    fprintf(stderr, "%s: %s is no number of rounds\n  nothing was computed\n  help: %s %d\n",
            arguments[0], arguments[1], arguments[0], usual);
    exit(2);
}

/* Returns a random number below `end`. The numbers are the same in each run. `state` is not 0. */
static inline uint32_t known_below(uint64_t* state, uint32_t end)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (uint32_t)((*state >> 32) * end >> 32);
}

/* Returns the FNV-1a hash of some bytes, continued from `hash`. */
static inline uint64_t known_hash(uint64_t hash, const char* bytes, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return hash;
}

/* Returns the block, or stops the program if malloc returned null. */
static inline void* known_block(void* block)
{
    if (block != NULL)
        return block;
    fputs("there is no memory left\n", stderr);
    exit(1);
}

/* Prints the result of a program. */
static inline void known_print(uint64_t result)
{
    printf("checksum of the results: %016llx\n", (unsigned long long)result);
}

#endif
