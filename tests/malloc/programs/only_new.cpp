// Calls operator new, and nothing else of malloc's family.
#include <new>

int main()
{
    char* volatile const block = new (std::nothrow) char[100];
    delete[] block;
    return 0;
}
