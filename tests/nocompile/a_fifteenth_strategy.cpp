// error: constraint
#include <mallard/strategy.hpp>

mallard::strategy<15> none;
