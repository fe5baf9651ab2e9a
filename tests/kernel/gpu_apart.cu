// The tests of barrier-free groups, on GPUs.
#include "apart.cpp"
