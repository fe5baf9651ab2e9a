// The tests of blocks that do not meet, on GPUs.
#include "apart.cpp"
