// The tests of barrier-free groups, on GPUs.
#include "barrier_free.cpp"
