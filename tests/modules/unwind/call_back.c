/* Two modules are built from this file. Their code is at the same offsets, but FRAME_BYTES, the
 * size of the frame, differs: see unit/unwind.cpp.
 */
void call_back(void (*function)(void*), void* argument);

void call_back(void (*function)(void*), void* argument)
{
    char volatile frame[FRAME_BYTES];
    frame[0] = 0;
    function(argument);
    frame[1] = frame[0];
}
