// The tests of operations that kernels start, on GPUs.
#include "plans.cpp"
#include "plans_long.cpp"
#include "plans_misuse.cpp"
