int use_resolver(void);

int main(void)
{
    return use_resolver() == 2 ? 0 : 1;
}
