// The program of docs/kernels.md, on GPUs.
#include "examples/ring_messages.cpp"
