// Calls operator new, and no other function of the malloc family.
#include <new>

int main()
{
    char* volatile const block = new (std::nothrow) char[100];
    delete[] block;
    return 0;
}
