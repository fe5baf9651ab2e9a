// The program of docs/kernels.md, on GPUs.
#include "examples/heat_kernel.cpp"
