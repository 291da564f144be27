/* An atomic compare-exchange, which Python lacks. ring.py calls this function to push segments. */
#include <stdint.h>

void record_test_compare_exchange(uint64_t* word, uint64_t* expected, uint64_t wanted);

void record_test_compare_exchange(uint64_t* word, uint64_t* expected, uint64_t wanted)
{
    __atomic_compare_exchange_n(word, expected, wanted, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}
