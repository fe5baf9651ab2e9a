// The tests of kernels, on GPUs.
#include "messages.cpp"
#include "misuse.cpp"
#include "primitives.cpp"
#include "proxy.cpp"
