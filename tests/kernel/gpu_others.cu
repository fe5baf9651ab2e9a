// The tests of other operations that kernels start, on GPUs.
#include "plans_others.cpp"
