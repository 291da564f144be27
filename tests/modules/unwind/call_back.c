/* Two modules of the same code at the same offsets, with frames of different sizes: see
 * unit/unwind.cpp.
 */
void call_back(void (*function)(void*), void* argument);

void call_back(void (*function)(void*), void* argument)
{
    char volatile frame[FRAME_BYTES];
    frame[0] = 0;
    function(argument);
    frame[1] = frame[0];
}
