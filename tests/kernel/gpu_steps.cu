// The tests of neighbouring blocks, on GPUs.
#include "steps.cpp"
